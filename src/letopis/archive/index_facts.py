"""What the indexes read from the record, and what they store in it.

The log of versions for followers; rules for URLs and pages known only by their titles; base forms of words; hashes of
near duplicates; which search results were shown and opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from letopis.archive.archive import Archive, of_archive
from letopis.archive.page_memory import RecordExtension
from letopis.catalog import OUTCOMES, index_state
from letopis.catalog.activity import Activity, CopyRow
from letopis.catalog.index_state import NearDuplicateHashes, SearchChoices, WordRow
from letopis.catalog.version_log import LoggedVersion, LogMark, RecordedVersions, TroubleRow, VersionSpan
from letopis.catalog.versions import last_checks
from letopis.errors import NotFound
from letopis.model import Outcome, header, to_millis
from letopis.tuples import NamedTuple
from letopis.urls import site

__all__ = ["LogMark", "LoggedVersion", "TroubledCheck", "VersionLog", "VersionSpan", "WordRow"]

_GONE = (404, 410)


class TroubledCheck(NamedTuple):
    """A check without a new version; `location` is the target of a redirect, as the server wrote it."""

    url: str
    time: int
    status: int
    outcome: Outcome
    location: str


class VersionLog(RecordedVersions):
    """The log of versions of an archive, and the checks without new versions."""

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive.catalog.database)
        self._heads = archive.catalog.heads

    def troubled_checks(self) -> Iterator[TroubledCheck]:
        """Checks without a version, of every URL that ever failed or redirected: URL by URL, oldest first."""
        return map(self._troubled, self.troubled_rows())

    def _troubled(self, row: TroubleRow) -> TroubledCheck:
        redirects = 300 <= row.status < 400 and row.status != 304 and row.head is not None
        headers = self._heads.get(row.head) if redirects and row.head is not None else ()
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
    """How many pages of a host were ever checked; counts at most to `most`."""
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
    """Which of some pages, by the times of their newest versions, are gone (404, 410), and since when."""
    found = {}
    for url, check in last_checks(archive.catalog.database, list(newest)).items():
        if check.time is not None and check.time > to_millis(newest[url]):
            since = _first_gone(archive, url, newest[url])
            found.update({url: since} if since is not None else {})
    return found


def _first_gone(archive: Archive, url: str, newest: datetime) -> datetime | None:
    """The first of the last consecutive checks that did not find the page."""
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

url_rules = of_archive(index_state.url_rules_by_host)
set_url_rules = of_archive(index_state.set_url_rules)
title_only_pages = of_archive(index_state.title_only)
index_whole_pages = of_archive(index_state.release_titles)


def index_titles_only(archive: Archive) -> RecordExtension:
    """An extension of `Archive.record`: pages that it records for the first time are found only by their titles."""
    index_state.prepare_indexing(archive.catalog.database)
    return lambda cursor, done: index_state.mark_title_only(cursor, [row.resource for row in done if row.first])


# Words

word_forms = of_archive(index_state.word_rows)
settle_base_forms = of_archive(index_state.settle_bases)
lock_word = of_archive(index_state.lock_word)
release_word = of_archive(index_state.release_word)
duplicate_hashes = of_archive(NearDuplicateHashes)


# Search results that users opened


def choice_counts(archive: Archive) -> dict[int, tuple[int, int]]:
    """How often pages were shown and opened, by their ids; only those that were ever opened."""
    return SearchChoices(archive.catalog.database).often()


def record_shown(archive: Archive, urls: Sequence[str]) -> None:
    """Records that a result with these pages was shown; counted only if `search.learn` is on."""
    if archive.settings.search.learn and urls:
        SearchChoices(archive.catalog.database).shown(list(page_ids(archive, urls).values()))


def record_choice(archive: Archive, url: str) -> None:
    """Records that this result was opened: if `search.learn` is on it counts, and the page is visited soon."""
    row = archive.catalog.resources.find(url) if archive.settings.search.learn else None
    if row is None:
        return
    SearchChoices(archive.catalog.database).chosen(row.id)
    soon = to_millis(archive.clock()) + round(archive.settings.schedule.min * 1000)
    with archive.catalog.transaction() as cursor:
        archive.catalog.queues.hasten(cursor, row.id, soon)
