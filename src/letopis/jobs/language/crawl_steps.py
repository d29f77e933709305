"""Steps that fetch pages and index them: copyfromcache, download, copytocache, urltransform, crawler.

The archive is the cache: what a download fetches is recorded at once, level by level, and archived pages are
requested conditionally.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lxml import etree

from letopis.archive.index_facts import count_site_pages, index_titles_only, index_whole_pages, set_url_rules
from letopis.config import parse_size
from letopis.crawl import CrawlLevel, CrawlLimits, CrawlSelection, CrawlStats, LevelHooks, crawl_levels
from letopis.crawl.agent import CaptureMode
from letopis.errors import QuotaUsedUp, Unavailable
from letopis.fetch.browser import require_browser
from letopis.fetch.page_steps import parse_steps
from letopis.index.link_graph import LinkSnapshot
from letopis.index.link_index import LinkIndex
from letopis.index.word_index import WordIndex
from letopis.jobs.documents import element, parent_element
from letopis.jobs.language.steps import QueryRun, bool_attribute, child_texts, int_attribute
from letopis.model import Observation, Outcome, parse_duration, rfc3339
from letopis.operations.job_files import UrlPattern
from letopis.urls import host, hostname, parse_seed_url, site
from letopis.urls.rules import UrlRuleOutcome, UrlRules, UrlRuleVerdict, rules_from_element, rules_to_xml
from letopis.urls.scope import Scope, ScopeKind

MAX_LISTED_URLS = 1000
"""Addresses that rules changed or ignored which a result names; all are counted."""
_MAX_REMEMBERED_URLS = 1_000_000
_MOST_PAGES = 2**62
_BUSY_STATUSES = (429, 503)


def copyfromcache_step(step: etree._Element, run: QueryRun) -> bytes:
    """Takes archived domains into the query: later downloads stay inside them. An unknown domain is no error."""
    names = [site(domain) for domain in child_texts(step, "domain")]
    run.domains += names
    known = [count_site_pages(run.archive, name, _MOST_PAGES) for name in names]
    parts = (element("domain", {"name": name, "pages": pages}) for name, pages in zip(names, known, strict=True))
    return parent_element("copyfromcache", {"pages": sum(known)}, parts)


@dataclass(frozen=True, slots=True)
class _DomainSelection(CrawlSelection):
    """A selection by domains and their subdomains, which caches the results of the address rules."""

    allowed: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    included: tuple[UrlPattern, ...] = ()
    excluded: tuple[UrlPattern, ...] = ()
    judged: dict[str, UrlRuleVerdict] = field(default_factory=dict)

    def allows(self, url: str, depth: int) -> bool:
        """See `CrawlSelection.allows`."""
        if not CrawlSelection.allows(self, url, depth):
            return False
        names = _domains(host(url))
        if not self.denied.isdisjoint(names) or (self.allowed and self.allowed.isdisjoint(names)):
            return False
        if any(pattern.found_in(url) for pattern in self.excluded):
            return False
        return not self.included or any(pattern.found_in(url) for pattern in self.included)

    def address(self, url: str) -> str | None:
        """See `CrawlSelection.address`."""
        found = CrawlSelection.address(self, url)
        if (found is None or found != url) and url not in self.judged and len(self.judged) < _MAX_REMEMBERED_URLS:
            verdict = self.rules.apply(url)
            if verdict.outcome is not UrlRuleOutcome.KEPT:
                self.judged[url] = verdict
        return found


def _domains(place: str) -> list[str]:
    """A host and all domains that it is below, with its port and without."""
    found = []
    for name in dict.fromkeys((place, hostname(place))):
        labels = name.split(".")
        found += [".".join(labels[at:]) for at in range(len(labels))]
    return found


class _DownloadQuota:
    """Charges each page to the account that requested the download, and stops it when the daily quota is used up."""

    def __init__(self, run: QueryRun) -> None:
        self._context = run.operation_context()
        self.fault: QuotaUsedUp | None = None

    def charge(self) -> None:
        """One page more."""
        if self.fault is None:
            try:
                self._context.charge("checks")
            except QuotaUsedUp as fault:
                self.fault = fault


class _DownloadFigures:
    """The progress of a download in words: fetched pages, waiting pages, and the host it is waiting for."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._not_asked = 0
        self._figures = "0 fetched, 1 waiting"
        self._busy: dict[str, int] = {}
        self.share = 0.0

    def look(self, look: Observation) -> None:
        """One check: whether a request was sent, and whether the server demands a pause."""
        self._not_asked += look.outcome is Outcome.REFUSED
        place, status = host(look.response.url), look.response.status
        if status in _BUSY_STATUSES:
            self._busy[place] = status
        elif look.outcome is not Outcome.REFUSED:
            self._busy.pop(place, None)

    def page(self, share: float, asked: int, waiting: int) -> str:
        """The figures after a page."""
        self.share, self._figures = share, f"{asked - self._not_asked} fetched, {waiting} waiting"
        return self._figures

    def wait(self, place: str, seconds: float) -> str:
        """The same during a pause of a host: until when, and which status demanded it; 0 for the usual pause."""
        until = rfc3339(self._clock() + timedelta(seconds=seconds))
        return f"{self._figures}, {place} again at {until} ({self._busy.get(place, 0) or 'pause'})"


