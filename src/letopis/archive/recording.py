"""The only commit point: captures become checks, contents and versions, all or nothing.

Order of writes: contents are written to a pack, the pack is synced, the catalogue commits. A crash before the commit
leaves bytes that nothing refers to, and loses nothing that was acknowledged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from letopis.archive.details import NO_DETAILS, CheckDetails
from letopis.archive.records import (
    SENT_PREFIX,
    SOURCE_PREFIX,
    Identity,
    NewCapture,
    PackNote,
    RecordedCapture,
    ServerResponse,
    identify,
)
from letopis.archive.requests import RequestPlaces
from letopis.catalog import OUTCOME_CODES, CaptureRow, Catalog, ContentRow, Cursor, ResourceRow, VersionRow
from letopis.catalog.contents import RenderingSource, VolatileFields
from letopis.catalog.imported import PayloadRow, SourceRecordRow
from letopis.catalog.versions import PendingRows, ResourceState, resource_states
from letopis.errors import Damaged
from letopis.model import Headers, Outcome
from letopis.store import AppendResult, VersionItem

_NOT_MODIFIED = 304
_EMPTY = identify(b"")


class ContentWriter(Protocol):
    """The part of the store that recording needs."""

    def append(self, items: Sequence[VersionItem]) -> list[AppendResult]:
        """Buffers contents and returns their places."""

    def sync(self) -> None:
        """Makes everything appended durable."""


class _UrlState:
    """A URL inside one batch, as it will be after the commit: `identity` are the digests of its newest version before
    the batch; the row of one that `is_new` is not written yet.
    """

    __slots__ = ("checked", "identity", "is_new", "newest", "planned", "row", "taken", "title", "versions")

    def __init__(
        self, row: ResourceRow, versions: int, newest: VersionRow | None, checked: int | None, planned: int | None,
        identity: Identity | None = None, *, is_new: bool = False,
    ) -> None:  # fmt: skip
        self.row, self.versions, self.newest, self.checked, self.planned = row, versions, newest, checked, planned
        self.identity, self.is_new = identity, is_new
        self.title: str | None = None
        self.taken: set[int] = set()


class _BatchPlan:
    """What one batch has to store: contents by identity, items for the packs, newest by URL."""

    def __init__(self, identities: list[Identity | None]) -> None:
        self.identities = identities
        self.stored: dict[tuple[int, bytes], int] = {}
        self.known: dict[Identity, int] = {}
        self.items: list[VersionItem] = []
        self.fresh: list[tuple[Identity, int]] = []
        self.latest: dict[str, Identity] = {}


class Recorder:
    """Writes batches of captures."""

    _new: PendingRows
    _arrivals: Sequence[NewCapture]

    def __init__(self, catalog: Catalog, store: ContentWriter, *, record_same: bool, now: int = 0) -> None:
        """`now` is the time of the commit; dated captures do not use it."""
        self._catalog = catalog
        self._store = store
        self._record_same = record_same
        self._now = now
        self._states: dict[str, _UrlState] = {}
        self._requests = RequestPlaces(catalog.heads)

    def record(self, cursor: Cursor, arrivals: Sequence[NewCapture]) -> list[RecordedCapture]:
        """Writes everything or nothing; durable when the caller's transaction has committed."""
        self._states = self._known(cursor, arrivals)
        self._arrivals = arrivals = [self._timed(cursor, arrival) for arrival in arrivals]
        contents = self._place(cursor, arrivals)
        bodies = self._place_sources(cursor, arrivals)
        self._store.sync()
        self._catalog.heads.learn(cursor, (arrival.headers for arrival in arrivals if arrival.headers))
        # One that arrives late may turn a check that saw the previous version again into a version.
        self._new = PendingRows(cursor, 2 * sum(arrival.versioned for arrival in arrivals))
        done = [self._one(cursor, arrival, content) for arrival, content in zip(arrivals, contents, strict=True)]
        self._new.write()
        self._keep_sources(cursor, arrivals, bodies, done)
        self._touch(cursor)
        return done

    def _touch(self, cursor: Cursor) -> None:
        """Writes what the batch means for its URLs: rows of new ones, and what changed of the others."""
        known, new = [], []
        for state in self._states.values():
            newest = state.newest.id if state.newest else None
            if state.is_new:
                row = state.row._replace(versions=state.versions, newest=newest, checked=state.checked)
                new.append((row, state.title))
            else:
                known.append((state.versions, newest, state.checked or 0, state.title, state.row.id))
        self._catalog.resources.add_many(cursor, new)
        self._catalog.resources.touch(cursor, known)

    def _known(self, cursor: Cursor, arrivals: Sequence[NewCapture]) -> dict[str, _UrlState]:
        """The URLs of the batch as they were before it, in as few statements as possible."""
        urls = list(dict.fromkeys(arrival.url for arrival in arrivals))
        known = {url: _url_state(found) for url, found in resource_states(cursor, urls).items()}
        for row in self._catalog.resources.numbered(cursor, [url for url in urls if url not in known]):
            known[row.url] = _UrlState(row, 0, None, None, None, is_new=True)
        return known

    def _timed(self, cursor: Cursor, arrival: NewCapture) -> NewCapture:
        """Each check of a URL has a different millisecond.

        One that was overtaken by others keeps its time and is inserted before them: after them, it would mean that the
        page returned to its old state. Only if the clock was set back are checks kept in order.
        """
        state = self._states[arrival.url]
        time = arrival.time
        if state.planned is not None and time <= state.planned:
            if not arrival.dated and state.planned >= self._now:
                time = state.planned + 1
            while time in state.taken or self._catalog.versions.taken(cursor, state.row.id, time):
                time += 1
        state.taken.add(time)
        state.planned = max(time, state.planned or time)
        return arrival if time == arrival.time else arrival._replace(time=time)

    def _place(self, cursor: Cursor, arrivals: Sequence[NewCapture]) -> list[tuple[Identity, int] | None]:
        """Stores every content once; returns its id for each arrival.

        Nothing is written for a content that the newest version of the URL already has.
        """
        plan = _BatchPlan([_identity_of(arrival) for arrival in arrivals])
        plan.stored = self._stored(cursor, arrivals, plan.identities)
        for arrival, identity in zip(arrivals, plan.identities, strict=True):
            self._plan(plan, arrival, identity)
        placed = [where for where in self._store.append(plan.items) if where.place is not None]
        rows = [_content_row(*fresh, where) for fresh, where in zip(plan.fresh, placed, strict=True)]
        for (identity, _), number in zip(plan.fresh, self._catalog.contents.add_many(cursor, rows), strict=True):
            plan.known[identity] = number
        return [None if identity is None else (identity, plan.known[identity]) for identity in plan.identities]

    def _stored(
        self, cursor: Cursor, arrivals: Sequence[NewCapture], identities: Sequence[Identity | None]
    ) -> dict[tuple[int, bytes], int]:
        """Which contents are already stored; those of the newest version of their URL need no query."""
        wanted = {
            (identity.key, identity.sha1)
            for arrival, identity in zip(arrivals, identities, strict=True)
            if identity is not None and self._states[arrival.url].identity != identity
        }
        return self._catalog.contents.find_many(wanted, cursor)

    def _plan(self, plan: _BatchPlan, arrival: NewCapture, identity: Identity | None) -> None:
        if identity is None or arrival.body is None:
            return
        state = self._states[arrival.url]
        if identity not in plan.known and state.newest is not None and state.identity == identity:
            plan.known[identity] = state.newest.content
        if identity not in plan.known:
            found = plan.stored.get((identity.key, identity.sha1), 0)
            plan.known[identity] = found
            if not found and not arrival.body and identity != _EMPTY:
                raise Damaged(
                    f"the content {identity.text} that {arrival.url} repeats is no longer here; import it again"
                )
            if not found:
                plan.fresh.append((identity, len(arrival.body)))
                plan.items.append(_pack_item(arrival, identity, arrival.body))
                plan.latest[arrival.url] = identity
                return
        if not self._is_latest(plan, arrival.url, identity):
            plan.items.append(_pack_item(arrival, identity, None))
            plan.latest[arrival.url] = identity

    def _is_latest(self, plan: _BatchPlan, url: str, identity: Identity) -> bool:
        if url in plan.latest:
            return plan.latest[url] == identity
        newest = self._states[url].newest
        return newest is not None and newest.content == plan.known[identity]

    def _one(self, cursor: Cursor, arrival: NewCapture, content: tuple[Identity, int] | None) -> RecordedCapture:
        state = self._states[arrival.url]
        first = state.checked is None
        if first:
            self._new.listed(state.row)
        time = arrival.time
        if state.checked is not None and time <= state.checked:
            return self._late(cursor, state, arrival, content)
        state.checked = time
        state.title = arrival.title or state.title
        if content is not None and arrival.versioned and self._is_news(state, content[1]):
            return self._version(cursor, state, arrival, content, time, first)
        return self._capture(cursor, state, arrival, content, time, first)

    def _extra(
        self, cursor: Cursor, arrival: NewCapture, own: VolatileFields | None, before: VersionRow | None
    ) -> str | None:
        """The details of the row, including how the capture was made; `before` is the version before it."""
        sent, page = arrival.request, arrival.page
        known = before.head if before is not None else None
        request = self._requests.request(cursor, sent, arrival.headers, known) if sent is not None else None
        if arrival.details is NO_DETAILS and own is None and page is None:
            return self._requests.text(request) if request is not None else None
        set_page = None
        if page is not None:
            first = self._arrivals[page]
            set_page = self._requests.page(cursor, first.url, first.time - arrival.time)
        return arrival.details.with_own(own, arrival.time).pack(request, set_page)

    def _is_news(self, state: _UrlState, content: int) -> bool:
        return self._record_same or state.newest is None or state.newest.content != content

    def _version(
        self,
        cursor: Cursor,
        state: _UrlState,
        arrival: NewCapture,
        content: tuple[Identity, int],
        time: int,
        first: bool,
    ) -> RecordedCapture:
        identity, number = content
        head = self._catalog.heads.place(cursor, arrival.headers)
        # A server that reports something new here as not modified had sent it in full before.
        status = 200 if arrival.status == _NOT_MODIFIED else arrival.status
        row = VersionRow(
            0, state.row.id, state.versions, time, number, head.id, status, _bit(arrival.meaningful),
            self._extra(cursor, arrival, head.own, state.newest),
        )  # fmt: skip
        same = state.newest is not None and state.newest.content == number
        state.newest = self._new.version(row)
        if arrival.as_sent is not None:
            self._keep_sent(cursor, state.newest.id, arrival, arrival.as_sent)
        state.versions += 1
        outcome = Outcome.UNCHANGED if same else Outcome.CHANGED if row.number else Outcome.NEW
        return RecordedCapture(arrival.url, row.resource, time, outcome, row.number, state.newest.id, identity, first)

    def _keep_sent(self, cursor: Cursor, version: int, arrival: NewCapture, sent: ServerResponse) -> None:
        """Stores the answer of a rendered version, durably; such versions are few, so each has its own sync."""
        identity = identify(sent.body)
        found = self._catalog.contents.find(identity.key, identity.sha1, cursor)
        note = PackNote(arrival.status, sent.headers, version=False)
        body = None if found else sent.body
        item = VersionItem(SENT_PREFIX + arrival.url.encode(), arrival.time, note.pack(), identity.sha1, body)
        (placed,) = self._store.append([item])
        self._store.sync()
        size = len(sent.body)
        number = found.id if found else self._catalog.contents.add(cursor, _content_row(identity, size, placed))
        self._catalog.renderings.add(
            cursor, version, RenderingSource(number, self._catalog.heads.add(cursor, sent.headers))
        )

    def _capture(
        self,
        cursor: Cursor,
        state: _UrlState,
        arrival: NewCapture,
        content: tuple[Identity, int] | None,
        time: int,
        first: bool,
    ) -> RecordedCapture:
        outcome = arrival.outcome
        if content is not None and arrival.versioned:
            outcome = Outcome.UNCHANGED
        newest = state.newest
        current = newest.number if newest else None
        kept = content[1] if content is not None and not arrival.versioned else None
        head = self._catalog.heads.place(cursor, arrival.headers) if arrival.headers else None
        row = CaptureRow(
            state.row.id, time, arrival.status, OUTCOME_CODES[outcome], current, head.id if head else None, kept,
            self._extra(cursor, arrival, head.own if head else None, newest),
        )  # fmt: skip
        self._new.capture(row)
        identity = content[0] if content is not None else None
        return RecordedCapture(
            arrival.url, row.resource, time, outcome, current, newest.id if newest else None, identity, first
        )

    def _late(
        self, cursor: Cursor, state: _UrlState, arrival: NewCapture, content: tuple[Identity, int] | None
    ) -> RecordedCapture:
        """A check from before what is already known: one with a given date, or one that others overtook."""
        self._new.write()  # some of it may have to be moved
        versions, resource, time = self._catalog.versions, state.row.id, arrival.time
        before = versions.at(resource, state.versions, time, cursor)
        number = before.number + 1 if before else 0
        after = versions.number(resource, number, cursor)
        if content is None or not arrival.versioned or (before is not None and before.content == content[1]):
            held = _UrlState(state.row, number, before, state.checked, state.planned)
            return self._capture(cursor, held, arrival, content, time, first=False)
        again = versions.seen_again(cursor, before, time) if before is not None else None
        if after is not None and after.content == content[1] and again is None:
            head = self._catalog.heads.place(cursor, arrival.headers)
            extra = self._extra(cursor, arrival, head.own, before)
            versions.begin_earlier(cursor, after._replace(time=time, head=head.id, status=arrival.status, extra=extra))
            versions.add_capture(cursor, _seen_again(after))
            state.newest = versions.by_id(after.id, cursor) if after.number == state.versions - 1 else state.newest
            return RecordedCapture(
                arrival.url, resource, time, Outcome.UNCHANGED, after.number, after.id, content[0], False
            )
        done = self._insert(cursor, state, arrival, content, time, number)
        if before is not None:
            self._part(cursor, state, before, again)
        return done

    def _place_sources(self, cursor: Cursor, arrivals: Sequence[NewCapture]) -> dict[int, int]:
        """Stores original bodies of imported records that differ from those of their captures; contents by arrival."""
        bodies = {place: one.source.body for place, one in enumerate(arrivals) if one.source and one.source.body}
        if not bodies:
            return {}
        identities = {place: identify(body) for place, body in bodies.items()}
        known = self._catalog.contents.find_many({(one.key, one.sha1) for one in identities.values()}, cursor)
        fresh = {one: place for place, one in identities.items() if (one.key, one.sha1) not in known}
        items = [_source_item(arrivals[place], one, bodies[place]) for one, place in fresh.items()]
        rows = [
            _content_row(one, len(bodies[place]), where)
            for (one, place), where in zip(fresh.items(), self._store.append(items), strict=True)
        ]
        for one, number in zip(fresh, self._catalog.contents.add_many(cursor, rows), strict=True):
            known[one.key, one.sha1] = number
        return {place: known[one.key, one.sha1] for place, one in identities.items()}

    def _keep_sources(
        self, cursor: Cursor, arrivals: Sequence[NewCapture], bodies: dict[int, int], done: Sequence[RecordedCapture]
    ) -> None:
        """Stores what imported records contain besides their checks, and the digests that their writers declared."""
        records, payloads = [], {}
        for place, (arrival, row) in enumerate(zip(arrivals, done, strict=True)):
            source = arrival.source
            if source is None:
                continue
            if source.data:
                records.append(SourceRecordRow(row.resource, row.time, source.record, source.data, bodies.get(place)))
            if source.digest and row.identity is not None:
                payloads[source.digest] = PayloadRow(source.digest, row.identity.key, row.identity.sha1)
        if records:
            self._catalog.imported.add(cursor, records)
        if payloads:
            self._catalog.imported.add_payloads(cursor, payloads.values())

    def keep_records(self, cursor: Cursor, checks: Sequence[tuple[int, int, NewCapture]]) -> None:
        """Stores the records of checks that exist without them: resource and time of each, and what was imported again.

        They get the headers of their records as well.
        """
        arrivals = [arrival for _, _, arrival in checks]
        self._catalog.heads.learn(cursor, (arrival.headers for arrival in arrivals if arrival.headers))
        for resource, time, arrival in checks:
            self._give_head(cursor, resource, time, arrival.headers)
        bodies = self._place_sources(cursor, arrivals)
        self._store.sync()
        done = [
            RecordedCapture(one.url, resource, time, one.outcome, None, None, one.identity, False)
            for resource, time, one in checks
        ]
        self._keep_sources(cursor, arrivals, bodies, done)

    def _give_head(self, cursor: Cursor, resource: int, time: int, headers: Headers) -> None:
        """The headers of an answer of which an earlier release did not keep all fields."""
        if not headers:
            return
        head = self._catalog.heads.place(cursor, headers)

        def details(extra: str | None) -> str | None:
            return CheckDetails.unpack(extra)._replace(own=None).with_own(head.own, time).pack()

        self._catalog.versions.give_head(cursor, resource, time, head.id, details)

    def _insert(
        self,
        cursor: Cursor,
        state: _UrlState,
        arrival: NewCapture,
        content: tuple[Identity, int],
        time: int,
        number: int,
    ) -> RecordedCapture:
        self._catalog.versions.make_room(cursor, state.row.id, number)
        held = _UrlState(state.row, number, None, state.checked, state.planned)
        done = self._version(cursor, held, arrival, content, time, first=False)
        if number == state.versions:
            state.newest = held.newest
        elif state.newest is not None:
            state.newest = state.newest._replace(number=state.newest.number + 1)
        state.versions += 1
        return done

    def _part(self, cursor: Cursor, state: _UrlState, before: VersionRow, again: CaptureRow | None) -> None:
        """Corrects checks when a version arrived late between the version that they name and them.

        If one of them saw the earlier version again, the page returned to it then.
        """
        self._new.write()
        versions, number = self._catalog.versions, before.number + 1
        inserted = versions.number(before.resource, number, cursor)
        assert inserted is not None, "it was just inserted"
        versions.follow(cursor, inserted, before.number)
        if again is None:
            return
        versions.make_room(cursor, before.resource, number + 1)
        status = 200 if again.status == _NOT_MODIFIED else again.status
        row = before._replace(
            number=number + 1, time=again.time, head=again.head or before.head, status=status, meaningful=None,
            extra=again.extra,
        )  # fmt: skip
        versions.drop_capture(cursor, again)
        returned = self._new.version(row)
        versions.follow(cursor, returned, number)
        self._note_return(cursor, state.row.url, returned)
        if returned.number == state.versions:
            state.newest = returned
        elif state.newest is not None:
            state.newest = state.newest._replace(number=state.newest.number + 1)
        state.versions += 1

    def _note_return(self, cursor: Cursor, url: str, row: VersionRow) -> None:
        """The packs contain a fact for every version, also for those with the content of an earlier one."""
        content = self._catalog.contents.by_id(row.content, cursor)
        assert content is not None, "the version that returned has it"
        headers = self._catalog.heads.get(row.head, cursor) if row.head else ()
        note = PackNote(row.status, headers, version=True)
        self._store.append([VersionItem(url.encode(), row.time, note.pack(), content.sha1, None)])
        self._store.sync()


