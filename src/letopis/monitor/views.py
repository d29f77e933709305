"""What a watch sees of pages: versions and their difference through its filters, and the pages that a sitemap lists.

Filters affect comparison and display, never what is stored. The watch loop loads this module late, because it needs
every parser, and most checks find nothing new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from letopis import extract
from letopis.archive import Archive
from letopis.archive.mute_rules import mute_rules_of
from letopis.archive.verdicts import verdict_between
from letopis.change.diff_formats import unified_diff
from letopis.change.filters import ContentFilter, filter_page, filter_source, filter_text
from letopis.change.values import first_number
from letopis.change.verdict import compare
from letopis.errors import Damaged, NotFound, UnknownVersion, UsageError
from letopis.extract.feeds import SitemapEntry, sitemap_entries
from letopis.model import Change, Check, Outcome, Page, Version, rfc3339
from letopis.model.page import SAME_TEXT, FilterKind
from letopis.monitor.alerts import WatchDifference
from letopis.monitor.checker import Checker, CheckOptions
from letopis.monitor.watch import Watch, WatchedValue, parse_filters
from letopis.tuples import NamedTuple

_MOST_TEXT, _LONGEST_VALUE = 20_000, 200
_MOST_LINES = 2_000
_CHOOSING_FILTERS = (
    FilterKind.CSS, FilterKind.XPATH, FilterKind.JSONPATH, FilterKind.INCLUDE, FilterKind.PRICE, FilterKind.STOCK
)  # fmt: skip
_SELECTING_FILTERS = tuple(kind for kind in _CHOOSING_FILTERS if kind is not FilterKind.INCLUDE)
"""Those that find what always is there; a line may well be waited for."""
_HTML_HEADERS = (("Content-Type", "text/html; charset=utf-8"),)


class FilteredVersion(NamedTuple):
    """A version as a watch sees it: the page, its text, and the source that the filters left."""

    page: Page
    text: str
    source: str


def filtered_version(version: Version, filters: Sequence[ContentFilter]) -> FilteredVersion:
    """What is left of a version behind the filters, as people read it."""
    page = extract.read_page(version.body, version.url, version.headers, detect_language=False)
    source = extract.decode(version.body, page.charset).text
    chosen = filter_source(source, page.content_type, filters)
    is_markup = page.content_type in ("text/html", "application/xhtml+xml")
    if chosen != source and is_markup:
        page = extract.read_page(chosen.encode("utf-8", "replace"), version.url, _HTML_HEADERS, detect_language=False)
    was_chosen = chosen != source and page.content_type.endswith(("xml", "json"))
    if is_markup or not (was_chosen or page.content_type.startswith(("text/", "application/json"))):
        kept = filter_page(page, filters)
        return FilteredVersion(kept, kept.text, chosen)
    text = filter_text(chosen, filters)
    return FilteredVersion(page, text, text)


def watch_difference(archive: Archive, watch: Watch, old: int, new: int, checks: Sequence[Check]) -> WatchDifference:
    """From the version judged last to the newest (ids), as far as it counts for `change.count`."""
    before, after = _if_readable(archive, old), _if_readable(archive, new)
    if after is None:
        return WatchDifference(True, problem="its new version cannot be read; run verify")
    if before is None:  # there was a change, but nobody can show it
        gone = "the version that was seen last is no longer kept, or cannot be read"
        return WatchDifference(True, number=after.number, since=after.time, problem=gone)
    if before.body == after.body:
        return WatchDifference(False)
    filters = parse_filters(watch.filters)
    try:
        first, second = filtered_version(before, filters), filtered_version(after, filters)
    except UsageError as error:  # the page is no longer what the filter was written for
        return WatchDifference(True, text=str(error), number=after.number, since=after.time, problem=str(error))
    pair = (before, first), (after, second)
    change = filtered_verdict(archive, pair, filters)
    by_bytes = archive.settings.change.count == "bytes" and (not filters or first.text != second.text)
    empty = not second.text.strip() and any(one.kind in _SELECTING_FILTERS for one in filters)
    shown = _shown_difference(by_bytes or _with_steps(change, filters, checks), change, pair)
    return shown._replace(empty=empty)


def _if_readable(archive: Archive, number: int) -> Version | None:
    """The version with this id; None if retention has dropped it, or its bytes are damaged: `verify` reports that."""
    try:
        return archive.answers.by_id(number)
    except (Damaged, UnknownVersion):
        return None


def first_sight(archive: Archive, watch: Watch, new: int) -> WatchDifference | None:
    """What there is to tell of the first version of a watch: that its filters cannot be applied, or select nothing."""
    filters = parse_filters(watch.filters)
    selects = any(one.kind in _SELECTING_FILTERS for one in filters)
    if not selects or (version := _if_readable(archive, new)) is None:
        return None
    try:
        text = filtered_version(version, filters).text
    except UsageError as error:
        return WatchDifference(False, text=str(error), number=version.number, since=version.time, empty=True)
    return WatchDifference(False, number=version.number, since=version.time, empty=not text.strip())


_FilteredPair = tuple[tuple[Version, FilteredVersion], tuple[Version, FilteredVersion]]


def watched_values(archive: Archive, watch: Watch, limit: int) -> list[WatchedValue]:
    """What a watch saw in the newest versions of its page that are kept, oldest first; each text as long as it held."""
    filters = parse_filters(watch.filters)
    found: list[WatchedValue] = []
    for known in archive.versions(watch.url)[-limit:]:
        try:
            text = " ".join(filtered_version(archive.get(watch.url, version=known.number), filters).text.split())
        except (Damaged, NotFound, UsageError):
            continue  # retention dropped it meanwhile, it is damaged, or it is not what the filters were written for
        if not found or found[-1].text != text[:_LONGEST_VALUE]:
            kept = text[:_LONGEST_VALUE]
            found.append(WatchedValue(known.time, known.number, kept, first_number(kept)))
    return found


def filtered_verdict(archive: Archive, pair: _FilteredPair, filters: Sequence[ContentFilter]) -> Change:
    """Whether two versions differ meaningfully behind the filters of a watch.

    Without filters it is the verdict on the pair. Whoever chose a part of the page wants to hear of every change of its
    text; a page with parts left out is judged like a whole one, and is noise where the whole page is.
    """
    (before, old), (after, new) = pair
    if not filters:
        return verdict_between(archive, before, after, (old.page, new.page))
    if old.text == new.text:
        return Change(before.digest == after.digest, True, False, reason=SAME_TEXT)
    if any(one.kind in _CHOOSING_FILTERS for one in filters):
        share = _share(old.text.splitlines(), new.text.splitlines())
        return Change(False, False, True, round(share, 4), reason="the chosen part is different")
    recorded = archive.answers.verdict(before, after)
    if recorded is not None and recorded.meaningful is False:
        return recorded
    return compare(new.page, [old.page], settings=archive.settings.change, rules=mute_rules_of(archive, after.url))


def _with_steps(change: Change, filters: Sequence[ContentFilter], checks: Sequence[Check]) -> bool:
    """Whether a difference counts: where several versions came in between, as soon as one of them did."""
    changed = [check for check in checks if check.outcome is Outcome.CHANGED]
    if len(changed) > 1 and not filters:
        return any(check.meaningful is not False for check in changed)
    return change.meaningful is not False


def _shown_difference(counts: bool, change: Change, pair: _FilteredPair) -> WatchDifference:
    old, new = pair
    before, after = old[1].text.splitlines(), new[1].text.splitlines()
    added, removed = _lines_without(after, before), _lines_without(before, after)
    text = unified_diff(old[1].text + "\n", new[1].text + "\n", _version_name(old[0]), _version_name(new[0]))
    return WatchDifference(
        counts, added[:_MOST_LINES], removed[:_MOST_LINES], _share(before, after), text[:_MOST_TEXT], change.score,
        change.reason, new[0].number, new[0].time,
    )  # fmt: skip


def _share(before: Sequence[str], after: Sequence[str]) -> float:
    """How much of two texts is in lines that the other does not have."""
    whole = sum(map(len, before)) + sum(map(len, after))
    differing = (*_lines_without(after, before), *_lines_without(before, after))
    return sum(map(len, differing)) / whole if whole else 1.0


def _version_name(version: Version) -> str:
    return f"{version.url} version {version.number} of {rfc3339(version.time)}"


def _lines_without(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Lines that the other side does not have as often, in order."""
    left = Counter(others)
    found = []
    for line in lines:
        if left[line]:
            left[line] -= 1
        else:
            found.append(line)
    return tuple(found)


MAX_SITEMAPS = 100
MAX_SITEMAP_PAGES = 50_000
_MAX_SITEMAP_DEPTH = 3


async def sitemap_pages(archive: Archive, checker: Checker, url: str, options: CheckOptions) -> list[str]:
    """The pages, in order and each once; sitemaps that an index names are checked too.

    Bounded in number and depth. Empty when the sitemap was never available.
    """
    found: dict[str, None] = {}
    seen, level = {url}, [url]
    for _ in range(_MAX_SITEMAP_DEPTH):
        entries = [entry for one in level for entry in _entries_of(archive, one)]
        found.update((entry.url, None) for entry in entries if not entry.is_sitemap)
        inner = dict.fromkeys(entry.url for entry in entries if entry.is_sitemap and entry.url not in seen)
        level = list(inner)[: MAX_SITEMAPS - len(seen)]
        if not level:
            break
        seen.update(level)
        await checker.check(level, options)
    return list(found)[:MAX_SITEMAP_PAGES]


def _entries_of(archive: Archive, url: str) -> list[SitemapEntry]:
    try:
        return sitemap_entries(archive.get(url).body)
    except (Damaged, NotFound):
        return []
