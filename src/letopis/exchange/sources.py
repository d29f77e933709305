"""What an import is given and gives back: hints about sources, captures, watches, the report, and who reads what.

Readers of what other tools have kept are packages of their own, found by entry points of the group `letopis.sources`:
the name is the word of `--kind`, the value a `SourceReader`. They need these values and nothing else of an import.

Other files are read whole, and known by how they begin. Whatever the format, a file is a plain one, is not larger than
its bound, and may be compressed with gzip.
"""

from __future__ import annotations

import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from letopis.archive.outside_values import parse_json
from letopis.errors import MissingExtra, UsageError
from letopis.exchange.kept_records import KeptRecord
from letopis.exchange.page_looks import LookFact, PageLooks
from letopis.model import Headers, SentRequest
from letopis.plugins import entry_points_of
from letopis.tuples import NamedTuple

WARC, WACZ, CDXJ = FILE_KINDS = ("warc", "wacz", "cdxj")
"""Kinds of archives, which are more than one file that is read whole."""
OWN_KINDS = (*FILE_KINDS, "har", "mhtml", "singlefile", "opml", "bookmarks", "sitemap", "urls")
"""Kinds that need no other package."""
ENTRY_POINT_GROUP = "letopis.sources"
_MIGRATE_KINDS = ("httrack", "changedetection", "urlwatch", "git", "wget", "dated", "distill", "visualping")
_MOST_HOSTS, _SITES = 1000, 5
_INSTALL = "'pip install letopis-migrate'"


@dataclass(frozen=True, slots=True)
class SourceHints:
    """`url` is the page, or with a slash at its end the folder, that files belong to.

    `urls` is a list of addresses (`urls.tsv`, `urls.yaml`), `paths` the part of a git repository that counts.
    """

    url: str = ""
    urls: Path | None = None
    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("http://", "https://")):
            raise UsageError(f"'{self.url}' is not a web address; begin it with https:// or http://")


MOST_WATCHES = 100_000


class ImportedWatch(NamedTuple):
    """A page to watch: seconds between checks (None: as the settings say), and filters (kind, expression).

    `left_out` names what has no counterpart.
    """

    url: str
    every: float | None = None
    filters: tuple[tuple[str, str], ...] = ()
    tag: str = ""
    paused: bool = False
    left_out: tuple[str, ...] = ()
    is_sitemap: bool = False
    """Whether every page that this sitemap names is meant."""


class RevisitTarget(NamedTuple):
    """What a revisit says of the capture that has its body: the digest of the payload, and where and when it was."""

    digest: str = ""
    url: str = ""
    date: str = ""


class ImportedCapture(NamedTuple):
    """`date` is ISO 8601; `decoded` bodies stand without the codings that their headers name.

    `facts` are those of a check of ours that has no record of its own, or that belong to the capture before. `url`
    names method and body of the request too where it was no GET, and then `page` is the address alone. `record` is what
    brought it, as it stood in its file; `digest` what its writer calls the payload; `revisits` is there for captures
    without a body of their own; `shown` the type and bytes of what a browser made of an answer of ours; `look` what it
    says of a look at a whole page.
    """

    url: str
    date: str
    status: int
    headers: Headers
    body: bytes
    revisits: RevisitTarget | None = None
    facts: dict[str, Any] | None = None
    decoded: bool = False
    digest: str = ""
    record: KeptRecord | None = None
    page: str = ""
    request: SentRequest | None = None
    shown: tuple[str, bytes] | None = None
    look: LookFact | None = None


def failed_capture(url: str, date: str, why: str) -> ImportedCapture:
    """A check that got no answer."""
    facts = {"redirects": [], "final_url": url, "error": why, "warnings": [], "outcome": "unavailable", "status": 0}
    return ImportedCapture(url, date, 0, (), b"", facts=facts)


MOST_EXAMPLES = 20
MOST_REASONS = 200
_OTHERS = "other reasons"