def _url_state(found: ResourceState) -> _UrlState:
    row, newest = found.row, found.newest
    identity = Identity(found.sha1, found.identity) if newest is not None else None
    return _UrlState(row, row.versions, newest, row.checked, row.checked, identity)


def _identity_of(arrival: NewCapture) -> Identity | None:
    if arrival.body is None:
        return None
    return arrival.identity or identify(arrival.body)


def _pack_item(arrival: NewCapture, identity: Identity, body: bytes | None) -> VersionItem:
    note = PackNote(arrival.status, arrival.headers, version=arrival.versioned)
    return VersionItem(arrival.url.encode(), arrival.time, note.pack(), identity.sha1, body)


def _source_item(arrival: NewCapture, identity: Identity, body: bytes) -> VersionItem:
    note = PackNote(arrival.status, arrival.headers, version=False)
    return VersionItem(SOURCE_PREFIX + arrival.url.encode(), arrival.time, note.pack(), identity.sha1, body)


def _content_row(identity: Identity, size: int, placed: AppendResult) -> ContentRow:
    assert placed.place is not None
    return ContentRow(0, identity.key, identity.sha1, size, placed.stored_bytes, placed.method, *placed.place)


def _seen_again(row: VersionRow) -> CaptureRow:
    """The check that a version began with, after an earlier one has replaced it."""
    unchanged = OUTCOME_CODES[Outcome.UNCHANGED]
    return CaptureRow(row.resource, row.time, row.status, unchanged, row.number, row.head, None, row.extra)


def _bit(value: bool | None) -> int | None:
    return None if value is None else int(value)
