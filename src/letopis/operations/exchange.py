"""Exports to other tools, and moving the whole archive to another place."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from letopis.archive import OWN, READ, Archive
from letopis.archive.backups import MoveReport, move_archive
from letopis.archive.cluster import PieceRunner, spread_over
from letopis.binary import atomic_file, write_errors
from letopis.config import Settings, load_settings
from letopis.errors import NotFound, UsageError
from letopis.exchange import page_export
from letopis.exchange.address_lists import bookmark_list, opml_list, url_list
from letopis.exchange.cdx import cdxj_lines
from letopis.exchange.exported_places import ExportIndexWriter
from letopis.exchange.har import har_pieces
from letopis.exchange.page_export import export_markdown, markdown_documents
from letopis.exchange.parquet_export import export_parquet
from letopis.exchange.selection import ExportSelection
from letopis.exchange.single_file import single_file
from letopis.exchange.static_copy import export_static
from letopis.exchange.wacz_export import export_wacz
from letopis.exchange.warc_export import located_members, warc_members
from letopis.exchange.warc_records import WarcCompression
from letopis.model.printing import counted
from letopis.operations.context import Context
from letopis.operations.operation import Document, Value, operation
from letopis.operations.parameters import Parameters, parameter, require_span
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url, site

ExportKind = Literal[
    "warc", "wacz", "cdxj", "static", "parquet", "markdown", "har", "mhtml", "singlefile", "urls", "opml",
    "bookmarks",
]  # fmt: skip
EXPORT_KINDS: tuple[str, ...] = get_args(ExportKind)
_PAGE_KINDS = ("mhtml", "singlefile")
PART_KINDS = tuple(kind for kind in EXPORT_KINDS if kind not in _PAGE_KINDS)
"""Those that hold any part of the archive; the others hold a page."""

_OF_A_PAGE = ("har", *_PAGE_KINDS)
_CHECK_KINDS = ("warc", "wacz", "cdxj", "har", "parquet")
"""Those that tell how many checks are done; the others tell how many pages."""
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}", re.ASCII)
_WARC_ENDINGS = {"gzip": ".warc.gz", "zstd": ".warc.zst", "none": ".warc"}
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of everything in a zip file: the same export gives the same bytes."""
_PIECE = 1 << 20


class ExportQuery(Parameters):
    """Which part of the archive, in which format."""

    kind: ExportKind = parameter(f"The format: {', '.join(EXPORT_KINDS)}.", argument=True)
    url: str | None = parameter(
        "har, mhtml, singlefile: one page, with everything it used.", default=None, argument=True
    )
    at: datetime | None = parameter("With a page: the check nearest to this time; default: now.", default=None)
    site: str = parameter("Only this host or the host of this URL.", default="")
    project: str = parameter("Only pages of this project.", default="", metavar="NAME")
    start: datetime | None = parameter("Only checks from this time on.", default=None, named="from")
    to: datetime | None = parameter("Only checks up to this time.", default=None, ends_day=True)
    latest: bool = parameter("Only the newest version of each page.", default=False)
    compression: Literal["gzip", "zstd", "none"] | None = parameter(
        "Compression of each WARC record; default: gzip.", default=None
    )

    def __post_init__(self) -> None:
        if self.compression is not None and self.kind != "warc":
            raise UsageError(f"compression applies to warc only, not to {self.kind}; leave it out")
        if self.kind in _PAGE_KINDS and self.url is None:
            raise UsageError(f"{self.kind} holds one page; name its address")
        if self.url is not None and self.kind not in _OF_A_PAGE:
            pages = ", ".join(_OF_A_PAGE)
            raise UsageError(
                f"{self.kind} is not of one page, as {pages} are; name its host with 'site', or leave it out"
            )
        if self.at is not None and self.url is None:
            raise UsageError("'at' needs the address of a page; give one, or use 'from' and 'to'")
        require_span(self.start, self.to)

    @property
    def selected(self) -> ExportSelection:
        """The part of the archive that is meant."""
        return ExportSelection(self.site, self.start, self.to, self.latest, self.project)


class ExportFileCommand(ExportQuery):
    """An export that is written to a file of a job."""

    file: str = parameter(
        "Name of the file; default: the site and the day, with the ending of its kind.", default="", longest=100
    )

    def __post_init__(self) -> None:
        # Not by super(): a dataclass with slots is another class than the one that its methods know.
        ExportQuery.__post_init__(self)
        if self.file and not _FILE_NAME.fullmatch(self.file):
            raise UsageError(f"'{self.file}' is not a file name; use letters, digits, '.', '_' and '-'")


