"""`/feed/...`: Atom of what changed; the same under `/feed/rss/...` as RSS."""

from __future__ import annotations

from urllib.parse import quote, unquote

from fastapi import Request, Response
from starlette.routing import Route

from letopis.archive import Archive
from letopis.catalog.latest import Latest, LatestVersion
from letopis.catalog.projects import Projects
from letopis.errors import NotFound, UsageError
from letopis.monitor.book import WatchBook
from letopis.search import parse_question, search
from letopis.serve.feeds.entries import MOST_ENTRIES, Feed, Newsroom
from letopis.serve.feeds.formats import ATOM, RSS, atom, rss
from letopis.serve.memento.addresses import Web, asked, target
from letopis.serve.memento.replay import not_captured
from letopis.serve.origin import origin
from letopis.serve.rest.search import words_of
from letopis.serve.shared import archive_of


def feed(request: Request) -> Response:
    """The feed that the address names, or 304 when the client has it."""
    archive = archive_of(request)
    rest = asked(request.scope, "/feed/")
    as_rss, rest = rest.startswith("rss/"), rest.removeprefix("rss/")
    title, link, versions = _subject(request, archive, rest)
    newest = max((version.id for version in versions), default=0)
    etag = f'W/"{newest}-{len(versions)}"'
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": etag})
    web = Web(origin(request.scope))
    newsroom: Newsroom = request.app.state.newsroom
    own = f"{web.origin}/feed/{'rss/' if as_rss else ''}{rest}"
    entries = [newsroom.entry(web, version) for version in versions]
    made = Feed(title, link, own, entries)
    text, kind = (rss(made), RSS) if as_rss else (atom(made), ATOM)
    return Response(text, headers={"etag": etag}, media_type=kind)


def _subject(request: Request, archive: Archive, rest: str) -> tuple[str, str, list[LatestVersion]]:
    """What a feed is about: its title, the page it belongs to, its versions."""
    latest = Latest(archive.catalog.database, meaningful=archive.settings.change.count == "meaningful")
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
    url = target(rest)
    if archive.catalog.resources.find(url) is None:
        raise not_captured(url)
    return f"Changes of {url}", url, latest.of_page(url, MOST_ENTRIES)


def _site(latest: Latest, host: str) -> tuple[str, str, list[LatestVersion]]:
    versions = latest.of_host(host, MOST_ENTRIES)
    if not versions:
        raise NotFound(f"no page of {host[:200]} was ever captured here")
    return f"Changes on {host}", f"http://{host}/", versions


def _tag(archive: Archive, latest: Latest, tag: str) -> tuple[str, str, list[LatestVersion]]:
    urls = [entry.watch.url for entry in WatchBook(archive).entries(tag)]
    if not urls:
        raise NotFound(f"no watch has the tag '{tag[:70]}'; 'letopis watch list' shows all")
    return f"Changes of watches tagged {tag}", f"/watches?tag={quote(tag)}", latest.of_pages(urls, MOST_ENTRIES)


def _search(request: Request, latest: Latest) -> tuple[str, str, list[LatestVersion]]:
    words = request.query_params.get("q", "")
    if not words:
        raise UsageError("give q=, for example /feed/search?q=harvest")
    index = words_of(request)
    index.catch_up()
    hits = search(index, parse_question(words), limit=MOST_ENTRIES)
    return f"Pages with {words}", f"/search?q={quote(words)}", latest.of_pages([hit.url for hit in hits], MOST_ENTRIES)


ROUTES = [Route("/feed/{rest:path}", feed, methods=["GET", "HEAD"])]