def download_step(step: etree._Element, run: QueryRun) -> bytes:
    """A crawl by levels from start pages; each level is on disk and can be queried before the next begins."""
    seeds, levels = child_texts(step, "url"), list[str]()
    depth, quota, progress = int_attribute(step, "maxlevel"), _DownloadQuota(run), run.context.progress
    words = _DownloadFigures(run.archive.clock)

    def level_done(level: CrawlLevel) -> None:
        levels.append(element("level", {"number": level.number, "pages": level.pages}))
        progress.log(f"level {level.number}: {level.pages} addresses, {level.figures.fetched} checks in all")

    def page_done(done: int, of: int, asked: int) -> None:
        quota.charge()
        # Levels count the same, since it is unknown how many pages the next one has.
        share = (len(levels) + done / of) / ((depth or len(levels)) + 1)
        progress.share(share, words.page(share, asked, of - done))

    def look_done(look: Observation) -> None:
        words.look(look)
        progress.log(_look_line(look))

    hooks = LevelHooks(
        level_done,
        page_done,
        lambda: progress.cancelled() or quota.fault is not None,
        index_titles_only(run.archive) if run.mode == "basic" else None,
        look_done,
        lambda host, seconds: progress.share(words.share, words.wait(host, seconds)),
    )
    work = crawl_levels(
        run.archive, seeds, _selection(step, run, seeds), hooks, private_ok=run.context.private_allowed,
        limits=_limits(step), capture=_capture_mode(step, run), journal=run.next_journal(),
        delay=parse_duration(step.get("delay", "0")),
    )  # fmt: skip
    figures = asyncio.run(work)
    run.figures.add(figures)
    run.raise_if_cancelled()
    progress.share(1.0, f"{figures.fetched} fetched")
    if quota.fault is not None:
        raise quota.fault
    _require_pages(figures)
    row = figures.row() | {"errors": None, "not_asked": sum(figures.not_asked.values()) or None}
    kinds = figures.errors + figures.not_asked
    parts = [element("failure", {"kind": kind, "count": count}) for kind, count in sorted(kinds.items())]
    return parent_element("download", {"maxlevel": depth, **row}, [*levels, *parts])


def _look_line(look: Observation) -> str:
    """The result of one URL: its status or what went wrong, the outcome, and the URL."""
    response = look.response
    said = response.failure.kind.value if response.failure else str(response.status)
    return f"{said} {look.outcome.value} {response.url}"


def _capture_mode(step: etree._Element, run: QueryRun) -> CaptureMode:
    """How pages are checked; MissingExtra if a browser is required and none is here."""
    steps = parse_steps(child_texts(step, "step"))
    capture = CaptureMode(bool_attribute(step, "browser"), bool_attribute(step, "requisites"), steps)
    if capture.browser:
        require_browser(run.archive.settings.fetch.chromium)
    return capture


def _limits(step: etree._Element) -> CrawlLimits:
    size, longest = step.get("max_bytes"), step.get("max_time")
    return CrawlLimits(
        int_attribute(step, "limit"),
        bytes=parse_size(size) if size else None,
        seconds=parse_duration(longest) if longest else None,
    )


def _require_pages(figures: CrawlStats) -> None:
    """A download that could reach nothing is no success; URLs without a request are in its result."""
    failed = sum(figures.errors.values())
    if not failed or failed < figures.fetched:
        return
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(figures.errors.items()))
    raise Unavailable(f"none of the pages could be fetched ({kinds}); the log says what became of each")


def _selection(step: etree._Element, run: QueryRun, seeds: list[str]) -> CrawlSelection:
    addresses = tuple(parse_seed_url(seed) for seed in seeds)
    allowed = child_texts(step, "allow")
    if not allowed and run.domains and not step.get("scope"):
        allowed = [*run.domains, *map(host, addresses)]
    kind = ScopeKind.ANY if allowed else ScopeKind(step.get("scope", "host"))
    depth = int_attribute(step, "maxlevel")
    return _DomainSelection(
        scope=Scope(kind, addresses),
        max_depth=depth if depth is not None else run.archive.settings.crawl.max_depth or None,
        rules=run.rules,
        allowed=frozenset(map(site, allowed)),
        denied=frozenset(map(site, child_texts(step, "deny"))),
        included=tuple(map(UrlPattern, child_texts(step, "include"))),
        excluded=tuple(map(UrlPattern, child_texts(step, "exclude"))),
        judged=run.judged,
    )


