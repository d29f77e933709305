"""Changes for those who follow them: feeds of a page, site, project, tag or saved search, and a stream of events.

`/feed/...` is Atom, `/feed/rss/...` and `/feed/json/...` the same as RSS and JSON Feed; `/api/v1/events` tells open
pages of every new version.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from html import escape as escape_html
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape, quoteattr

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.routing import Route

from letopis.api.door import context_of
from letopis.api.requests import archive_of, origin_of, problem_response
from letopis.archive import Archive
from letopis.archive.accounts import latest_of_project, projects_of
from letopis.archive.activity import LatestVersion, LatestVersions, changes_since, latest_versions_of, newest_change
from letopis.archive.index_facts import require_site
from letopis.archive.verdicts import verdict_between
from letopis.archive.watches import FoundResult, saved_searches_of
from letopis.errors import LetopisError, NotFound, UsageError, shell_words
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.model import from_millis, rfc3339
from letopis.monitor.watch_list import WatchList
from letopis.operations import json_value
from letopis.operations.totals import new_change
from letopis.operations.words import current_words
from letopis.replay.addresses import ReplayUrls, embedded_url, http_date, path_after
from letopis.tuples import NamedTuple

MOST_ENTRIES = 30
MOST_SHOWN = 20_000
"""Characters of a difference inside an entry."""

_MOST_CACHED = 1000
_MOST_ASKED = 500
"""Watched pages of which each is asked for its versions; of more, the last versions of all pages are looked through."""
_SAVED = re.compile(r"saved/([0-9]{1,18})")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class FeedEntry(NamedTuple):
    """One version. `html` may be put into any feed reader: everything in it is escaped."""

    key: str
    url: str
    title: str
    link: str
    time: int
    html: str


class Feed(NamedTuple):
    """A feed before it has a format."""

    title: str
    link: str
    own: str
    entries: list[FeedEntry]


def xml_text(text: str) -> str:
    """Text that XML can hold."""
    return _NOT_XML.sub("\ufffd", text)


class FeedBuilder:
    """Makes entries; differences are worked out once each."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: OrderedDict[int, str] = OrderedDict()
        self._lock = threading.Lock()

    def entry(self, web: ReplayUrls, version: LatestVersion) -> FeedEntry | None:
        """The entry of a version; None where it turns out, at this first question about it, to be no change."""
        html = self._html(version)
        if not html:
            return None
        name = hashlib.sha1(version.url.encode(), usedforsecurity=False).hexdigest()
        what = "is new" if version.number == 0 else "changed"
        return FeedEntry(
            key=f"urn:letopis:{name}:{version.time}",
            url=version.url,
            title=xml_text(f"{version.title or version.url} {what}"),
            link=web.memento(version.time, version.url),
            time=version.time,
            html=html,
        )

    def _html(self, version: LatestVersion) -> str:
        with self._lock:
            known = self._known.get(version.id)
        if known is None:
            known = self._made(version)
            with self._lock:
                self._known[version.id] = known
                while len(self._known) > _MOST_CACHED:
                    self._known.popitem(last=False)
        return known

    def _made(self, version: LatestVersion) -> str:
        head = f'<p><a href="{escape_html(version.url)}">{escape_html(version.url)}</a></p>'
        if version.number == 0:
            return head + "<p>First version.</p>"
        try:
            new = self._archive.get(version.url, version=version.number)
            old = self._archive.get(version.url, version=version.number - 1)
            text = str(self._archive.difference(old, new, "unified"))
            change = verdict_between(self._archive, old, new)
            if change.meaningful is False and self._archive.settings.change.count != "bytes":
                return ""
            head += f"<p>{escape_html(f'{change.verdict}, {change.score:.1%}: {change.reason}')}</p>"
        except LetopisError as error:
            text = f"The difference cannot be shown: {shell_words(error)}"
        cut = text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "\n..."
        return f"{head}<pre>{escape_html(xml_text(cut))}</pre>"


ATOM = "application/atom+xml; charset=utf-8"
RSS = "application/rss+xml; charset=utf-8"
_XML = '<?xml version="1.0" encoding="utf-8"?>\n'


