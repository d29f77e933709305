"""Which links of a page are planned, and how soon. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from letopis.crawl.moved import may_move
from letopis.frontier import NewUrl
from letopis.model import LinkType, Observation, Page
from letopis.urls import Rules, Scope, Scopes, url_key, without_tracking
from letopis.urls import host as host_of

FOLLOWED = frozenset({LinkType.A, LinkType.AREA, LinkType.IFRAME, LinkType.REDIRECT, LinkType.FEED, LinkType.SITEMAP})
REQUISITES = frozenset({LinkType.IMG, LinkType.LINK, LinkType.SCRIPT, LinkType.CSS, LinkType.MEDIA})


@dataclass(frozen=True, slots=True)
class Selection:
    """What a crawl wants: its scope, depth, kinds of links and rules of addresses.

    `requisites` (images, styles, scripts of a page) are taken from any host.
    `max_depth` None means as deep as the links go.
    """

    scope: Scope | Scopes
    max_depth: int | None = None
    requisites: bool = False
    rules: Rules = field(default_factory=Rules)
    drop_tracking: bool = True

    def address(self, url: str) -> str | None:
        """The address that is really asked for, or None when the rules ignore it."""
        clean = without_tracking(url) if self.drop_tracking else url
        if not self.rules.redirects and not self.rules.varlists:
            return clean
        verdict = self.rules.apply(clean)
        return None if verdict.ignored else verdict.url

    def allows(self, url: str, depth: int) -> bool:
        """Whether an address may be fetched at that distance from the seeds."""
        return (self.max_depth is None or depth <= self.max_depth) and self.scope.allows(url)

    def links(self, look: Observation, depth: int, met: Container[str] = ()) -> list[NewUrl]:
        """Candidates that a finished look brings, in document order, each address once.

        Most have been seen before, so whether they are wanted is asked later,
        of those that passed the sieve: see `admitted`. Their host is still empty.
        Addresses in `met` have passed it already and are left out.
        """
        found: dict[str, NewUrl] = {}
        location = redirect_of(look)
        if location:
            seed = look.response.url
            moves = depth == 0 and self.scope.reaches(seed) and may_move(seed, location)
            self._take(found, location, depth, moves=moves)
        if look.page is not None and "nofollow" not in look.page.robots:
            self._take_links(found, look.page, depth, met)
        return list(found.values())

    def admitted(self, candidates: Iterable[NewUrl]) -> list[NewUrl]:
        """Those that may be fetched, with their hosts."""
        return [
            candidate if candidate.host else candidate._replace(host=host_of(candidate.url))
            for candidate in candidates
            if candidate.host or self.allows(candidate.url, candidate.depth)
        ]

    def _take_links(self, found: dict[str, NewUrl], page: Page, depth: int, met: Container[str]) -> None:
        for link in page.links:
            if link.target in met:
                continue
            if link.type in FOLLOWED:
                if "nofollow" not in link.rel:
                    self._take(found, link.target, depth + 1)
            elif self.requisites and link.type in REQUISITES and link.target not in found:
                # A host already named means admitted: what a page needs may lie anywhere.
                found[link.target] = NewUrl(url_key(link.target), link.target, host_of(link.target), depth)

    def _take(self, found: dict[str, NewUrl], target: str, depth: int, *, moves: bool = False) -> None:
        """With `moves` the target stands for a seed, and is admitted wherever it lies."""
        url = self.address(target)
        if url is not None and url not in found:
            found[url] = NewUrl(url_key(url), url, host_of(url) if moves and self.scope.chooses(url) else "", depth)


def redirect_of(look: Observation) -> str:
    """Where a recorded redirect points to; empty when the answer is none."""
    if look.page is None or not 300 <= look.response.status < 400:
        return ""
    return next((link.target for link in look.page.links if link.type is LinkType.REDIRECT), "")
