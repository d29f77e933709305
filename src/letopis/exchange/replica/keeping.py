"""Contents that came by range, kept in a log of the clone's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from letopis.archive import Archive, Note
from letopis.catalog import ContentRow, Cursor
from letopis.exchange.replica.planning import Need
from letopis.exchange.replica.records import ContentRecord
from letopis.model import Headers
from letopis.store import Item, Placed


class Keeper:
    """Writes to a clone that was opened by whoever brings it up to date."""

    def __init__(self, archive: Archive, heads: Mapping[int, Headers]) -> None:
        self._archive = archive
        self._heads = heads

    def keep(self, pairs: Sequence[tuple[Need, bytes]]) -> None:
        """Appends contents to the clone's own log and enters their places, in one durable step."""
        with self._archive.transaction() as (cursor, store):
            placed = store.append([self._item(need, body) for need, body in pairs])
            store.sync()
            for (need, _), where in zip(pairs, placed, strict=True):
                self._enter(cursor, need.content, where)

    def _enter(self, cursor: Cursor, content: ContentRecord, where: Placed) -> None:
        assert where.place is not None
        contents = self._archive.catalog.contents
        found = contents.find(content.identity, content.sha1, cursor)
        if found is not None:
            contents.move(cursor, [(where.stored_bytes, where.method, *where.place, found.id)])
            return
        fields = (content.identity, content.sha1, content.raw_bytes, where.stored_bytes, where.method)
        contents.add(cursor, ContentRow(0, *fields, *where.place))

    def _item(self, need: Need, body: bytes) -> Item:
        check = need.check
        headers = self._heads.get(check.head, ()) if check.head is not None else ()
        note = Note(check.status, headers, version=check.is_version)
        return Item(check.url.encode("utf-8", "surrogatepass"), check.time, note.pack(), need.content.sha1, body)