def atom(feed: Feed) -> str:
    """RFC 4287."""
    updated = rfc3339(from_millis(max((entry.time for entry in feed.entries), default=0)))
    entries = "".join(map(_atom_entry, feed.entries))
    return (
        f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(feed.title)}</title>'
        f"<id>{escape(feed.own)}</id><updated>{updated}</updated><author><name>Letopis</name></author>"
        f'<link rel="self" href={quoteattr(feed.own)}/><link rel="alternate" href={quoteattr(feed.link)}/>'
        f"{entries}</feed>\n"
    )


def _atom_entry(entry: FeedEntry) -> str:
    time = rfc3339(from_millis(entry.time))
    return (
        f"<entry><title>{escape(entry.title)}</title><id>{escape(entry.key)}</id><updated>{time}</updated>"
        f'<published>{time}</published><link rel="alternate" href={quoteattr(entry.link)}/>'
        f'<content type="html">{escape(entry.html)}</content></entry>'
    )


def rss(feed: Feed) -> str:
    """RSS 2.0."""
    items = "".join(map(_rss_item, feed.entries))
    return (
        f'{_XML}<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
        f"<title>{escape(feed.title)}</title><link>{escape(feed.link)}</link>"
        f"<description>{escape(feed.title)}</description>"
        f'<atom:link rel="self" type="application/rss+xml" href={quoteattr(feed.own)}/>{items}</channel></rss>\n'
    )


def _rss_item(entry: FeedEntry) -> str:
    return (
        f"<item><title>{escape(entry.title)}</title><link>{escape(entry.link)}</link>"
        f'<guid isPermaLink="false">{escape(entry.key)}</guid><pubDate>{http_date(entry.time)}</pubDate>'
        f"<description>{escape(entry.html)}</description></item>"
    )


JSON_FEED = "application/feed+json; charset=utf-8"


def json_feed(feed: Feed) -> str:
    """JSON Feed 1.1."""
    items = [
        {
            "id": entry.key,
            "url": entry.link,
            "external_url": entry.url,
            "title": entry.title,
            "content_html": entry.html,
            "date_published": rfc3339(from_millis(entry.time)),
        }
        for entry in feed.entries
    ]
    about = {"version": "https://jsonfeed.org/version/1.1", "title": feed.title, "home_page_url": feed.link}
    return json.dumps({**about, "feed_url": feed.own, "authors": [{"name": "Letopis"}], "items": items})


_FORMS: dict[str, tuple[Callable[[Feed], str], str]] = {
    "": (atom, ATOM),
    "rss/": (rss, RSS),
    "json/": (json_feed, JSON_FEED),
}
"""How a feed is written, and its type, by how its address begins."""


def feed(request: Request) -> Response:
    """The feed that the address names, or 304 when the client has it."""
    archive = archive_of(request)
    rest = path_after(request.scope, "/feed/")
    form = next((form for form in _FORMS if form and rest.startswith(form)), "")
    rest = rest.removeprefix(form)
    web, saved = ReplayUrls(origin_of(request.scope)), _SAVED.fullmatch(rest.partition("?")[0])
    title, link, found = _saved(archive, int(saved[1])) if saved else _subject(request, archive, rest)
    newest = max((one.time if isinstance(one, FoundResult) else one.id for one in found), default=0)
    etag = f'W/"{newest}-{len(found)}"'
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": etag})
    builder = archive.attached(FeedBuilder)
    own = f"{web.origin}/feed/{form}{rest}"
    home = web.origin + link if link.startswith("/") else link
    entries = (
        _result_entry(web, home, one) if isinstance(one, FoundResult) else builder.entry(web, one) for one in found
    )
    write, kind = _FORMS[form]
    made = Feed(xml_text(title), home, own, [entry for entry in entries if entry is not None])
    return Response(write(made), headers={"etag": etag}, media_type=kind)


def _saved(archive: Archive, number: int) -> tuple[str, str, Sequence[LatestVersion | FoundResult]]:
    """What a saved search has found, each with the time when it did first."""
    row = saved_searches_of(archive).by_id(number)
    return (f"Saved search {row.name}", f"/saved/{number}", saved_searches_of(archive).results(number, MOST_ENTRIES))


