"""The archive as a whole: create it, its totals, disk usage, its use, what is new to each client."""

from __future__ import annotations

import re
import shutil
from datetime import datetime
from typing import Literal

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.activity import (
    DAY,
    HostContents,
    LoggedChange,
    MethodRow,
    StoredContents,
    acknowledge_changes,
    activity_of,
    catalogue_bytes,
    change_position,
    changes_since,
    spread_tables,
    stored_at_once,
)
from letopis.archive.archive import indexed_links
from letopis.archive.audit import DAYS_KEPT, use_by_day
from letopis.binary import disk_usage
from letopis.errors import UsageError
from letopis.model import Stats, from_millis, header
from letopis.operations.context import Context
from letopis.operations.indexes import link_index
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import NoParameters, Parameters, parameter
from letopis.operations.words import word_index
from letopis.tuples import NamedTuple


class ArchiveReady(NamedTuple):
    """Where an archive is, and which of its tables were repartitioned."""

    archive: str
    partitioned: tuple[str, ...]


def _ready(made: ArchiveReady) -> str:
    tables = f"; {', '.join(made.partitioned)} repartitioned" if made.partitioned else ""
    return f"archive ready in {made.archive}{tables}"


@operation(
    "init", right=OWN, verb="init", sentence=_ready, examples=("letopis init", "letopis init --archive /srv/web")
)
def init_archive(context: Context, asked: NoParameters) -> Value[ArchiveReady]:
    """Create an archive, or check an existing one; brings its tables to `database.partitions`."""
    return Value(ArchiveReady(str(context.archive.folder), tuple(spread_tables(context.archive))))


class ArchiveTotals(NamedTuple):
    """Totals and rates; the lags are versions that an index will read at its next query.

    `disk_bytes` are packs, catalogue and indexes, `ratio` their share of what was fetched: above 1 for small
    archives, whose tables and indexes take more than compression saves. `names_lag` are versions whose links do not
    yet help to find pages.
    """

    documents: int
    versions: int
    checks: int
    contents: int
    raw_bytes: int
    pack_bytes: int
    catalog_bytes: int
    links: int
    hosts: int
    index_bytes: int
    disk_bytes: int
    ratio: float | None
    catalog_bytes_per_version: float | None
    links_lag: int
    search_lag: int
    names_lag: int


_LARGER = (
    "the archive takes more than what was fetched: its tables and indexes weigh more than compression saves so far"
)


def _lines(totals: ArchiveTotals) -> str:
    known = {name: value for name, value in totals._asdict().items() if value is not None}
    return "\n".join(f"{name.replace('_', ' '):26} {value}" for name, value in known.items())


@operation(
    "stats", right=READ, verb="stats", route=("GET", "/stats"), sentence=_lines,
    examples=("letopis stats", "letopis stats --json"), tool=True,
)  # fmt: skip
def stats(context: Context, asked: NoParameters) -> Value[ArchiveTotals]:
    """Show totals of the archive: documents, versions, checks, bytes, links, and how far the indexes are behind."""
    links, behind = link_index(context.archive).known()
    counted, words = context.archive.stats(), word_index(context.archive)
    disk = counted.disk_bytes
    larger = disk > counted.raw_bytes > 0
    totals = ArchiveTotals(
        **counted._replace(links=links)._asdict(), disk_bytes=disk,
        ratio=round(disk / counted.raw_bytes, 4) if counted.raw_bytes else None,
        catalog_bytes_per_version=round(counted.catalog_bytes / counted.versions, 1) if counted.versions else None,
        links_lag=behind, search_lag=words.lag(), names_lag=words.names_lag(),
    )  # fmt: skip
    return Value(totals, remark=_LARGER if larger else "")


class StoragePart(NamedTuple):
    """A part of the archive on disk; `share` is that of all parts together."""

    name: Literal["packs", "catalogue", "index"]
    files: int
    bytes: int
    share: float


class StorageOverview(NamedTuple):
    """Disk usage and free space; only owners see the latter."""

    parts: tuple[StoragePart, ...]
    methods: tuple[MethodRow, ...]
    free_bytes: int | None
    disk_bytes: int | None


@operation("storage", right=READ, route=("GET", "/storage"))
def storage(context: Context, asked: NoParameters) -> Value[StorageOverview]:
    """Show what takes space: the parts of the archive on disk, and how contents are compressed."""
    archive = context.archive
    free, total = disk_room(context) or (None, None)
    return Value(StorageOverview(_storage_parts(archive), tuple(activity_of(archive).methods()), free, total))


class GrowthRow(NamedTuple):
    """The growth of a day: contents first seen on that day, as fetched and as stored now."""

    day: str
    contents: int
    raw_bytes: int
    stored_bytes: int


