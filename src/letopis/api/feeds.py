"""`/feed/...`: changes of a page, site, project, tag or search as Atom; the same under `/feed/rss/...` as RSS."""

from __future__ import annotations

from urllib.parse import quote, unquote
from xml.sax.saxutils import escape, quoteattr

from fastapi import Request, Response
from starlette.routing import Route

from letopis.api.feed_entries import MOST_ENTRIES, Feed, FeedBuilder, FeedEntry
from letopis.api.requests import archive_of, origin_of
from letopis.api.search import word_index_of
from letopis.archive import Archive
from letopis.catalog.accounts import Projects
from letopis.catalog.activity import LatestVersion, LatestVersions
from letopis.errors import NotFound, UsageError
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.model import from_millis, rfc3339
from letopis.monitor.watch_list import WatchList
from letopis.replay.addresses import ReplayUrls, embedded_url, http_date, path_after
from letopis.replay.captures import not_captured

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


def feed(request: Request) -> Response:
    """The feed that the address names, or 304 when the client has it."""
    archive = archive_of(request)
    rest = path_after(request.scope, "/feed/")
    as_rss, rest = rest.startswith("rss/"), rest.removeprefix("rss/")
    title, link, versions = _subject(request, archive, rest)
    newest = max((version.id for version in versions), default=0)
    etag = f'W/"{newest}-{len(versions)}"'
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": etag})
    web = ReplayUrls(origin_of(request.scope))
    newsroom: FeedBuilder = request.app.state.feed_builder
    own = f"{web.origin}/feed/{'rss/' if as_rss else ''}{rest}"
    entries = [newsroom.entry(web, version) for version in versions]
    made = Feed(title, link, own, entries)
    text, kind = (rss(made), RSS) if as_rss else (atom(made), ATOM)
    return Response(text, headers={"etag": etag}, media_type=kind)


def _subject(request: Request, archive: Archive, rest: str) -> tuple[str, str, list[LatestVersion]]:
    """What a feed is about: its title, the page it belongs to, its versions."""
    latest = LatestVersions(archive.catalog.database, meaningful=archive.settings.change.count == "meaningful")
    kind, _, name = rest.partition("?")[0].partition("/")
    if kind == "site" and name:
        return _site(latest, unquote(name).lower().strip("/"))
    if kind == "project" and name:
        found = Projects(archive.catalog.database).show(unquote(name))
        return f"Changes in project {found.name}", f"/projects/{name}", latest.of_pages(found.urls, MOST_ENTRIES)
    if kind == "tag" and name:
        return _tag(archive, latest, unquote(name))
    if kind == "search" and not name:
        return _search(request, latest)
    url = embedded_url(rest)
    if archive.catalog.resources.find(url) is None:
        raise not_captured(url)
    return f"Changes of {url}", url, latest.of_page(url, MOST_ENTRIES)


def _site(latest: LatestVersions, host: str) -> tuple[str, str, list[LatestVersion]]:
    versions = latest.of_host(host, MOST_ENTRIES)
    if not versions:
        raise NotFound(f"no page of {host[:200]} was ever captured here")
    return f"Changes on {host}", f"http://{host}/", versions


def _tag(archive: Archive, latest: LatestVersions, tag: str) -> tuple[str, str, list[LatestVersion]]:
    urls = [entry.watch.url for entry in WatchList(archive).entries(tag)]
    if not urls:
        raise NotFound(f"no watch has the tag '{tag[:70]}'; 'letopis watch list' shows all")
    return f"Changes of watches tagged {tag}", f"/watches?tag={quote(tag)}", latest.of_pages(urls, MOST_ENTRIES)


def _search(request: Request, latest: LatestVersions) -> tuple[str, str, list[LatestVersion]]:
    words = request.query_params.get("q", "")
    if not words:
        raise UsageError("give q=, for example /feed/search?q=harvest")
    index = word_index_of(request)
    index.catch_up()
    hits = search(index, parse_word_query(words), limit=MOST_ENTRIES)
    return f"Pages with {words}", f"/search?q={quote(words)}", latest.of_pages([hit.url for hit in hits], MOST_ENTRIES)


FEED_ROUTES = [Route("/feed/{rest:path}", feed, methods=["GET", "HEAD"])]

__all__ = ["FEED_ROUTES", "FeedBuilder"]
