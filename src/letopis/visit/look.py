"""The whole check on one screen: new, changed, unchanged, unavailable, too large, refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from letopis import extract
from letopis.archive import Archive, Recorded, identify
from letopis.catalog import Cursor
from letopis.change import Fingerprint, PageHabits, compare, fingerprint
from letopis.model import (
    Change,
    FailureKind,
    Headers,
    Limits,
    Link,
    LinkType,
    Observation,
    Outcome,
    Page,
    Request,
    Response,
)
from letopis.urls import join
from letopis.visit.known import Known, known_of
from letopis.visit.memory import Memory

_REFUSED = (FailureKind.FORBIDDEN_ADDRESS, FailureKind.ROBOTS)


class Fetcher(Protocol):
    """Whoever can ask the web."""

    async def fetch(self, request: Request) -> Response:
        """The answer, or what went wrong, never an exception."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How to look: with which limits, at which addresses, how far."""

    limits: Limits
    private_ok: bool = True
    follow: bool = True
    head: bool = False
    force: bool = False


class Visitor:
    """Looks at URLs for whoever asks, and records what it saw."""

    def __init__(self, archive: Archive, client: Fetcher) -> None:
        self._archive = archive
        self._client = client
        self._memory = Memory(archive)

    async def look(self, url: str, manner: Manner) -> Observation:
        """Fetches, reads and compares; writes nothing."""
        known = known_of(self._archive, url)
        response = await self._client.fetch(_request(url, known, manner))
        if response.warnings:
            self._memory.doubt(response)
        return self.judge(response, known)

    def judge(self, response: Response, known: Known | None) -> Observation:
        """What an answer means, given what was known."""
        if response.failure is not None and response.failure.kind in _REFUSED:
            return Observation(response, Outcome.REFUSED)
        if response.failure is not None and response.failure.kind is FailureKind.TOO_LARGE:
            return Observation(response, Outcome.TOO_LARGE)
        if not response.available:
            return Observation(response, Outcome.UNAVAILABLE)
        if response.status == 304 or response.skipped:
            return Observation(response, Outcome.UNCHANGED)
        if response.status >= 300:
            return Observation(response, Outcome.UNCHANGED, _signpost(response))
        if known is not None and known.is_same(identify(response.body)):
            return Observation(response, Outcome.UNCHANGED, change=Change(True, True, False))
        page = _read(response.body, response.final_url, response.headers)
        if known is None:
            self._memory.met(response.url, fingerprint(page))
            return Observation(response, Outcome.NEW, page)
        return Observation(response, Outcome.CHANGED, page, self._compare(response.url, page, known))

    def _compare(self, url: str, page: Page, known: Known) -> Change:
        """Against the page's own last version; what recurs on the host or at every visit is noise."""
        before = self._archive.answers.by_id(known.version)
        old = fingerprint(_read(before.body, known.final_url, before.headers))
        new = fingerprint(page)
        habits = self._memory.habits(known.resource, known.number)
        profile = self._memory.profile(url)
        change = compare(new, [old], profile, self._archive.settings.change, habits=habits)
        self._learn(url, habits, old, new)
        return change

    def _learn(self, url: str, habits: PageHabits, old: Fingerprint, new: Fingerprint) -> None:
        habits.observe(old, new)
        self._memory.learned(url, habits)
        self._memory.met(url, new)

    def record(
        self, looks: Sequence[Observation], extend: Callable[[Cursor, list[Recorded]], None] | None = None
    ) -> list[Recorded]:
        """Commits looks, what they taught and what `extend` adds, as one; durable when it returns."""

        def together(cursor: Cursor, done: list[Recorded]) -> None:
            self._memory.save(cursor, done)
            if extend is not None:
                extend(cursor, done)

        return self._archive.record(looks, together)


def _read(body: bytes, url: str, headers: Headers) -> Page:
    """The page without a guess at its language, which costs ten times the rest; search makes that later."""
    return extract.page(body, url, headers, detect_language=False)


def _signpost(response: Response) -> Page:
    """A redirect that was not followed: a page with one link."""
    target = join(response.url, response.header("location"))
    links = (Link(target, LinkType.REDIRECT),) if target else ()
    return Page(response.url, "", links=links)


def _request(url: str, known: Known | None, manner: Manner) -> Request:
    limits = replace(manner.limits, max_bytes=2**40) if manner.force else manner.limits
    request = Request(
        url,
        method="HEAD" if manner.head else "GET",
        limits=limits,
        private_ok=manner.private_ok,
        follow=manner.follow,
    )
    if known is None:
        return request
    return replace(
        request,
        etag=known.etag,
        last_modified=known.last_modified,
        unchanged_if=known.unchanged_if(),
        validators_for=known.final_url,
    )