@dataclass(slots=True)
class ImportReport:
    """`same` counts captures that the archive already had, `waiting` revisits that wait for the capture they refer to;
    `beside` records without a web address, which are kept with the capture that they stand beside;
    the first refusals are named.

    `looks` are those at whole pages, as long as they are gathered; `sets` counts capture sets that came.
    `empty` are the sources of which nothing could be taken in, `lists` those that only name pages, `cut` those that
    break off or are damaged; `future` counts captures that lie more than a day ahead of the clock; `run` names this
    import; `hosts` counts the captures of the first hosts. `bytes_read` of `bytes_all` are behind it, as far as it
    reads files of records.
    """

    records: int = 0
    versions: int = 0
    checks: int = 0
    same: int = 0
    waiting: int = 0
    beside: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    breaks: int = 0
    future: int = 0
    from_future: list[str] = field(default_factory=list)
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    bytes_read: int = 0
    bytes_all: int = 0
    sets: int = 0
    looks: PageLooks = field(default_factory=PageLooks)
    hosts: Counter[str] = field(default_factory=Counter)

    @property
    def expected(self) -> int:
        """How many records there will be, if the rest are as large as those so far; 0: unknown."""
        return self.records * self.bytes_all // self.bytes_read if self.bytes_read else 0

    @property
    def taken(self) -> int:
        """Captures that are in the archive, or wait in it, after this."""
        return self.checks + self.same + self.waiting

    def note_sites(self, hosts: Iterable[str]) -> None:
        """Counts captures by their hosts; of very many hosts, the first are counted."""
        for name, captures in Counter(hosts).items():
            if name in self.hosts or len(self.hosts) < _MOST_HOSTS:
                self.hosts[name] += captures

    @property
    def sites(self) -> list[str]:
        """The hosts of which most captures came, the most first."""
        return [name for name, _ in self.hosts.most_common(_SITES)]

    def note_future(self, url: str, time: str) -> None:
        """Counts a capture that was imported though its time is in the future; the first are named."""
        self.future += 1
        if len(self.from_future) < MOST_EXAMPLES:
            self.from_future.append(f"{url[:300]} at {time}")

    def break_off(self, reason: str, where: str) -> None:
        """Counts a record, or the rest of a source, that is not there or cannot be read."""
        self.breaks += 1
        self.refuse(reason, where)

    def refuse(self, reason: str, where: str) -> None:
        """Counts a record that was left out; a source that finds ever new reasons fills no memory."""
        known = reason in self.refused or len(self.refused) < MOST_REASONS
        self.refused[reason if known else _OTHERS] += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{where[:300]}: {reason}")


class SourceReader(Protocol):
    """Reads what one tool has kept.

    `rank` orders the readers that recognise the same folder, the lowest first. `with_warcs` says that WARC files in its
    folder belong to the source: they are taken in before it.
    """

    @property
    def kind(self) -> str:
        """The word of `--kind`."""

    @property
    def rank(self) -> int:
        """Its place among the readers."""

    @property
    def with_warcs(self) -> bool:
        """Whether WARC files in its folder belong to it."""

    def recognises(self, source: Path) -> bool:
        """Whether a file or folder is one of this tool."""

    def lists_only(self, source: Path) -> bool:
        """Whether it names pages and has no captures."""

    def captures(
        self, source: Path, hints: SourceHints, report: ImportReport, is_recorded: Callable[[str], bool]
    ) -> Iterator[ImportedCapture]:
        """What it has kept, in its order; `is_recorded` tells whether a URL came with the WARC files beside it."""

    def watches(self, source: Path, hints: SourceHints) -> Iterator[ImportedWatch]:
        """The pages that it watches; UsageError when this tool has no such thing."""


@cache
def installed_readers() -> tuple[SourceReader, ...]:
    """The readers of installed packages, in the order in which they are tried."""
    found: list[SourceReader] = [_loaded(point) for point in entry_points_of(ENTRY_POINT_GROUP)]
    return tuple(sorted(found, key=lambda reader: reader.rank))


def _loaded(point: Any) -> Any:
    try:
        return point.load()
    except ImportError as error:
        raise MissingExtra(f"the reader of {point.name} does not load ({error}); {_INSTALL} brings it anew") from None