@operation("storage_growth", right=READ, route=("GET", "/storage/growth"), listed="days")
def storage_growth(context: Context, asked: NoParameters) -> Rows[GrowthRow]:
    """List how the archive grew, by the days (UTC) at which contents were first seen."""
    return Rows(_growth(activity_of(context.archive)))


def _growth(stored: StoredContents) -> list[GrowthRow]:
    return [GrowthRow(from_millis(row.day * DAY).date().isoformat(), *row[1:]) for row in stored.growth()]


class SitesQuery(Parameters):
    """How many sites."""

    limit: int = parameter("Maximum number of sites.", default=50, at_least=1, at_most=1000)


@operation("storage_sites", right=READ, route=("GET", "/storage/sites"), listed="sites")
def storage_sites(context: Context, asked: SitesQuery) -> Rows[HostContents]:
    """List the sites whose contents take most; a content that several sites have counts for each."""
    return Rows(activity_of(context.archive).stored_by_host(asked.limit))


ContentKind = Literal["html", "images", "styles", "scripts", "pdf", "other"]
_KINDS: tuple[tuple[str, ContentKind], ...] = (
    ("text/html", "html"), ("application/xhtml", "html"), ("image/", "images"), ("text/css", "styles"),
    ("text/javascript", "scripts"), ("application/javascript", "scripts"), ("application/x-javascript", "scripts"),
    ("text/ecmascript", "scripts"), ("application/ecmascript", "scripts"), ("application/pdf", "pdf"),
)  # fmt: skip


class KindContents(NamedTuple):
    """The contents of a kind: as fetched, and as stored now."""

    kind: ContentKind
    contents: int
    raw_bytes: int
    stored_bytes: int


def content_kind(content_type: str) -> ContentKind:
    """The kind that a Content-Type means."""
    named = content_type.strip().lower()
    return next((kind for start, kind in _KINDS if named.startswith(start)), "other")


@operation("storage_kinds", right=READ, route=("GET", "/storage/kinds"), listed="kinds")
def storage_kinds(context: Context, asked: NoParameters) -> Rows[KindContents]:
    """List what takes space by kind, the largest first: HTML, images, styles, scripts, PDF, other.

    A content counts once, as what its server first called it.
    """
    return Rows(_kinds(activity_of(context.archive)))


def _kinds(stored: StoredContents) -> list[KindContents]:
    found: dict[ContentKind, list[int]] = {}
    for headers, *figures in stored.stored_by_header():
        kind = content_kind(header(headers, "content-type"))
        found[kind] = [one + other for one, other in zip(found.get(kind, (0, 0, 0)), figures, strict=True)]
    rows = [KindContents(kind, *sums) for kind, sums in found.items()]
    return sorted(rows, key=lambda row: (-row.stored_bytes, row.kind))


class StorageFigures(NamedTuple):
    """All figures of the page about storage, as of one moment, so that they are consistent."""

    totals: Stats
    parts: tuple[StoragePart, ...]
    methods: list[MethodRow]
    growth: list[GrowthRow]
    kinds: list[KindContents]
    sites: list[HostContents]


def storage_figures(archive: Archive, sites: int) -> StorageFigures:
    """The figures, with at most so many sites."""
    with stored_at_once(archive) as (counted, stored):
        parts, largest = _storage_parts(archive), stored.stored_by_host(sites)
        packs, catalogue, index = (part.bytes for part in parts)
        links = indexed_links(archive.folder)
        totals = Stats(**counted._asdict(), links=links, pack_bytes=packs, catalog_bytes=catalogue, index_bytes=index)
        return StorageFigures(totals, parts, stored.methods(), _growth(stored), _kinds(stored), largest)


def disk_room(context: Context) -> DiskRoom | None:
    """The room of the disk that holds the archive, for owners."""
    usage = shutil.disk_usage(context.archive.folder) if context.may(OWN) else None
    return usage and DiskRoom(usage.free, usage.total)


class DiskRoom(NamedTuple):
    """Bytes of the disk that contains the archive."""

    free: int
    total: int


def _storage_parts(archive: Archive) -> tuple[StoragePart, ...]:
    """Packs, catalogue and indexes, the first two being what cannot be made again."""
    sizes: dict[Literal["packs", "catalogue", "index"], tuple[int, int]] = {
        "packs": disk_usage(archive.folder / "packs"),
        "catalogue": (1, catalogue_bytes(archive)),
        "index": disk_usage(archive.folder / "index"),
    }
    total = sum(size for _, size in sizes.values()) or 1
    return tuple(StoragePart(name, files, size, size / total) for name, (files, size) in sizes.items())