def _result_entry(web: ReplayUrls, home: str, one: FoundResult) -> FeedEntry:
    """A result that is about no page leads to the saved search."""
    name, url = xml_text(one.title or one.url), xml_text(one.url)
    shown = f'<p><a href="{escape_html(url)}">{escape_html(url)}</a></p>' if url else ""
    link = web.memento(one.time, one.url) if one.url.startswith(("http://", "https://")) else home
    key = f"urn:letopis:saved:{home.rpartition('/')[2]}:{one.digest}"
    return FeedEntry(key, url, name, link, one.time, f"<p>{escape_html(name)}</p>{shown}")


def _subject(request: Request, archive: Archive, rest: str) -> tuple[str, str, Sequence[LatestVersion | FoundResult]]:
    """What a feed is about: its title, the page it belongs to, its versions."""
    latest = latest_versions_of(archive)
    kind, _, name = rest.partition("?")[0].partition("/")
    if kind == "site" and name:
        host = require_site(archive, unquote(name))
        return f"Changes on {host}", f"http://{host}/", latest.of_host(host, MOST_ENTRIES)
    if kind == "project" and name:
        found = projects_of(archive).show(unquote(name))
        return f"Changes in project {found.name}", f"/projects/{name}", latest_of_project(archive, found, MOST_ENTRIES)
    if (kind == "tag" and name) or rest == "watches":
        return _watched(archive, latest, unquote(name))
    if kind == "search" and not name:
        return _search(request, latest)
    url = archive.answers.resource(embedded_url(rest)).url
    return f"Changes of {url}", url, latest.of_page(url, MOST_ENTRIES)


def _watched(archive: Archive, latest: LatestVersions, tag: str) -> tuple[str, str, list[LatestVersion]]:
    """Of the watches of a tag, or of all."""
    urls = list(dict.fromkeys(entry.watch.url for entry in WatchList(archive).entries(tag or None)))
    if not tag:
        few = len(urls) <= _MOST_ASKED
        found = latest.of_pages(urls, MOST_ENTRIES) if few else latest.that_fit(set(urls).__contains__, MOST_ENTRIES)
        return "Changes of all watches", "/watches", found
    if not urls:
        raise NotFound(f"no watch has the tag '{tag[:70]}'; see the list of watches")
    return f"Changes of watches tagged {tag}", f"/watches?tag={quote(tag)}", latest.of_pages(urls, MOST_ENTRIES)


def _search(request: Request, latest: LatestVersions) -> tuple[str, str, list[LatestVersion]]:
    words = request.query_params.get("q", "")
    if not words:
        raise UsageError("give q=, for example /feed/search?q=harvest")
    hits = search(current_words(context_of(request)), parse_word_query(words), limit=MOST_ENTRIES)
    return f"Pages with {words}", f"/search?q={quote(words)}", latest.of_pages([hit.url for hit in hits], MOST_ENTRIES)


FEED_ROUTES = [Route("/feed/{rest:path}", feed, methods=["GET", "HEAD"])]

events_router = APIRouter()
MAX_LISTENERS = 500
POLL_SECONDS = 1.0
QUIET_POLLS = 15
"""After this many polls without news a comment keeps the connection alive."""


@events_router.get("/events", include_in_schema=False)
async def events(request: Request) -> Response:
    """New versions as server-sent events; `Last-Event-ID` goes on where a connection broke."""
    if request.app.state.listeners >= MAX_LISTENERS:
        return problem_response(503, "Too many listeners", "try again later, or ask /api/v1/changes now and then")
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else None
    if after is None:
        after = await run_in_threadpool(newest_change, archive_of(request))
    return StreamingResponse(
        _events(request, after), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _events(request: Request, after: int) -> AsyncIterator[str]:
    archive, state = archive_of(request), request.app.state
    state.listeners += 1
    quiet = 0
    try:
        yield ": listening\n\n"
        while not await request.is_disconnected() and not state.stopping:
            rows = await run_in_threadpool(changes_since, archive, after, 100)
            for row in rows:
                after = row.id
                yield f"id: {row.id}\nevent: version\ndata: {json.dumps(json_value(new_change(row)))}\n\n"
            quiet = 0 if rows else quiet + 1
            if quiet and quiet % QUIET_POLLS == 0:
                yield ": still here\n\n"
            await asyncio.sleep(0 if rows else POLL_SECONDS)
    finally:
        state.listeners -= 1


__all__ = ["FEED_ROUTES", "events_router"]
