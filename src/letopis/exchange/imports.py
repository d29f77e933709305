"""One door for everything that comes in: what a source is decides who reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from letopis.archive import Archive
from letopis.exchange.captures import import_captures
from letopis.exchange.sources import ImportReport, SourceHints, SourceKind
from letopis.exchange.wacz_import import import_wacz, is_wacz
from letopis.exchange.warc_import import warc_captures
from letopis.exchange.warc_records import is_cdx_name
from letopis_migrate.readers import import_tool_source, recognised_kind

_FILE_KINDS = (SourceKind.WARC, SourceKind.WACZ, SourceKind.CDXJ)


def source_kind(source: str) -> SourceKind:
    """What a source is, by its name where it may lie on a server, else by looking at it."""
    if is_cdx_name(source):
        return SourceKind.CDXJ
    file = Path(source)
    return recognised_kind(file) or (SourceKind.WACZ if is_wacz(file) else SourceKind.WARC)


def import_sources(
    archive: Archive,
    sources: Sequence[str],
    progress: Callable[[int], None] = lambda done: None,
    *,
    base: str = "",
    kind: SourceKind | None = None,
    asked: SourceHints | None = None,
) -> ImportReport:
    """Takes all sources in; what was committed stays when a later one is broken.

    `base` is where the files lie that an index names. What the archive has
    got already is not brought twice, so a run that was killed goes on when
    it is started again.
    """
    report = ImportReport()
    for source in sources:
        _import(archive, source, kind or source_kind(source), base, asked or SourceHints(), report, progress)
    return report


def _import(
    archive: Archive, source: str, kind: SourceKind, base: str, asked: SourceHints, report: ImportReport,
    progress: Callable[[int], None],
) -> None:  # fmt: skip
    file = Path(source)
    if kind is SourceKind.CDXJ:
        # Loaded late on purpose: an index may lie on a server, and files need none of what talks to one.
        from letopis.exchange.cdx_import import import_cdxj  # noqa: PLC0415

        import_cdxj(archive, source, report, progress, base=base)
    elif kind not in _FILE_KINDS or file.is_dir():
        import_tool_source(archive, file, kind, asked, report, progress)
    elif kind is SourceKind.WACZ:
        import_wacz(archive, file, report, progress)
    else:
        import_captures(archive, warc_captures(file, report), file.name, report, progress)