class UsageQuery(Parameters):
    """Which days."""

    days: int = parameter("The last days, today included.", default=30, at_least=1, at_most=DAYS_KEPT)


class UsageDay(NamedTuple):
    """How often the archive was used on a day (UTC).

    `searches` through HTTP, of which `unanswered` found nothing; `clicks` from a result to a page; `pages` of the web
    interface; `replays` of archived pages; `requests` of programs; `jobs` that were started, by any means.
    """

    day: str
    searches: int = 0
    unanswered: int = 0
    clicks: int = 0
    pages: int = 0
    replays: int = 0
    requests: int = 0
    jobs: int = 0


@operation(
    "usage", right=OWN, verb="usage", route=("GET", "/usage"), step="usage", listed="days", element="day",
    creates=False, about={"counted": bool}, examples=("letopis usage", "letopis usage --days 365 --json"),
)  # fmt: skip
def usage(context: Context, asked: UsageQuery) -> Rows[UsageDay]:
    """List how often the archive was used by day, the newest first: searches, clicks, pages, replays, requests, jobs.

    Nothing else is kept: no names, no addresses, no words. `serve.statistics` turns the counting off; days on which
    nothing was counted are left out.
    """
    counted = context.settings.serve.statistics
    found = use_by_day(context.archive, asked.days)
    rows = [UsageDay(day.date().isoformat(), **counts) for day, counts in found.items()]
    off = "" if counted else "usage is no longer counted; serve.statistics turns it on again"
    return Rows(rows, {"counted": counted}, remark=off or ("" if rows else "nothing was counted in these days"))


_CLIENT = re.compile(r"[A-Za-z0-9_.@+-]{1,64}", re.ASCII)
_CURSOR = re.compile(r"v([0-9]{1,18})", re.ASCII)
_CLIENT_HELP = "Name of the client, chosen by itself: letters, digits and . @ + - _."


def _client(name: str) -> str:
    if not _CLIENT.fullmatch(name):
        raise UsageError(f"'{name[:70]}' is not a name of a client; use up to 64 letters, digits and . @ + - _")
    return name


class ChangesQuery(Parameters):
    """Which client, and how many changes."""

    client: str = parameter(_CLIENT_HELP, argument=True, longest=64)
    limit: int = parameter("Maximum number of rows.", default=1000, at_least=1, at_most=10_000)


class NewChange(NamedTuple):
    """A version that is new to a client, which acknowledges `cursor` after processing it."""

    url: str
    title: str
    version: int
    time: datetime
    outcome: Literal["new", "changed"]
    meaningful: bool | None
    digest: str
    cursor: str
    verdict: str
    score: float | None
    reason: str


def new_change(row: LoggedChange) -> NewChange:
    """A version of the log as it is shown to those who follow it."""
    return NewChange(
        row.url, row.title, row.number, row.time, "changed" if row.number else "new", row.meaningful, row.digest,
        f"v{row.id}", row.verdict, row.score, row.reason,
    )  # fmt: skip


@operation(
    "changes", right=READ, verb="changes", route=("GET", "/changes"), about={"cursor": str},
    columns=("cursor", "time", "verdict", "version", "url", "reason"),
    examples=("letopis changes anna", "letopis changes ack anna v17"),
)  # fmt: skip
def changes(context: Context, asked: ChangesQuery) -> Rows[NewChange]:
    """List the versions that a client has not acknowledged yet, in the order of recording."""
    after = change_position(context.archive, _client(asked.client))
    rows = changes_since(context.archive, after, asked.limit)
    return Rows(list(map(new_change, rows)), {"cursor": f"v{rows[-1].id if rows else after}"})


class AcknowledgeCommand(Parameters):
    """The position of a client."""

    client: str = parameter(_CLIENT_HELP, argument=True, longest=64)
    cursor: str = parameter("The cursor of the last change that was processed.", argument=True, longest=19)


class ClientPosition(NamedTuple):
    """The current position of a client."""

    client: str
    cursor: str


@operation(
    "acknowledge", right=WRITE, verb="changes ack", route=("POST", "/changes/ack"), creates=False,
    sentence=lambda position: f"{position.client} has acknowledged everything up to {position.cursor}",
)  # fmt: skip
def acknowledge(context: Context, asked: AcknowledgeCommand) -> Value[ClientPosition]:
    """Acknowledge the changes up to a cursor; the client does not get them again."""
    client, found = _client(asked.client), _CURSOR.fullmatch(asked.cursor)
    if found is None:
        raise UsageError(f"'{asked.cursor[:40]}' is not a cursor; use one from the list of changes, such as v17")
    return Value(ClientPosition(client, f"v{acknowledge_changes(context.archive, client, int(found[1]))}"))
