"""What a watch sees of a change: the difference of two versions through its filters.

Filters act here and in what is shown, never on what is stored. Loaded late
by the watch loop: it needs every parser, and most checks find nothing new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from letopis import extract
from letopis.archive import Archive
from letopis.change import Filter, FilterKind, compare, filter_page, filter_source, filter_text, unified
from letopis.config import ChangeSettings
from letopis.errors import UnknownVersion, UsageError
from letopis.model import Check, Outcome, Page, Version, rfc3339
from letopis.monitor.deciding import Difference
from letopis.monitor.watch import FilterText, Watch

_MOST_TEXT = 20_000
_MOST_LINES = 2_000
_CHOOSING = (FilterKind.CSS, FilterKind.XPATH, FilterKind.JSONPATH, FilterKind.INCLUDE)
_HTML = (("Content-Type", "text/html; charset=utf-8"),)


class View(NamedTuple):
    """A version as a watch sees it."""

    page: Page
    text: str


def filters_of(texts: Sequence[FilterText]) -> list[Filter]:
    """The filters of a watch; UsageError for an expression that is wrong."""
    return [Filter(FilterKind(kind), expression) for kind, expression in texts]


def view(version: Version, filters: Sequence[Filter]) -> View:
    """What is left of a version behind the filters, as people read it."""
    page = extract.page(version.body, version.url, version.headers, detect_language=False)
    source = extract.decode(version.body, page.charset).text
    chosen = filter_source(source, page.content_type, filters)
    is_markup = page.content_type in ("text/html", "application/xhtml+xml")
    if chosen != source and is_markup:
        page = extract.page(chosen.encode("utf-8", "replace"), version.url, _HTML, detect_language=False)
    if is_markup or not page.content_type.startswith(("text/", "application/json")):
        kept = filter_page(page, filters)
        return View(kept, kept.text)
    return View(page, filter_text(chosen, filters))


def difference(archive: Archive, watch: Watch, old: int, new: int, checks: Sequence[Check]) -> Difference:
    """From the version judged last to the newest (ids), as far as it counts for `change.count`."""
    after = archive.answers.by_id(new)
    try:
        before = archive.answers.by_id(old)
    except UnknownVersion:  # retention has dropped it: there was a change, but nobody can show it
        return Difference(True)
    if before.body == after.body:
        return Difference(False)
    filters = filters_of(watch.filters)
    try:
        first, second = view(before, filters), view(after, filters)
    except UsageError as error:  # the page is no longer what the filter was written for
        return Difference(True, text=str(error))
    counts = _counts(archive.settings.change, first, second, filters, checks)
    return _shown(counts, (before, first), (after, second))


def _counts(settings: ChangeSettings, old: View, new: View, filters: Sequence[Filter], checks: Sequence[Check]) -> bool:
    """By bytes, or as the visit judged it with all it knows of the page.

    Whoever chose a part of the page wants to hear of every change of its
    text; a page with parts left out is judged like a whole one.
    """
    if filters and (old.text == new.text or any(one.kind in _CHOOSING for one in filters)):
        return old.text != new.text
    if settings.count == "bytes":
        return True
    changed = [check for check in checks if check.outcome is Outcome.CHANGED]
    if changed and not filters:
        return any(check.meaningful is not False for check in changed)
    return compare(new.page, [old.page], settings=settings).meaningful is not False


def _shown(counts: bool, old: tuple[Version, View], new: tuple[Version, View]) -> Difference:
    before, after = old[1].text.splitlines(), new[1].text.splitlines()
    added, removed = _without(after, before), _without(before, after)
    whole = sum(map(len, before)) + sum(map(len, after))
    share = (sum(map(len, added)) + sum(map(len, removed))) / whole if whole else 1.0
    text = unified(old[1].text + "\n", new[1].text + "\n", _name(old[0]), _name(new[0]))
    return Difference(counts, added[:_MOST_LINES], removed[:_MOST_LINES], share, text[:_MOST_TEXT])


def _name(version: Version) -> str:
    return f"{version.url} version {version.number} of {rfc3339(version.time)}"


def _without(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Lines that the other side does not have as often, in order."""
    left = Counter(others)
    found = []
    for line in lines:
        if left[line]:
            left[line] -= 1
        else:
            found.append(line)
    return tuple(found)
