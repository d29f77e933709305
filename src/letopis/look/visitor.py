"""One look at a URL: new, changed, unchanged, unavailable, too large or refused, and the check it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from letopis.archive import Archive, RecordedCapture, digest_text, identify
from letopis.archive.records import details_of
from letopis.catalog import Cursor
from letopis.errors import Damaged, NotFound
from letopis.look.known import KnownVersion, UntrustedDigests, header_suffices, known_version
from letopis.model import (
    Change,
    Check,
    FailureKind,
    Limits,
    Link,
    LinkType,
    Observation,
    Outcome,
    Page,
    Request,
    Response,
    from_millis,
)
from letopis.urls import join

if TYPE_CHECKING:
    from letopis.archive.link_cache import LinkCacheWriter
    from letopis.look.noise import PageReader


_REFUSALS = (FailureKind.FORBIDDEN_ADDRESS, FailureKind.ROBOTS)
_NO_CHANGE = Change(same_bytes=True, same_text=True, meaningful=False)


class Fetcher(Protocol):
    """Whoever can ask the web."""

    async def fetch(self, request: Request) -> Response:
        """The answer, or what went wrong, never an exception."""


class LookOptions(NamedTuple):
    """How to look: with which limits, at which addresses, how far.

    `head` asks for the header first and downloads only what it says has
    changed, or what is not known yet. `skim` reads pages that are new no
    further than their links, but for a sample that teaches what the pages
    of their host have in common. `browser` looks at pages as a browser shows
    them; there is no header to ask first then. `reread` wants the links of
    pages that stayed the same as well.
    """

    limits: Limits
    private_ok: bool = True
    follow: bool = True
    head: bool = False
    force: bool = False
    skim: bool = False
    browser: bool = False
    reread: bool = False


class Visitor:
    """Looks at URLs for whoever asks, and records what it saw."""

    def __init__(
        self,
        archive: Archive,
        client: Fetcher,
        browser: Fetcher | None = None,
        link_cache: LinkCacheWriter | None = None,
    ) -> None:
        """With `handover` the index of links need not read again what is read here."""
        self._archive = archive
        self._link_cache = link_cache
        self._client = client
        self._browser = browser
        self._untrusted = UntrustedDigests(archive)
        self._reader: PageReader | None = None

    async def look(self, url: str, manner: LookOptions) -> Observation:
        """Fetches, reads and compares; writes nothing."""
        return await self.look_again(url, known_version(self._archive, url), manner)

    async def look_again(self, url: str, known: KnownVersion | None, manner: LookOptions) -> Observation:
        """The same for whoever has asked what is known, as for many URLs at once."""
        return self.judge(await self.ask(url, known, manner), known, manner)

    async def ask(self, url: str, known: KnownVersion | None, manner: LookOptions) -> Response:
        """Fetches alone; whoever asks judges the answer later."""
        if manner.browser:
            return await self._rendered(url, manner)
        if manner.head and known is not None:
            told = await self._client.fetch(_request(url, known, manner, "HEAD"))
            if header_suffices(told, known):
                # Nothing was downloaded: the newest version stands for the body.
                return told._replace(skipped=told.status < 300)
        response = await self._client.fetch(_request(url, known, manner))
        if response.warnings:
            self._untrusted.note(response)
        return response

    async def _rendered(self, url: str, manner: LookOptions) -> Response:
        """Asked for without conditions: scripts may show news on a document that stays the same."""
        assert self._browser is not None, "whoever wants pages rendered gives a browser"
        return await self._browser.fetch(_request(url, None, manner))

    def judge(self, response: Response, known: KnownVersion | None, manner: LookOptions) -> Observation:
        """What an answer means, given what was known."""
        if is_refused(response):
            return Observation(response, Outcome.REFUSED)
        if response.failure is not None and response.failure.kind is FailureKind.TOO_LARGE:
            return Observation(response, Outcome.TOO_LARGE)
        if not response.available:
            return Observation(response, Outcome.UNAVAILABLE)
        if response.status == 304 or response.skipped:
            return Observation(response, Outcome.UNCHANGED)
        if response.status >= 300:
            return Observation(response, Outcome.UNCHANGED, _redirect_page(response))
        identity = identify(response.body)
        if known is not None and known.is_same(identity):
            return Observation(response, Outcome.UNCHANGED, change=_NO_CHANGE, identity=identity)
        reader = self._reading()
        if manner.skim and known is None and not reader.learns_from(response.url, identity):
            page = reader.skim(response) if self._link_cache is None else reader.leads(response)
            return Observation(response, Outcome.NEW, page, identity=identity)
        return reader.read(response, known)._replace(identity=identity)

    def reread(self, look: Observation, base: str, manner: LookOptions) -> Observation:
        """A look at a page that stayed the same, with the page, which came from `base`: its links still lead on."""
        if look.outcome is not Outcome.UNCHANGED or look.page is not None:
            return look
        try:
            kept = self._archive.get(look.response.url)
        except (Damaged, NotFound):
            return look  # `verify` tells of it; the crawl goes on
        return look._replace(page=self._reading().again(kept.body, base, kept.headers, skim=manner.skim))

    def _reading(self) -> PageReader:
        if self._reader is None:
            # Loaded late on purpose: parsers and rules of comparison cost more start-up than a
            # thousand checks that find nothing new, and those are most checks.
            from letopis.look.noise import PageReader  # noqa: PLC0415

            self._reader = PageReader(self._archive)
        return self._reader

    def record(
        self, looks: Sequence[Observation], extend: Callable[[Cursor, list[RecordedCapture]], None] | None = None
    ) -> list[RecordedCapture]:
        """Commits looks, what they taught and what `extend` adds, as one; durable when it returns."""

        def together(cursor: Cursor, done: list[RecordedCapture]) -> None:
            self._untrusted.save(cursor)
            if self._reader is not None:
                self._reader.save(cursor, done)
            if extend is not None:
                extend(cursor, done)

        done = self._archive.record(looks, together)
        if self._link_cache is not None:
            self._link_cache.add(looks, done)
        return done


def is_refused(response: Response) -> bool:
    """Whether nobody was asked, since that is not allowed."""
    return response.failure is not None and response.failure.kind in _REFUSALS


def _redirect_page(response: Response) -> Page:
    """A redirect that was not followed: a page with one link."""
    target = join(response.url, response.header("location"))
    links = (Link(target, LinkType.REDIRECT),) if target else ()
    return Page(response.url, "", links=links)


def _request(url: str, known: KnownVersion | None, manner: LookOptions, method: str = "GET") -> Request:
    limits = manner.limits._replace(max_bytes=2**40) if manner.force else manner.limits
    if known is None:
        return Request(url, method=method, limits=limits, private_ok=manner.private_ok, follow=manner.follow)
    return Request(
        url,
        method=method,
        limits=limits,
        private_ok=manner.private_ok,
        follow=manner.follow,
        etag=known.told.etag,
        last_modified=known.told.last_modified,
        unchanged_if=known.unchanged_if(),
        validators_for=known.final_url,
    )


_VERSION_OUTCOMES = (Outcome.NEW, Outcome.CHANGED)


def check_of_look(
    look: Observation, done: RecordedCapture, known: KnownVersion | None, changed_for_you: bool | None = None
) -> Check | None:
    """Equal to the row that the history now ends with.

    None where only the record can tell: another process has recorded a
    version since `known` was read.
    """
    is_version, unchanged = (
        done.outcome in _VERSION_OUTCOMES,
        done.outcome is Outcome.UNCHANGED and done.number is not None,
    )
    current = None if is_version else known
    if not is_version and done.version != (known.version if known else None):
        return None
    details, response = details_of(look), look.response
    digest = done.identity.text if done.identity and is_version else ""
    if unchanged and current is not None:
        digest = digest_text(current.sha1)
    raw = len(response.body) if is_version else current.raw_bytes if unchanged and current else 0
    change = look.change
    return Check(
        url=done.url,
        final_url=response.final_url,
        checked_at=from_millis(done.time),
        available=done.available,
        status=response.status,
        outcome=done.outcome,
        version=done.number,
        digest=digest,
        length=details.length or raw,
        content_type=response.header("content-type"),
        redirects=details.hops,
        error=details.error,
        warnings=details.warnings,
        headers=response.headers,
        meaningful=(change.meaningful if change else None) if is_version else False if unchanged else None,
        score=details.score if is_version else 0.0 if unchanged else None,
        blocks=details.blocks if is_version else (),
        changed_for_you=changed_for_you,
    )
