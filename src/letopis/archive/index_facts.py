"""What the indexes read of the record, and what they keep in it.

The log of versions as a follower reads it; rules for URLs and pages known by
their titles only; base forms of words; hashes of near duplicates; which
answers of search were shown and chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from letopis.archive.archive import Archive
from letopis.archive.records import RecordedCapture
from letopis.catalog import OUTCOMES, Cursor, index_state, version_log
from letopis.catalog.activity import Activity, CopyRow
from letopis.catalog.index_state import NearDuplicateHashes, SearchChoices, WordRow
from letopis.catalog.version_log import LoggedVersion, LogMark, TroubleRow, VersionSpan
from letopis.catalog.versions import last_checks
from letopis.errors import NotFound
from letopis.model import Outcome, header, to_millis
from letopis.tuples import NamedTuple
from letopis.urls import site

__all__ = [
    "CopyRow",
    "LogMark",
    "LoggedVersion",
    "NearDuplicateHashes",
    "TroubledCheck",
    "VersionLog",
    "VersionSpan",
    "WordRow",
]

_GONE = (404, 410)


class TroubledCheck(NamedTuple):
    """One check that brought no version; `location` is where a redirect leads, as the server wrote it."""

    url: str
    time: int
    status: int
    outcome: Outcome
    location: str


class VersionLog:
    """The log of versions in the order of recording. Followers remember the id of the last one they know."""

    def __init__(self, archive: Archive) -> None:
        self._catalog = archive.catalog
        self._database = archive.catalog.database

    def since(self, after: int, limit: int) -> list[LoggedVersion]:
        """Versions recorded after a known one."""
        return version_log.logged_since(self._database, after, limit)

    def has_since(self, after: int) -> bool:
        """Whether any was recorded after a known one."""
        return version_log.has_versions_since(self._database, after)

    def count_since(self, after: int) -> int:
        """How many were recorded after a known one."""
        return version_log.count_versions_since(self._database, after)

    def pages_since(self, after: int, limit: int) -> list[tuple[int, int]]:
        """The same versions as pairs of their id and that of their page."""
        return [(row.id, row.resource) for row in self._catalog.versions.since(after, limit)]

    def spans_since(self, after: int, limit: int) -> list[VersionSpan]:
        """Versions recorded after a known one, each with the time until which it was valid."""
        return version_log.spans_since(self._database, after, limit)

    def spans_of_page(self, page: int, number: int = 0) -> list[VersionSpan]:
        """Those of one page from a number on."""
        return version_log.spans_from(self._database, page, number)

    def span_at(self, page: int, time: int, last: int) -> VersionSpan | None:
        """The one of a page that was valid at a time, of those up to a known one."""
        return version_log.span_at(self._database, page, time, last)

    def spans_up_to(self, last: int) -> Iterator[VersionSpan]:
        """All of them up to a known one."""
        return version_log.spans_up_to(self._database, last)

    def mark(self, last: int) -> LogMark:
        """What stands in the log up to a known version: another mark means that it was changed."""
        return version_log.log_mark(self._database, last)

    def times(self, last: int) -> Iterator[tuple[int, int]]:
        """Id and time of all versions up to a known one."""
        return version_log.log_times(self._database, last)

    def last_seen(self, page: int, number: int) -> int | None:
        """The last check that found a version unchanged; None when it was seen only once."""
        return version_log.last_seen(self._database, page, number)

    def check_mark(self) -> LogMark:
        """The mark of all checks that brought no version."""
        return version_log.check_mark(self._database)

    def troubled_checks(self) -> Iterator[TroubledCheck]:
        """Checks without a version, of every URL that ever failed or redirected: URL by URL, oldest first."""
        return map(self._troubled, version_log.troubled_checks(self._database))

    def _troubled(self, row: TroubleRow) -> TroubledCheck:
        redirects = 300 <= row.status < 400 and row.status != 304 and row.head is not None
        headers = self._catalog.heads.get(row.head) if redirects and row.head is not None else ()
        return TroubledCheck(row.url, row.time, row.status, OUTCOMES[row.outcome], header(headers, "location"))


# Pages


def knows_site(archive: Archive, host: str) -> bool:
    """Whether any page of a host was ever checked."""
    return count_site_pages(archive, host, 1) > 0


def require_site(archive: Archive, where: str) -> str:
    """The host that a SITE names; NotFound when no page of it was ever checked."""
    host = site(where)
    if not knows_site(archive, host):
        raise NotFound(f"no page of {host} is in the archive; crawl it first")
    return host


def count_site_pages(archive: Archive, host: str, most: int) -> int:
    """How many pages of a host were ever checked; counts to `most` and no further."""
    return Activity(archive.catalog.database).count_pages(host, most)


def captured_urls(archive: Archive, host: str | None = None) -> Iterator[str]:
    """All URLs that have a version, or those of one host, oldest first."""
    resources = archive.catalog.resources
    rows = resources.all() if host is None else resources.of_host(host)
    return (row.url for row in rows if row.versions)


def count_captured(archive: Archive, host: str | None = None) -> int:
    """How many these are."""
    return Activity(archive.catalog.database).count_captured(host)


def urls_of_pages(archive: Archive, pages: Iterable[int]) -> dict[int, str]:
    """The URLs of those of some pages that have a version, by their ids."""
    rows = (archive.catalog.resources.by_id(page) for page in pages)
    return {row.id: row.url for row in rows if row is not None and row.versions}


def page_ids(archive: Archive, urls: Sequence[str], *, captured: bool = False) -> dict[str, int]:
    """The ids of those of some URLs that are known, or of those alone that have a version."""
    rows = last_checks(archive.catalog.database, urls).values()
    return {row.url: row.resource for row in rows if not captured or row.newest is not None}


def all_page_ids(archive: Archive) -> Iterator[tuple[int, str]]:
    """Ids and URLs of everything that is known, planned pages included."""
    return archive.catalog.resources.ids()


def gone_since(archive: Archive, newest: Mapping[str, datetime]) -> dict[str, datetime]:
    """Which of some pages, by the times of their newest versions, are gone (404, 410), and since when that is known."""
    found = {}
    for url, check in last_checks(archive.catalog.database, list(newest)).items():
        if check.time is not None and check.time > to_millis(newest[url]):
            since = _first_gone(archive, url, newest[url])
            found.update({url: since} if since is not None else {})
    return found


def _first_gone(archive: Archive, url: str, newest: datetime) -> datetime | None:
    """The first of the checks at the end of which none found the page any more."""
    last = archive.answers.last_check(url)
    if last is None or last.status not in _GONE:
        return None
    since = None
    for check in archive.answers.checks(url, to_millis(newest) + 1):
        if check.status not in _GONE:
            since = None
        elif since is None:
            since = check.checked_at
    return since


def equal_contents(archive: Archive, most: int, urls_each: int) -> list[tuple[CopyRow, list[str]]]:
    """Contents that are the newest version of several URLs, each with some of these; the most frequent first."""
    activity = Activity(archive.catalog.database)
    rows = activity.copies(most)
    urls = activity.holders([row.content for row in rows], urls_each)
    return [(row, urls[row.content]) for row in rows]


# What is indexed of pages


def url_rules(archive: Archive) -> tuple[tuple[str, str], ...]:
    """All hosts that have rules for URLs, and the rules as XML."""
    return index_state.url_rules_by_host(archive.catalog.database)


def set_url_rules(archive: Archive, rules: dict[str, str]) -> None:
    """Replaces the rules (as XML) of each host named; an empty text removes them."""
    index_state.set_url_rules(archive.catalog.database, rules)


def title_only_pages(archive: Archive) -> frozenset[int]:
    """Ids of all pages of which only the titles are to be found."""
    return index_state.title_only(archive.catalog.database)


def index_titles_only(archive: Archive) -> Callable[[Cursor, list[RecordedCapture]], None]:
    """An extension of `Archive.record`: of pages that it records for the first time only the titles are found."""
    index_state.prepare_indexing(archive.catalog.database)
    return lambda cursor, done: index_state.mark_title_only(cursor, [row.resource for row in done if row.first])


def index_whole_pages(archive: Archive, hosts: Iterable[str]) -> list[int]:
    """Lets the whole text of the pages of these hosts be found again; answers which pages that concerns."""
    return index_state.release_titles(archive.catalog.database, hosts)


# Words


def word_forms(archive: Archive) -> list[WordRow]:
    """All words whose base forms somebody settled, in their order."""
    return index_state.word_rows(archive.catalog.database)


def settle_base_forms(archive: Archive, pairs: Iterable[tuple[str, str]]) -> None:
    """Gives words their base forms; those that are locked or settled keep what they have."""
    index_state.settle_bases(archive.catalog.database, pairs)


def lock_word(archive: Archive, form: str) -> None:
    """From now on the word is its own base form."""
    index_state.lock_word(archive.catalog.database, form)


def release_word(archive: Archive, form: str) -> None:
    """Forgets what was settled about a word."""
    index_state.release_word(archive.catalog.database, form)


def duplicate_hashes(archive: Archive) -> NearDuplicateHashes:
    """The hashes by which near duplicates are found; they follow the log of versions."""
    return NearDuplicateHashes(archive.catalog.database)


# Answers of search that people chose


def choice_counts(archive: Archive) -> dict[int, tuple[int, int]]:
    """How often pages were shown and chosen, by their ids; only those that ever were chosen."""
    return SearchChoices(archive.catalog.database).often()


def record_shown(archive: Archive, urls: Sequence[str]) -> None:
    """An answer with these pages was shown to somebody; counted only where `search.learn` is on."""
    if archive.settings.search.learn and urls:
        SearchChoices(archive.catalog.database).shown(list(page_ids(archive, urls).values()))


def record_choice(archive: Archive, url: str) -> None:
    """Somebody went from an answer to this page: where `search.learn` is on it counts, and is visited soon."""
    row = archive.catalog.resources.find(url) if archive.settings.search.learn else None
    if row is None:
        return
    SearchChoices(archive.catalog.database).chosen(row.id)
    soon = to_millis(archive.clock()) + round(archive.settings.schedule.min * 1000)
    with archive.catalog.transaction() as cursor:
        archive.catalog.queues.hasten(cursor, row.id, soon)