class ExportReport(NamedTuple):
    """What was written where; counts that do not apply to the kind are None."""

    kind: str
    file: str
    bytes: int | None
    records: int | None = None
    captures: int | None = None
    files: int | None = None
    written: int | None = None
    removed: int | None = None
    checks: int | None = None
    versions: int | None = None
    links: int | None = None
    pages: int | None = None

    def row(self) -> dict[str, Any]:
        """What fits the kind, for programs."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def _export_sentence(done: Mapping[str, Any]) -> str:
    counts = [counted(done[name], name.removesuffix("s"), name) for name in ExportReport._fields[3:] if name in done]
    return f"{done['file']}: {', '.join(counts)}"


class _Export(NamedTuple):
    """An export in progress."""

    context: Context
    asked: ExportQuery

    @property
    def counted(self) -> Callable[[int], None]:
        """Shows how many of all pages or checks are done; Cancelled when nobody wants the rest."""
        archive, selected = self.context.archive, self.asked.selected
        if self.asked.kind in _CHECK_KINDS:
            return self.context.steps("checks", selected.count_checks(archive))
        return self.context.steps("pages", selected.count_pages(archive))

    @contextmanager
    def workers(self) -> Iterator[PieceRunner | None]:
        """A cluster that reads and compresses pages, where there is one."""
        with spread_over(self.context.archive.settings, where_shared=True) as workers:
            yield workers


def _warc_pieces(export: _Export) -> Iterator[bytes]:
    compression: WarcCompression = export.asked.compression or "gzip"
    with export.workers() as workers:
        yield from warc_members(export.context.archive, export.asked.selected, compression, export.counted, workers)


def _cdxj_pieces(export: _Export) -> Iterator[bytes]:
    with export.workers() as workers:
        yield from cdxj_lines(export.context.archive, export.asked.selected, export.counted, workers)


def _wacz_pieces(export: _Export) -> Iterator[bytes]:
    """Through a file: the directory of a ZIP stands at its end, and its digests at the beginning."""
    with tempfile.TemporaryDirectory(prefix="letopis-export-") as folder:
        with export.workers() as workers:
            file = Path(folder) / "export.wacz"
            export_wacz(export.context.archive, file, export.asked.selected, export.counted, workers)
        with file.open("rb") as stream:
            while piece := stream.read(_PIECE):
                yield piece


def _parts_of_page(export: _Export) -> list[page_export.PagePart]:
    context, asked = export.context, export.asked
    return page_export.page_parts(context.archive, parse_user_url(asked.url or ""), asked.at or context.archive.clock())


def _mhtml_pieces(export: _Export) -> Iterator[bytes]:
    return page_export.mhtml_pieces(_parts_of_page(export))


def _single_file_pieces(export: _Export) -> Iterator[bytes]:
    yield single_file(_parts_of_page(export))


def _har_pieces(export: _Export) -> Iterator[bytes]:
    if export.asked.url is not None:
        return page_export.page_har(export.context.archive, _parts_of_page(export))
    return har_pieces(export.context.archive, export.asked.selected, export.counted)


def _list_pieces(
    listed: Callable[[Archive, ExportSelection, Callable[[int], None]], Iterator[bytes]],
) -> Callable[[_Export], Iterator[bytes]]:
    return lambda export: listed(export.context.archive, export.asked.selected, export.counted)


def _write_pieces(export: _Export, target: Path) -> dict[str, int]:
    """A stream into a file, which appears when it is complete; one piece is one record, one line or one page."""
    count = 0
    with atomic_file(target) as out:
        for count, piece in enumerate(_stream(export), 1):  # noqa: B007 - the count is the answer
            out.write(piece)
    made = _FORMATS[export.asked.kind]
    return {made.counted: count - made.around}


def _write_warc(export: _Export, target: Path) -> dict[str, int]:
    """With an index of what lies where, so that CDX answers can name the file."""
    offset = count = 0
    compression: WarcCompression = export.asked.compression or "gzip"
    archive, selected = export.context.archive, export.asked.selected
    with closing(ExportIndexWriter()) as index:
        with export.workers() as workers, atomic_file(target) as out:
            members = located_members(archive, selected, compression, export.counted, workers)
            for count, member in enumerate(members, 1):  # noqa: B007 - the count is the answer
                out.write(member.data)
                if member.url:
                    index.add(member.url, member.time, offset, len(member.data))
                offset += len(member.data)
        index.keep(archive, target)
    return {"records": count}


def _write_wacz(export: _Export, target: Path) -> dict[str, int]:
    """The same; the file that is named is the one inside, as the index of the package itself names it."""
    archive = export.context.archive
    with closing(ExportIndexWriter()) as index:
        with export.workers() as workers:
            count = export_wacz(archive, target, export.asked.selected, export.counted, workers, places=index)
        index.keep(archive, target)
    return {"records": count}


def _write_static(export: _Export, target: Path) -> dict[str, int]:
    return export_static(export.context.archive, target, export.asked.selected, export.counted)._asdict()


def _write_parquet(export: _Export, target: Path) -> dict[str, int]:
    with export.workers() as workers:
        return export_parquet(export.context.archive, target, export.asked.selected, export.counted, workers)


def _markdown_pieces(export: _Export) -> Iterator[bytes]:
    for document in markdown_documents(export.context.archive, export.asked.selected, export.counted):
        yield (document.text + "\n").encode("utf-8", "replace")


def _write_markdown(export: _Export, target: Path) -> dict[str, int]:
    """One file where the name is that of one, else a folder."""
    if target.suffix in (".md", ".markdown"):
        return _write_pieces(export, target)
    return export_markdown(export.context.archive, target, export.asked.selected, export.counted)._asdict()


class _Format(NamedTuple):
    """How a format is written to a place; `pieces` and `media_type` are for formats that are one stream, not a
    folder.
    """

    write: Callable[[_Export, Path], dict[str, int]]
    pieces: Callable[[_Export], Iterator[bytes]] | None = None
    media_type: str = ""
    counted: str = "captures"
    ending: str = ""
    """Of a file of it; empty: its name."""
    around: int = 0
    """Pieces before and behind what is counted."""


_FORMATS: dict[ExportKind, _Format] = {
    "warc": _Format(_write_warc, _warc_pieces, "application/warc", "records"),
    "wacz": _Format(_write_wacz, _wacz_pieces, "application/wacz"),
    "cdxj": _Format(_write_pieces, _cdxj_pieces, "text/x-cdxj; charset=utf-8"),
    "static": _Format(_write_static),
    "parquet": _Format(_write_parquet),
    "markdown": _Format(_write_markdown, _markdown_pieces, "text/markdown; charset=utf-8"),
    "har": _Format(_write_pieces, _har_pieces, "application/json", around=2),
    "mhtml": _Format(_write_pieces, _mhtml_pieces, "multipart/related", "captures", around=2),
    "singlefile": _Format(_write_pieces, _single_file_pieces, "text/html; charset=utf-8", "pages", ".html"),
    "urls": _Format(_write_pieces, _list_pieces(url_list), "text/plain; charset=utf-8", "pages", ".txt"),
    "opml": _Format(_write_pieces, _list_pieces(opml_list), "text/x-opml; charset=utf-8", "pages", around=2),
    "bookmarks": _Format(_write_pieces, _list_pieces(bookmark_list), "text/html; charset=utf-8", "pages", ".html", 2),
}


@operation(
    "export", right=READ, verb="export", route=("GET", "/export"), on_cluster=True, errors=(404,),
    sentence=_export_sentence,
    examples=(
        "letopis export warc -o all.warc.gz",
        "letopis export warc --site example.org --from 2024-01-01 > part.warc.gz",
        "letopis export wacz --project news -o news.wacz",
        "letopis export static --site example.org -o copy",
        "letopis export markdown --site example.org -o texts",
        "letopis export har --site example.org --latest -o example.har",
        "letopis export mhtml https://example.org/ --at 2024-03-01 -o page.mhtml",
        "letopis export singlefile https://example.org/ -o page.html",
        "letopis export urls --project news",
        "letopis export warc -o all.warc.gz --cluster tcp://scheduler.example:8786",
    ),
)  # fmt: skip
def export(context: Context, asked: ExportQuery) -> Document:
    """Export the archive, or a part of it, in a format that other tools read.

    static and parquet are folders, and need a place to be written to, which
    makes markdown a folder of files as well; all others are one stream. urls,
    opml and bookmarks list pages. mhtml and singlefile are one page with what
    it loaded, and har can be: name its address. A cluster reads and compresses pages for
    warc, wacz, cdxj and parquet.
    """
    _require_known(context, asked)
    work = _Export(context, asked)

    def write(target: Path) -> dict[str, Any]:
        counts = _FORMATS[asked.kind].write(work, target)
        size = target.stat().st_size if target.is_file() else None
        return ExportReport(asked.kind, str(target), size, **counts).row()

    headers = {"content-disposition": f'attachment; filename="{_file_name(context, asked)}"'}
    return Document(_stream(work), _FORMATS[asked.kind].media_type, headers, write=write)


def _require_known(context: Context, asked: ExportQuery) -> None:
    """NotFound before the first byte is written."""
    selected = asked.selected
    selected.resources(context.archive)
    if selected._replace(latest=False) != ExportSelection() and not selected.count_checks(context.archive):
        raise NotFound("no check in the archive fits; name another site, project or time")
    if asked.url is not None:
        context.archive.answers.resource(parse_user_url(asked.url))


def _stream(work: _Export) -> Iterator[bytes]:
    pieces = _FORMATS[work.asked.kind].pieces
    if pieces is None:
        raise UsageError(f"{work.asked.kind} is a folder, not a stream; use -o, or export it by a job")
    yield from pieces(work)


def _file_name(context: Context, asked: ExportQuery) -> str:
    """The name of a file where nobody chose one: what it is of, and of which day."""
    place = asked.project or (site(asked.site or asked.url or "") if asked.site or asked.url else "archive")
    name = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', place)}-{context.moment():%Y-%m-%d}"
    if asked.kind == "warc":
        return name + _WARC_ENDINGS[asked.compression or "gzip"]
    if not _FORMATS[asked.kind].pieces:
        return f"{name}.{asked.kind}.zip"
    return name + (_FORMATS[asked.kind].ending or f".{asked.kind}")


@operation("export_file", right=READ, step="export")
def export_file(context: Context, asked: ExportFileCommand) -> Value[ExportReport]:
    """Export the archive, or a part of it, to a file of a job; folders are zipped."""
    _require_known(context, asked)
    folder = context.output
    if folder is None:
        raise UsageError("this job may write no files; leave the export out or ask the owner of the archive")
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    target, work = folder / (asked.file or _file_name(context, asked)), _Export(context, asked)
    if _FORMATS[asked.kind].pieces:
        counts = _FORMATS[asked.kind].write(work, target)
    else:
        with _zipped_folder(context, target) as parts:
            counts = _FORMATS[asked.kind].write(work, parts)
    return Value(ExportReport(asked.kind, _path_in_archive(context, target), target.stat().st_size, **counts))


def _path_in_archive(context: Context, target: Path) -> str:
    """Where a file lies in the archive; whoever reads the result need not know where the archive is."""
    inside = target.is_relative_to(context.archive.folder)
    return str(target.relative_to(context.archive.folder)) if inside else target.name


@contextmanager
def _zipped_folder(context: Context, target: Path) -> Iterator[Path]:
    """A folder that becomes the file when it is complete: a job's files are fetched one by one, without folders."""
    folder = target.with_name(f".{target.name}.parts")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
        with atomic_file(target) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                context.raise_if_cancelled()
                _add_to_zip(packed, file, str(file.relative_to(folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _add_to_zip(packed: zipfile.ZipFile, file: Path, name: str) -> None:
    entry = zipfile.ZipInfo(name, _ZIP_DATE)
    entry.compress_type = zipfile.ZIP_STORED if file.suffix == ".parquet" else zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.file_size = file.stat().st_size
    with file.open("rb") as source, packed.open(entry, "w") as member:
        shutil.copyfileobj(source, member, _PIECE)


# To another place


class MigrateCommand(Parameters):
    """The new place."""

    target: str = parameter("Settings that name the new place.", argument=True, metavar="FILE")
    no_verify: bool = parameter("Compare the tables only; do not read every content again.", default=False)


def _move_sentence(report: MoveReport) -> str:
    again = ", resumed" if report.resumed else ""
    return f"{report.packs} packs ({report.pack_bytes} bytes) and {report.rows} rows copied{again}; all equal"


@operation(
    "migrate", right=OWN, verb="migrate", creates=False, sentence=_move_sentence,
    examples=("letopis migrate scaled.toml", "letopis --config scaled.toml migrate embedded.toml"),
)  # fmt: skip
def migrate(context: Context, asked: MigrateCommand) -> Value[MoveReport]:
    """Copy the archive to the place that the settings in FILE name, and compare. Run it again after an interruption."""
    file = Path(asked.target)
    if not file.is_file():
        raise UsageError(f"there is no settings file {file}; write one that names the new place")
    there = load_settings(file, {}, {})
    if _location(there) == _location(context.archive.settings):
        raise UsageError(f"{file} names the archive itself; name another place")
    with Archive.open(there) as copy:
        return Value(move_archive(context.archive, copy, context.counted_progress, verify=not asked.no_verify))


def _location(settings: Settings) -> tuple[str, str]:
    """Where catalogue and packs are."""
    folder = str(Path(settings.archive.path).resolve())
    return settings.database.url or folder, settings.store.url or folder