def known_kinds() -> tuple[str, ...]:
    """The words of `--kind`; no reader is loaded for them."""
    return (*OWN_KINDS, *sorted(point.name for point in entry_points_of(ENTRY_POINT_GROUP)))


def reader_of(kind: str) -> SourceReader:
    """The reader of a kind; UsageError for an unknown kind, MissingExtra if its package is not installed."""
    for reader in installed_readers():
        if reader.kind == kind:
            return reader
    if kind in _MIGRATE_KINDS:
        raise MissingExtra(f"importing from {kind} needs another package: {_INSTALL}")
    raise UsageError(f"kind: '{kind[:70]}' is not known; choose {', '.join(known_kinds())}")


def require_readers(source: Path) -> None:
    """MissingExtra if no package is installed that could recognise a source."""
    if not installed_readers():
        raise MissingExtra(f"{source} is neither WARC, WACZ nor CDXJ; readers of other tools come with {_INSTALL}")


_MIB = 1024 * 1024
MOST_READ = 128 * _MIB
"""Largest file that is read whole, unpacked."""
MOST_HEAD = 64 * 1024
_GZIP = b"\x1f\x8b"
_PIECE = 64 * 1024
_BLANK = b"\xef\xbb\xbf \t\r\n"

CaptureSourceReader = Callable[[Path, SourceHints, ImportReport], Iterator[ImportedCapture]]
WatchSourceReader = Callable[[Path], Iterator[ImportedWatch]]


class FileReader(NamedTuple):
    """One format of files: `fits` looks at how a file begins; it reads captures, or names pages to watch, or both."""

    kind: str
    rank: int
    fits: Callable[[bytes], bool]
    read: CaptureSourceReader | None = None
    read_watches: WatchSourceReader | None = None
    with_warcs: bool = False

    def recognises(self, source: Path) -> bool:
        """Whether a plain file begins like one of this format."""
        return source.is_file() and self.fits(file_head(source))

    def lists_only(self, source: Path) -> bool:
        """Whether the format names pages and has no captures."""
        return self.read is None

    def captures(
        self, source: Path, hints: SourceHints, report: ImportReport, is_recorded: Callable[[str], bool]
    ) -> Iterator[ImportedCapture]:
        """Captures of the file."""
        return self.read(source, hints, report) if self.read is not None else iter(())

    def watches(self, source: Path, hints: SourceHints) -> Iterator[ImportedWatch]:
        """The pages that it names."""
        if self.read_watches is None:
            raise UsageError(f"{source} has no watches; import it without them")
        return self.read_watches(source)


def file_head(file: Path) -> bytes:
    """How a file begins, unpacked and without blanks before it; empty when it cannot be read."""
    try:
        return next(_unpacked(file, MOST_HEAD), b"")[:MOST_HEAD].lstrip(_BLANK)
    except (OSError, UsageError):
        return b""


def read_whole(file: Path, most: int = MOST_READ) -> bytes:
    """The bytes of a plain file, unpacked; UsageError for what is none, cannot be read, or is too large."""
    if not file.is_file():
        raise UsageError(f"there is no file {file}; check the path")
    try:
        return b"".join(_unpacked(file, most))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; give a readable file") from None


def read_json(file: Path) -> Any:
    """What a file of JSON says; UsageError when it is none."""
    try:
        return parse_json(read_whole(file).lstrip(_BLANK))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not valid JSON ({str(error)[:100]}); correct it") from None


def _unpacked(file: Path, most: int) -> Iterator[bytes]:
    """Pieces of a file up to a bound; one more byte than that is an error."""
    with file.open("rb") as stream:
        first = stream.read(_PIECE)
        inflate = zlib.decompressobj(31) if first.startswith(_GZIP) else None
        left = most
        while first:
            try:
                piece = inflate.decompress(first, left + 1) if inflate else first
            except zlib.error as error:
                raise UsageError(f"{file} is damaged ({error}); fetch it again") from None
            left -= len(piece)
            yield piece
            if left < 0:
                raise UsageError(f"{file} is larger than {most // _MIB} MiB; split it")
            first = inflate.unconsumed_tail if inflate and inflate.unconsumed_tail else stream.read(_PIECE)
