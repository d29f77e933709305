"""Rows of a clone made equal to the records of an index, address by address.

Every step compares before it writes, so that it can be done again after a
kill, and a version keeps its id while its time and content stay the same:
the followers of the log see only what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from letopis.catalog import ABSENT, CaptureRow, Catalog, ContentRow, Cursor, ResourceRow, VersionRow
from letopis.errors import Damaged
from letopis.exchange.replica.records import CheckRecord, ContentRecord
from letopis.model import Headers

Held = Callable[[ContentRecord], bool]
"""Whether the clone has the origin's pack file in which a content lies."""


class Applied(NamedTuple):
    """How many rows a batch changed."""

    versions_added: int = 0
    versions_removed: int = 0


class Reconciler:
    """Writes inside the caller's transaction."""

    def __init__(self, catalog: Catalog, heads: Mapping[int, Headers], held: Held, *, repack: bool) -> None:
        self._catalog = catalog
        self._heads = heads
        self._held = held
        self._repack = repack

    def key(self, cursor: Cursor, key: bytes, addresses: Mapping[str, Sequence[CheckRecord]]) -> Applied:
        """Makes all addresses of one SURT key what the index says of them."""
        done = [self._address(cursor, url, checks) for url, checks in addresses.items()]
        name = key.decode("utf-8", "surrogatepass")
        known = cursor.all("SELECT r.url FROM surt s JOIN resource r ON r.id = s.resource WHERE s.name = ?", (name,))
        done += [self._address(cursor, url, ()) for (url,) in known if url not in addresses]
        return Applied(sum(one[0] for one in done), sum(one[1] for one in done))

    def _address(self, cursor: Cursor, url: str, checks: Sequence[CheckRecord]) -> Applied:
        row = self._catalog.resources.ensure(cursor, url)
        newest, applied = self._versions(cursor, row, [check for check in checks if check.is_version])
        self._captures(cursor, row, [check for check in checks if not check.is_version])
        versions = sum(check.is_version for check in checks)
        last = max((check.time for check in checks), default=None)
        title = checks[0].title if checks else None
        cursor.run(
            "UPDATE resource SET versions = ?, newest = ?, checked = ?, title = ? WHERE id = ?",
            (versions, newest, last, title, row.id),
        )
        if checks:
            self._catalog.resources.list_captured(cursor, row)
        else:
            cursor.run("DELETE FROM surt WHERE resource = ?", (row.id,))
        return applied

    def _versions(self, cursor: Cursor, row: ResourceRow, checks: Sequence[CheckRecord]) -> tuple[int | None, Applied]:
        """The id of the newest version, and what changed."""
        old = {(one.time, one.content): one for one in self._catalog.versions.of(row.id, cursor)}
        newest, added = None, 0
        for number, check in enumerate(checks):
            assert check.content is not None
            content = self._content(cursor, check.content)
            fields = (content, self._head(cursor, check), check.status, check.meaningful, check.extra)
            wanted = VersionRow(0, row.id, number, check.time, *fields)
            known = old.pop((check.time, content), None)
            newest = self._catalog.versions.add(cursor, wanted) if known is None else known.id
            added += known is None
            if known is not None and known[1:] != wanted[1:]:
                self._change(cursor, known.id, wanted)
        for gone in old.values():
            cursor.run("DELETE FROM version WHERE id = ?", (gone.id,))
        return newest, Applied(added, len(old))

    def _change(self, cursor: Cursor, number: int, row: VersionRow) -> None:
        cursor.run(
            "UPDATE version SET number = ?, head = ?, status = ?, meaningful = ?, extra = ? WHERE id = ?",
            (row.number, row.head, row.status, row.meaningful, row.extra, number),
        )

    def _captures(self, cursor: Cursor, row: ResourceRow, checks: Sequence[CheckRecord]) -> None:
        old = {one.time: one for one in self._catalog.versions.captures(row.id, cursor)}
        for check in checks:
            wanted = self._capture(cursor, row.id, check)
            known = old.pop(check.time, None)
            if known != wanted:
                self._drop_capture(cursor, row.id, check.time)
                self._catalog.versions.add_capture(cursor, wanted)
        for time in old:
            self._drop_capture(cursor, row.id, time)

    def _capture(self, cursor: Cursor, resource: int, check: CheckRecord) -> CaptureRow:
        head = self._head(cursor, check) if check.head is not None else None
        content = self._content(cursor, check.content) if check.content is not None else None
        outcome = check.outcome or 0
        return CaptureRow(resource, check.time, check.status, outcome, check.number, head, content, check.extra)

    def _drop_capture(self, cursor: Cursor, resource: int, time: int) -> None:
        cursor.run("DELETE FROM capture WHERE resource = ? AND time = ?", (resource, time))

    def _head(self, cursor: Cursor, check: CheckRecord) -> int:
        try:
            return self._catalog.heads.add(cursor, self._heads[check.head or 0])
        except KeyError:
            raise Damaged(f"the published index lacks headers {check.head}; publish the archive again") from None

    def _content(self, cursor: Cursor, content: ContentRecord) -> int:
        """The id of a content; one that is already here stays where it is."""
        held = self._held(content)
        method = content.method if held else ABSENT
        place = (content.pack, content.place, content.slot)
        found = self._catalog.contents.find(content.identity, content.sha1, cursor)
        if found is None:
            fields = (content.identity, content.sha1, content.raw_bytes, content.stored_bytes, method)
            return self._catalog.contents.add(cursor, ContentRow(0, *fields, *place))
        moves = found.method == ABSENT or (self._repack and held)
        if moves and (found.method, *found[6:]) != (method, *place):
            self._catalog.contents.move(cursor, [(content.stored_bytes, method, *place, found.id)])
        return found.id
