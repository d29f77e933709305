"""One door for everything that comes in: what a source is decides who reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from letopis.archive import Archive
from letopis.exchange.migrate import Asked, Kind, import_kept, recognised
from letopis.exchange.report import ImportReport
from letopis.exchange.taking import import_captures
from letopis.exchange.wacz_in import import_wacz, is_wacz
from letopis.exchange.warc_in import captures
from letopis.exchange.warc_names import is_cdxj

_FILES = (Kind.WARC, Kind.WACZ, Kind.CDXJ)


def kind_of(source: str) -> Kind:
    """What a source is, by its name where it may lie on a server, else by looking at it."""
    if is_cdxj(source):
        return Kind.CDXJ
    file = Path(source)
    return recognised(file) or (Kind.WACZ if is_wacz(file) else Kind.WARC)


def import_sources(
    archive: Archive,
    sources: Sequence[str],
    progress: Callable[[int], None] = lambda done: None,
    *,
    base: str = "",
    kind: Kind | None = None,
    asked: Asked | None = None,
) -> ImportReport:
    """Takes all sources in; what was committed stays when a later one is broken.

    `base` is where the files lie that an index names. What the archive has
    got already is not brought twice, so a run that was killed goes on when
    it is started again.
    """
    report = ImportReport()
    for source in sources:
        _import(archive, source, kind or kind_of(source), base, asked or Asked(), report, progress)
    return report


def _import(
    archive: Archive, source: str, kind: Kind, base: str, asked: Asked, report: ImportReport,
    progress: Callable[[int], None],
) -> None:  # fmt: skip
    file = Path(source)
    if kind is Kind.CDXJ:
        # Loaded late on purpose: an index may lie on a server, and files need none of what talks to one.
        from letopis.exchange.cdxj_in import import_cdxj  # noqa: PLC0415

        import_cdxj(archive, source, report, progress, base=base)
    elif kind not in _FILES or file.is_dir():
        import_kept(archive, file, kind, asked, report, progress)
    elif kind is Kind.WACZ:
        import_wacz(archive, file, report, progress)
    else:
        import_captures(archive, captures(file, report), file.name, report, progress)