def copytocache_step(step: etree._Element, run: QueryRun) -> bytes:
    """Tells what the downloads of this query brought; all of it has been in the archive since they ran."""
    row = run.figures.row()
    return element("copytocache", {name: row[name] for name in ("fetched", "new", "changed", "unchanged")}).encode()


def urltransform_step(step: etree._Element, run: QueryRun) -> bytes:
    """Tells what the rules of the whole query made of the addresses that were met so far."""
    judged: list[tuple[str, UrlRuleVerdict]] = list(run.judged.items())
    ignored = sum(verdict.ignored for _, verdict in judged)
    own = rules_from_element(step)
    about = {
        "redirects": len(own.redirects), "varlists": len(own.varlists), "redirected": len(judged) - ignored,
        "ignored": ignored,
    }  # fmt: skip
    return parent_element(
        "urltransform", about, (_judged_element(url, verdict) for url, verdict in judged[:MAX_LISTED_URLS])
    )


def _judged_element(url: str, verdict: UrlRuleVerdict) -> str:
    if verdict.ignored:
        return element("ignored", {"url": url, "reason": verdict.reason, "why": verdict.outcome})
    return element("redirected", {"url": url, "to": verdict.url})


def crawler_step(step: etree._Element, run: QueryRun) -> bytes:
    """Brings the indexes up to date: links in every mode, words in the modes full and benchmark."""
    mode, urls = step.get("mode", "full"), [parse_seed_url(text) for text in child_texts(step, "url")]
    _settle_rules(run, urls)
    timings: dict[str, Any] = {}
    counted = {"links": _timed(run, timings, "links", lambda: _catch_up(run, run.links))}
    if mode != "basic":
        counted["words"] = _timed(run, timings, "words", lambda: _index_words(run, urls))
    shown = timings if mode == "benchmark" else {}
    moment = run.graph().as_of(run.millis(step))
    return parent_element(
        "crawler", {"mode": mode, **counted, **shown}, (_indexed_element(run, moment, url) for url in urls)
    )


def _timed(run: QueryRun, timings: dict[str, Any], name: str, work: Callable[[], int]) -> int:
    """The versions that were indexed; how long it took is written to the log and to `timings`."""
    before = time.perf_counter()
    count = work()
    timings[f"{name}_seconds"] = round(time.perf_counter() - before, 3)
    run.context.progress.log(f"{name}: {count} versions in {timings[f'{name}_seconds']} s")
    return count


def _catch_up(run: QueryRun, index: LinkIndex | WordIndex, total: int = 0) -> int:
    """Brings an index up to date; `total` is how many versions it lacks, if that is known."""
    progress = run.context.progress
    count = index.catch_up(lambda done: progress.share(min(1.0, done / total) if total else 0.0), progress.cancelled)
    run.raise_if_cancelled()
    return count


def _index_words(run: QueryRun, urls: list[str]) -> int:
    """Takes new versions in; pages that a basic query had left at their titles get their words."""
    again = index_whole_pages(run.archive, dict.fromkeys(map(host, urls)))
    count = _catch_up(run, run.words, run.words.lag())
    if again:
        run.words.reindex(again)
    return count + len(again)


def _settle_rules(run: QueryRun, urls: list[str]) -> None:
    """The rules of this query hold in the index from now on, for the hosts that it is about."""
    by_host = dict.fromkeys(map(host, urls), "")
    bases = [rule.base for rule in run.rules.redirects] + [rule.base for rule in run.rules.varlists]
    for name in map(site, bases):
        by_host[name] = rules_to_xml(_rules_of(run.rules, name))
    set_url_rules(run.archive, by_host)


def _rules_of(rules: UrlRules, name: str) -> UrlRules:
    return UrlRules(
        tuple(rule for rule in rules.redirects if site(rule.base) == name),
        tuple(rule for rule in rules.varlists if site(rule.base) == name),
    )


def _indexed_element(run: QueryRun, moment: LinkSnapshot, url: str) -> str:
    """The state of a start page: indexed, ignored by the rules, or not known to the index."""
    verdict = run.rules.apply(url)
    if verdict.ignored:
        return element("page", {"url": url, "state": "ignored", "reason": verdict.reason})
    place = moment.graph.addresses.find(verdict.url)
    state = "indexed" if place >= 0 and moment.live[moment.ends[place]] else "missing"
    return element("page", {"url": verdict.url, "state": state})
