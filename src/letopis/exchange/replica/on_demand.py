"""Contents that a partial clone has not got yet: fetched when they are read, checked, and kept."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from letopis.archive import Archive
from letopis.catalog import ABSENT, ContentRow
from letopis.errors import Busy, NotFound, NotReady, Unavailable, UnknownVersion
from letopis.exchange.replica.clone_state import read_state
from letopis.exchange.replica.clones import local_settings
from letopis.exchange.replica.contents import CloneLogWriter, fetch_content
from letopis.exchange.replica.index_records import PACK_MARK, CheckRecord, ContentRecord, parse_segment
from letopis.exchange.replica.origin import open_origin
from letopis.exchange.replica.pack_files import MissingContent, PackFiles
from letopis.exchange.replica.release import CloneFolder
from letopis.model import Headers
from letopis.store import ContentPlace
from letopis.zrec import ZrecReader

_CHECK_OF_CONTENT = (
    "SELECT r.url, t.time, t.status, t.head, {version} FROM {table} t JOIN resource r ON r.id = t.resource "
    "WHERE t.content = ? LIMIT 1"
)


def fetch_on_demand(archive: Archive) -> Archive:
    """Lets a clone fetch what it lacks when somebody reads it."""
    archive.answers.supplier = _OnDemandFetcher(archive).supply
    return archive


class _OnDemandFetcher:
    """Fetches one content at a time; usable from any thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._folder = CloneFolder(archive.folder)

    def supply(self, number: int) -> bytes:
        """The body of a content by its id; `Unavailable` when the origin is away."""
        row = self._archive.catalog.contents.by_id(number)
        if row is None:
            raise UnknownVersion(f"content {number} is not in this archive any more")
        if row.method != ABSENT:
            return self._archive.store.read(ContentPlace(row.pack, row.place, row.slot), row.stored_bytes).body
        need = self._need(row)
        body = self._fetched(need)
        with suppress(NotReady, Busy):
            # Whoever may not write here can still read.
            self._keep(need, body)
        return body

    def _need(self, row: ContentRow) -> MissingContent:
        ask = self._archive.catalog.database.one
        told = ask(_CHECK_OF_CONTENT.format(table="version", version=1), (row.id,))
        told = told or ask(_CHECK_OF_CONTENT.format(table="capture", version=0), (row.id,))
        if told is None:
            raise UnknownVersion(f"content {row.id} belongs to no version any more")
        url, time, status, head, version = told
        check = CheckRecord(url, time, status, head, None if version else 0, None, None, None, None, None)
        place = (row.pack, row.place, row.slot)
        return MissingContent(
            ContentRecord(row.sha1, row.identity, row.raw_bytes, row.stored_bytes, row.method, *place), check
        )

    def _fetched(self, need: MissingContent) -> bytes:
        """In a loop of its own: the caller may be inside one, or have none."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, self._over_network(need)).result()

    async def _over_network(self, need: MissingContent) -> bytes:
        address = read_state(self._folder).origin
        settings = self._archive.settings.fetch
        try:
            async with open_origin(address, settings, self._archive.clock) as origin:
                return await fetch_content(origin, self._files(need.content.pack), need.content)
        except NotFound:
            raise Unavailable(
                f"{address} has been published anew and no longer has that content where it was; "
                f"run 'letopis pull {self._folder.archive}', then try again"
            ) from None
        except Unavailable as error:
            raise Unavailable(
                f"this clone has not fetched that content yet, and its origin is away ({error}); try again later"
            ) from None

    def _files(self, pack: int) -> PackFiles:
        with ZrecReader(self._folder.index) as reader:
            return PackFiles(parse_segment(line) for line in reader.starting(PACK_MARK + b"%08d" % pack))

    def _keep(self, need: MissingContent, body: bytes) -> None:
        heads: dict[int, Headers] = {}
        if need.check.head is not None:
            heads[need.check.head] = self._archive.catalog.heads.get(need.check.head)
        settings = local_settings(self._archive.settings)
        with Archive(self._folder.archive, settings=settings, following=True) as archive:
            CloneLogWriter(archive, heads).keep([(need, body)])
