"""The five decision points of a crawl: schedule, fetch, follow, store, revisit.

Each is an expression of the owner; what a filter cannot know yet it does not
refuse. Traps and the focus of the crawl have their say here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from letopis.config import CrawlSettings
from letopis.frontier import Facts, Filter, Focus, NewUrl, TrapJudge, interest, parse_filter, score
from letopis.model import Observation

_WORDS = 20_000


class Decisions:
    """What one crawl wants. Remembers hosts and patterns, both bounded; for one thread."""

    def __init__(self, settings: CrawlSettings) -> None:
        self._schedule = _parsed(settings.schedule_if)
        self._fetch = _parsed(settings.fetch_if)
        self._follow = _parsed(settings.follow_if)
        self._store = _parsed(settings.store_if)
        self._revisit = _parsed(settings.revisit_if)
        keywords = tuple(word.lower() for word in settings.keywords)
        self._focus = Focus(keywords, frozenset(settings.languages)) if keywords or settings.languages else None
        self._traps = TrapJudge(settings.trap_depth, settings.trap_pages)
        self._max_hosts = settings.max_hosts
        self._hosts: set[str] = set()

    def schedules(self, found: Sequence[NewUrl], now: datetime) -> list[NewUrl]:
        """Which unseen URLs are planned."""
        return [url for url in found if self._plans(url, now.year)]

    def _plans(self, url: NewUrl, year: int) -> bool:
        if self._schedule is not None and not self._schedule.passes(_address(url.url, url.host, url.depth)):
            return False
        if self._max_hosts and url.host not in self._hosts:
            if len(self._hosts) >= self._max_hosts:
                return False
            self._hosts.add(url.host)
        return not self._traps.why(url.url, year)

    def fetches(self, url: str, host: str, depth: int) -> bool:
        """Whether a planned URL is really asked for."""
        return self._fetch is None or self._fetch.passes(_address(url, host, depth))

    def stores(self, look: Observation, depth: int) -> bool:
        """Whether the content of a look is kept."""
        return self._store is None or self._store.passes(facts_of(look, depth))

    def revisits(self, look: Observation, depth: int) -> bool:
        """Whether a page is visited again."""
        return self._revisit is None or self._revisit.passes(facts_of(look, depth))

    def links(self, look: Observation, links: list[NewUrl], depth: int) -> list[NewUrl]:
        """The links of a page that are followed, in a focused crawl the promising ones first."""
        if self._follow is not None and not self._follow.passes(facts_of(look, depth)):
            return []
        if self._focus is None or look.page is None:
            return links
        value = score(self._focus, look.page.title, look.page.text[:_WORDS], look.page.language)
        verdict = interest(self._focus, value, 0)
        return [link._replace(priority=verdict.priority) for link in links] if verdict.follow else []


def reads_text(settings: CrawlSettings) -> bool:
    """Whether any decision of a crawl asks what stands on a page, not only where it leads."""
    asked = settings.follow_if + settings.store_if + settings.revisit_if
    return bool(settings.keywords or settings.languages) or "words" in asked or "lang" in asked


def _parsed(expression: str) -> Filter | None:
    return parse_filter(expression) if expression else None


def _address(url: str, host: str, depth: int) -> Facts:
    path = "/" + url.partition("://")[2].partition("/")[2]
    return Facts(url=url, host=host, path=path, depth=depth)


def facts_of(look: Observation, depth: int) -> Facts:
    """Everything a filter may ask of a finished look."""
    response, page = look.response, look.page
    host = response.url.partition("://")[2].partition("/")[0]
    known = _address(response.url, host, depth)
    return replace(
        known,
        type=page.content_type if page else response.header("content-type").partition(";")[0],
        status=response.status,
        bytes=len(response.body),
        lang=page.language if page else None,
        words=page.text[:_WORDS] if page else None,
    )
