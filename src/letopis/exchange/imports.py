"""Imports: the kind of a source decides which reader is used.

Formats of single files are recognised by their beginning, and their readers are part of Letopis; the data of other
tools is read by separate packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from letopis.archive import Archive
from letopis.archive.imported import is_recorded
from letopis.errors import BadUrl, UsageError
from letopis.exchange.captures import import_captures
from letopis.exchange.page_sets import complete_looks
from letopis.exchange.revisits import complete_waiting
from letopis.exchange.sources import (
    CDXJ,
    FILE_KINDS,
    WACZ,
    WARC,
    FileReader,
    ImportedWatch,
    ImportReport,
    SourceHints,
    SourceReader,
    file_head,
    installed_readers,
    reader_of,
    require_readers,
)
from letopis.exchange.warc_import import warc_captures, warcs_in_folder
from letopis.exchange.warc_records import is_cdx_name
from letopis.lazy import lazy
from letopis.urls import normalize

if TYPE_CHECKING:
    from letopis.exchange import address_lists, cdx_import, har, saved_pages, wacz_import
else:  # files of records, which most imports are, need none of them
    address_lists, har = lazy("letopis.exchange.address_lists"), lazy("letopis.exchange.har")
    cdx_import, saved_pages = lazy("letopis.exchange.cdx_import"), lazy("letopis.exchange.saved_pages")
    wacz_import = lazy("letopis.exchange.wacz_import")

_PLAIN_LIST = "urls"
"""Files of other tools may look like a list of URLs too."""
_SQLITE = b"SQLite format 3\x00"
_RECORDS = (b"WARC/", b"filedesc:", b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18", b"\x04\x22\x4d\x18")
"""How files of records begin, plain or compressed."""
_CDX_HEAD = re.compile(rb"CDX [A-Za-z] |\S+ \d{14} \{")
_RANK_OF_WARCS = 60
"""A folder of WARC files is one of another tool when a reader of a lower rank recognises it."""


def _file_readers() -> tuple[FileReader, ...]:
    """Formats of single files, in the order in which they are tried."""
    return (har.HAR, *saved_pages.PAGE_READERS, *address_lists.LIST_READERS)


def source_kind(source: str) -> str:
    """The kind of a source, by its name if it may be on a server, otherwise by its content."""
    if is_cdx_name(source):
        return CDXJ
    file = Path(source)
    if file.is_dir():
        return _folder_kind(file)
    if not file.is_file():
        return WARC
    head = file_head(file)
    if not head.startswith(_RECORDS) and wacz_import.is_wacz(file):
        return WACZ
    return _file_kind(file, head)


def _file_kind(file: Path, head: bytes) -> str:
    """By its first bytes; readers of other tools are tried last, since they have to be loaded first."""
    if head.startswith(_RECORDS):
        return WARC
    if head.startswith(_SQLITE):
        require_readers(file)
        return next((reader.kind for reader in installed_readers() if reader.recognises(file)), WARC)
    if wacz_import.is_wacz_list(head):
        return WACZ
    if _CDX_HEAD.match(head):
        return CDXJ
    own = next((reader for reader in _file_readers() if reader.fits(head)), None)
    if own is not None and own.kind != _PLAIN_LIST:
        return own.kind
    theirs = next((reader.kind for reader in installed_readers() if head and reader.recognises(file)), "")
    return theirs or (own.kind if own is not None else WARC)


def _folder_kind(folder: Path) -> str:
    warcs = bool(warcs_in_folder(folder))
    for reader in installed_readers():
        if warcs and reader.rank > _RANK_OF_WARCS:
            return WARC
        if reader.recognises(folder):
            return reader.kind
    if warcs:
        return WARC
    require_readers(folder)
    raise UsageError(f"{folder} is not a folder that import recognises; name its kind")


def import_sources(
    archive: Archive,
    sources: Sequence[str | Path],
    progress: Callable[[int], None] = lambda done: None,
    *,
    base: str = "",
    kind: str | None = None,
    hints: SourceHints | None = None,
    report: ImportReport | None = None,
) -> ImportReport:
    """Imports all sources; what was committed stays if a later one is broken. `report` grows meanwhile.

    `base` is where the files are that an index names. What the archive already has is not imported twice, so a killed
    run continues when it is started again.
    """
    report = report or ImportReport()
    report.bytes_all = sum(map(_record_bytes, map(Path, sources)))
    for source in map(str, sources):
        before, breaks = report.taken, report.breaks
        found = kind or source_kind(source)
        if is_list(source, found):
            report.lists.append(source)
            continue
        _import(archive, source, found, base, hints or SourceHints(), report, progress)
        if report.taken == before:
            report.empty.append(source)
        elif report.breaks > breaks:
            report.cut.append(source)
    complete_waiting(archive, report)
    complete_looks(archive, report)
    return report


def _record_bytes(source: Path) -> int:
    """Bytes of a file, or of the WARC files of a folder."""
    files = warcs_in_folder(source) if source.is_dir() else [source] if source.is_file() else []
    return sum(file.stat().st_size for file in files)


def _import(
    archive: Archive, source: str, kind: str, base: str, hints: SourceHints, report: ImportReport,
    progress: Callable[[int], None],
) -> None:  # fmt: skip
    file = Path(source)
    if kind == CDXJ:
        cdx_import.import_cdxj(archive, source, report, progress, base=base)
    elif kind not in FILE_KINDS:
        _import_from_tool(archive, file, kind, hints, report, progress)
    elif file.is_dir():
        _import_folder(archive, file, report, progress)
    elif kind == WACZ:
        wacz_import.import_wacz(archive, file, report, progress)
    else:
        import_captures(archive, warc_captures(file, report), file.name, report, progress)


def _import_folder(archive: Archive, folder: Path, report: ImportReport, progress: Callable[[int], None]) -> bool:
    """Imports the WARC files of a folder; whether there are any."""
    files = warcs_in_folder(folder)
    for file in files:
        import_captures(archive, warc_captures(file, report), file.name, report, progress)
    return bool(files)


def _import_from_tool(
    archive: Archive, source: Path, kind: str, hints: SourceHints, report: ImportReport,
    progress: Callable[[int], None],
) -> None:  # fmt: skip
    reader = known_reader(kind)
    if not source.exists():
        raise UsageError(f"there is no {source}; check the path")
    with_warcs = reader.with_warcs and source.is_dir() and _import_folder(archive, source, report, progress)

    def known(url: str) -> bool:
        try:
            return with_warcs and is_recorded(archive, normalize(url))
        except BadUrl:
            return False

    import_captures(archive, reader.captures(source, hints, report, known), source.name, report, progress)


def is_list(source: str, kind: str | None) -> bool:
    """Whether a source only names pages, and has no captures."""
    found = kind or source_kind(source)
    return found not in FILE_KINDS and known_reader(found).lists_only(Path(source))


def watches_of_source(source: str, kind: str | None, hints: SourceHints) -> Iterator[ImportedWatch]:
    """The pages that the tool of a source watches; UsageError for sources without watches."""
    found = kind or source_kind(source)
    if (
        found == WARC
        and kind is None
        and not Path(source).is_dir()
        and not file_head(Path(source)).startswith(_RECORDS)
    ):
        raise UsageError(
            f"{source} is not a list that import recognises; write one https:// address a line, or name its kind"
        )
    if found in FILE_KINDS:
        raise UsageError(f"{source} has no watches; import it without them")
    return known_reader(found).watches(Path(source), hints)


def known_reader(kind: str) -> SourceReader:
    """The reader of a kind, of Letopis or of another package; UsageError for an unknown kind."""
    return next((reader for reader in _file_readers() if reader.kind == kind), None) or reader_of(kind)
