"""A year of the five sites as an archive remembers it: looks at every page, dated back from now, and watches."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from letopis import extract
from letopis.archive import Archive
from letopis.archive.watches import AlertRow, NewAlert, watches_of
from letopis.change.verdict import compare
from letopis.index.link_index import LinkIndex
from letopis.model import Change, Observation, Outcome, Page, Response, to_millis
from letopis.monitor.watch import WatchSpec, parse_alert_rules
from letopis.monitor.watch_list import WatchList
from letopis.operations.words import word_index
from letopis_demo.story_sites import DAYS, MINISTRY, NEWS, SHOP, SITES, WIKI, StoryPage, story_pages

LOOKS_EVERY = dict.fromkeys(SITES, 7) | {NEWS: 2}
"""Days between two looks at a site."""
WATCHED = (
    f"http://{SHOP}/goods/fountain-pen",
    f"http://{SHOP}/terms",
    f"http://{MINISTRY}/zadosti",
    f"http://{WIKI}/wiki/Lantern_Bridge",
)
TAG = "story"
_PRICE = "price"
_PRICE_TEXT = re.compile(r'class="price">([^<]+)<')
_WEEK = 7 * 86400.0
_HTML = (("Content-Type", "text/html; charset=utf-8"),)


def is_told(archive: Archive) -> bool:
    """Whether the archive holds the year already."""
    return archive.answers.last_check(WATCHED[0]) is not None


def tell_story(archive: Archive, seed: int = 1, progress: Callable[[int], None] = lambda days: None) -> int:
    """Records the year that ends today, unless it is there already; answers how many looks were recorded."""
    if is_told(archive):
        return 0
    start = archive.clock().replace(hour=6, minute=0, second=0, microsecond=0) - timedelta(days=DAYS)
    telling = _Telling(archive, seed, start)
    for day in range(DAYS):
        telling.look_around(day)
        progress(day + 1)
    telling.finish()
    return telling.looks


def index_story(archive: Archive, progress: Callable[[int], None] = lambda done: None) -> None:
    """Takes its words and links into the indexes, so that they answer at once."""
    word_index(archive).catch_up(progress)
    LinkIndex(archive).catch_up(progress)


class _Telling:
    """The looks of one year, in the order of their days."""

    def __init__(self, archive: Archive, seed: int, start: datetime) -> None:
        self._archive, self._seed, self._start = archive, seed, start
        self._known: dict[str, tuple[str, Page]] = {}
        self._waiting: list[Observation] = []
        self._alerts: list[tuple[tuple[str, str], str, datetime, str, dict[str, object]]] = []
        self._versions: Counter[str] = Counter()
        self._down: Counter[str] = Counter()
        self.looks = 0

    def look_around(self, day: int) -> None:
        """Looks at the sites whose turn it is."""
        for number, site in enumerate(SITES):
            if day % LOOKS_EVERY[site] == 0:
                moment = self._start + timedelta(days=day, minutes=17 * number)
                for at, page in enumerate(story_pages(site, self._seed, day)):
                    self._waiting.append(self._look(page, moment + timedelta(seconds=2 * at)))
        if len(self._waiting) >= 500:
            self._record()

    def finish(self) -> None:
        """Records the rest, and the watches with what they told."""
        self._record()
        watches = WatchList(self._archive)
        entries = [
            *watches.add(WATCHED, WatchSpec(every=_WEEK, when=parse_alert_rules("changed,unavailable,recovered")), TAG),
            *watches.add(WATCHED[:1], WatchSpec(every=_WEEK, filters=(("price", "html"),)), TAG, name=_PRICE),
        ]
        watches.pause(WATCHED)  # there is nobody to ask at these addresses
        numbers = {(entry.watch.url, entry.watch.name): entry.id for entry in entries}
        told = [
            NewAlert(
                AlertRow(0, who[0], kind, to_millis(moment), message, json.dumps(facts | {"watch": numbers[who]})), []
            )
            for who, kind, moment, message, facts in self._alerts
        ]
        watches_of(self._archive).save_judged([], told)

    def _record(self) -> None:
        self._archive.record(self._waiting)
        self.looks += len(self._waiting)
        self._waiting = []

    def _look(self, shown: StoryPage, moment: datetime) -> Observation:
        headers = (("Location", shown.location), *_HTML) if shown.location else _HTML
        response = Response(shown.url, shown.url, shown.status, headers, shown.html.encode(), moment)
        if shown.status != 200:
            self._note_outage(shown, moment)
            outcome = Outcome.UNAVAILABLE if shown.status >= 400 else Outcome.UNCHANGED
            return Observation(response, outcome, dated=True)
        if failures := self._down.pop(shown.url, 0):
            message = f"{shown.url} is available again after {failures} failed checks"
            self._alert(shown.url, "recovered", moment, message)
        before = self._known.get(shown.url)
        if before is not None and before[0] == shown.html:
            return Observation(response, Outcome.UNCHANGED, before[1], dated=True)
        page = extract.read_page(response.body, shown.url, headers)
        self._known[shown.url] = (shown.html, page)
        if before is None:
            return Observation(response, Outcome.NEW, page, dated=True)
        change = compare(page, [before[1]], same_bytes=False)
        self._versions[shown.url] += 1
        if change.meaningful:
            came = sum(block.action == "added" for block in change.blocks)
            lines = f"{came} {'line' if came == 1 else 'lines'} added, {len(change.blocks) - came} removed"
            self._alert(shown.url, "changed", moment, f"{shown.url} has changed: {lines}", change)
            self._alert_of_price(shown, before[0], moment, change)
        return Observation(response, Outcome.CHANGED, page, change, dated=True)

    def _note_outage(self, shown: StoryPage, moment: datetime) -> None:
        if shown.status >= 500:
            self._down[shown.url] += 1
        if self._down[shown.url] == 1:
            self._alert(shown.url, "unavailable", moment, f"{shown.url} is unavailable: status {shown.status}")

    def _alert(self, url: str, kind: str, moment: datetime, message: str, change: Change | None = None) -> None:
        if url in WATCHED:
            facts: dict[str, object] = {"tag": TAG}
            if change:
                facts |= {"score": change.score, "reason": change.reason, "version": self._versions[url]}
            self._alerts.append(((url, ""), kind, moment, message, facts))

    def _alert_of_price(self, shown: StoryPage, before: str, moment: datetime, change: Change) -> None:
        """What the watch of the price tells: of a page that changed, the price alone."""
        old, new = (_PRICE_TEXT.search(html) for html in (before, shown.html))
        if shown.url == WATCHED[0] and old and new and old[1] != new[1]:
            lines = f"--- before\n+++ after\n@@ -1 +1 @@\n-{old[1]}\n+{new[1]}\n"
            facts: dict[str, object] = {
                "tag": TAG,
                "name": _PRICE,
                "score": change.score,
                "reason": "the chosen part is different",
            }
            facts |= {"version": self._versions[shown.url], "difference": lines}
            message = f"{shown.url} has changed: 1 line added, 1 removed"
            self._alerts.append(((shown.url, _PRICE), "changed", moment, message, facts))
