"""`/cdx/search/cdx` in the Internet Archive's dialect and `/web/cdx` in pywb's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from fastapi import Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from letopis.errors import UsageError
from letopis.serve.cdx.answers import cdxj_lines, json_lines, json_table, text_lines, with_resume
from letopis.serve.cdx.filters import PLACES, place_of, pywb_filters, wayback_filters
from letopis.serve.cdx.parameters import Parameters, parameters, pywb_query, wayback_query
from letopis.serve.cdx.query import Finder, Query, first
from letopis.serve.shared import archive_of, reads_locally
from letopis.serve.streaming import streamed

MAX_RESUMED = 150_000
"""Most rows of one part of an answer that is read part by part."""

_NAMES = {"mimetype": "mime", "statuscode": "status", "original": "url"}


def finder_of(request: Request) -> Finder:
    """The one that remembers media types across requests."""
    finder: Finder = request.app.state.finder
    return finder


def wayback(request: Request) -> Response:
    """Rows of captures by URL, prefix, host or domain."""
    given = parameters(request.scope["query_string"])
    query = wayback_query(given, wayback_filters)
    finder = finder_of(request)
    if given.flag("showNumPages"):
        return PlainTextResponse(f"{finder.pages(query)}\n")
    _refuse_past_the_end(finder, query)
    places = [place_of(name) for name in given.get("fl").split(",")] if given.get("fl") else list(range(7))
    as_json = given.get("output") == "json"
    if given.flag("showResumeKey") and query.order == "forward" and (query.limit or 0) >= 0:
        return _resumable(finder, query, places, as_json)
    batches = finder.find(query)
    if as_json:
        return streamed(json_table(batches, places), "application/json")
    return streamed(text_lines(batches, places), "text/plain; charset=utf-8")


def _refuse_past_the_end(finder: Finder, query: Query) -> None:
    """Programs count pages up until they are told to stop."""
    if query.page and query.page >= finder.pages(query):
        raise UsageError(f"there is no page {query.page}; showNumPages=true tells how many there are")


def _resumable(finder: Finder, query: Query, places: list[int], as_json: bool) -> Response:
    limit = min(query.limit or MAX_RESUMED, MAX_RESUMED)
    found = first(finder.find(replace(query, limit=limit + 1)), limit + 1)
    rows, key = with_resume(found, limit)
    batches = iter([rows] if rows else [])
    if as_json:
        return streamed(json_table(batches, places, key), "application/json")
    tail = [f"\n{key}\n"] if key else []
    return streamed(chain(text_lines(batches, places), tail), "text/plain; charset=utf-8")


def pywb(request: Request) -> Response:
    """CDXJ lines or JSON objects, one a line."""
    given = parameters(request.scope["query_string"])
    query = pywb_query(given, pywb_filters)
    finder = finder_of(request)
    if given.flag("showNumPages"):
        pages = finder.pages(query)
        return JSONResponse({"pages": pages, "pageSize": query.page_size, "blocks": pages * query.page_size})
    _refuse_past_the_end(finder, query)
    text, kind = _formatted(given)
    return streamed(text(finder.find(query)), kind)


def _formatted(given: Parameters) -> tuple[partial[Iterator[str]], str]:
    names = [name for name in given.get("fields", "fl").split(",") if name]
    unknown = [name for name in names if name not in PLACES]
    if unknown:
        raise UsageError(f"there is no field '{unknown[0][:40]}'; the fields are {', '.join(PLACES)}")
    if given.get("output") == "json":
        chosen = [_NAMES.get(name, name) for name in names]
        return (partial(json_lines, names=chosen) if chosen else partial(json_lines)), "application/x-ndjson"
    if names:
        return partial(text_lines, places=[PLACES[name] for name in names]), "text/plain; charset=utf-8"
    return partial(cdxj_lines), "text/x-cdxj; charset=utf-8"


def _answering(dialect: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Questions for one page without patterns are answered at once, all others in a thread."""

    async def answer(request: Request) -> Response:
        asked = request.scope["query_string"]
        long = b"filter=" in asked or b"matchType=" in asked or b"*" in asked or b"%2A" in asked.upper()
        if not long and reads_locally(archive_of(request)):
            return dialect(request)
        return await run_in_threadpool(dialect, request)

    return answer


ROUTES = [
    Route("/cdx/search/cdx", _answering(wayback), methods=["GET", "HEAD"]),
    Route("/web/cdx", _answering(pywb), methods=["GET", "HEAD"]),
]
