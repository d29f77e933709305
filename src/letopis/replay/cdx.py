"""CDX servers: `/cdx/search/cdx` in the Internet Archive's dialect, `/web/cdx` in pywb's, and the text each sends;
`/wayback/available`, which knows one question.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import cast
from urllib.parse import unquote_to_bytes

from fastapi import Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from letopis.api.requests import archive_of, origin_of, streamed_response
from letopis.errors import UsageError
from letopis.exchange.cdx import FIELDS, CdxRow, cdxj_line
from letopis.exchange.exported_places import ExportedPlaces
from letopis.replay.cdx_query import (
    ELSEWHERE,
    FIELD_INDEXES,
    IN_FILE,
    CdxFinder,
    CdxParameters,
    CdxQuery,
    available_query,
    field_index,
    first_rows,
    parse_parameters,
    pywb_query,
    resume_key,
    wayback_query,
)
from letopis.tuples import NamedTuple

_ALL = tuple(range(7))
_STATUSCODE, _LENGTH = FIELDS.index("statuscode"), FIELDS.index("length")
_JSON_NAMES = ("urlkey", "timestamp", "url", "mime", "status", "digest", "length")


_NOWHERE = -1
"""The place of a field that no row has."""


def text_lines(batches: Iterator[list[CdxRow]], places: Sequence[int] = _ALL) -> Iterator[str]:
    """Fields with blanks between them, one row a line."""
    if tuple(places) == _ALL:
        for rows in batches:
            yield "".join(["%s %s %s %s %s %s %s\n" % row[:7] for row in rows])  # noqa: UP031 - twice as fast
        return
    pick = _picker(places)
    for rows in batches:
        yield "\n".join([" ".join(pick(row)) for row in rows]) + "\n"


def _picker(places: Sequence[int]) -> Callable[[CdxRow], Sequence[str]]:
    if len(places) == 1 or _NOWHERE in places:
        return lambda row: [str(row[place]) if place != _NOWHERE else "-" for place in places]
    return itemgetter(*places)


def json_table(
    batches: Iterator[list[CdxRow]], places: Sequence[int] = _ALL, names: Sequence[str] = FIELDS, resume: str = ""
) -> Iterator[str]:
    """An array of arrays, the names of the fields first. An answer without rows is an empty array."""
    pick = _picker(places)
    begun = False
    for rows in batches:
        if not begun:
            yield "[" + json.dumps(names)
            begun = True
        yield ",\n" + json.dumps([pick(row) for row in rows])[1:-1]
    if resume:
        yield f',\n[],\n["{resume}"]'
    yield "]\n" if begun else "[]\n"


def cdxj_lines(batches: Iterator[list[CdxRow]]) -> Iterator[str]:
    """Key, timestamp and a JSON object."""
    for rows in batches:
        yield "\n".join(map(cdxj_line, rows)) + "\n"


def json_lines(batches: Iterator[list[CdxRow]], names: Sequence[str] = _JSON_NAMES) -> Iterator[str]:
    """One JSON object per line."""
    places = _object_places(names)
    for rows in batches:
        yield "".join([json.dumps(_object(row, places)) + "\n" for row in rows])


def chosen_cdxj_lines(batches: Iterator[list[CdxRow]], names: Sequence[str]) -> Iterator[str]:
    """Key, timestamp and a JSON object of some fields."""
    places = _object_places([name for name in names if name not in ("urlkey", "timestamp")])
    for rows in batches:
        yield "".join([f"{row[0]} {row[1]} {json.dumps(_object(row, places))}\n" for row in rows])


def _object_places(names: Sequence[str]) -> dict[str, int]:
    places = {name: at for at, name in enumerate(_JSON_NAMES)} | {name: 8 + at for at, name in enumerate(IN_FILE)}
    return {name: places[name] for name in names if name in places}


def _object(row: CdxRow, places: dict[str, int]) -> dict[str, object]:
    """A revisit has no status of its own."""
    return {name: row[place] for name, place in places.items() if place != _STATUSCODE or row[place]}


def with_resume(rows: list[CdxRow], limit: int) -> tuple[list[CdxRow], str]:
    """Rows up to the limit, and the key to go on with when one more was found."""
    return (rows[:limit], resume_key(rows[limit - 1])) if len(rows) > limit else (rows, "")


MAX_RESUMED = 150_000
"""Most rows of one part of an answer that is read part by part."""

_NAMES = {"mimetype": "mime", "statuscode": "status", "original": "url"}


def cdx_finder_of(request: Request) -> CdxFinder:
    """Answers over the archive that is served."""
    return CdxFinder(archive_of(request))


def wayback(request: Request) -> Response:
    """Rows of captures by URL, prefix, host or domain."""
    parameters = parse_parameters(request.scope["query_string"])
    query = wayback_query(parameters)
    finder = cdx_finder_of(request)
    if parameters.flag("showNumPages"):
        return PlainTextResponse(f"{finder.pages(query)}\n")
    _refuse_past_the_end(finder, query)
    names = [*(name for name in parameters.get("fl").split(",") if name)] or list(FIELDS)
    names += [name for name in query.counts if name not in names]
    names += [name for name in _ORIGINALS if query.resolved is not None and name not in names]
    table = _Table(names, _places(names, query), parameters.get("output") == "json", _exports(request, names))
    if parameters.flag("showResumeKey") and query.order == "forward" and (query.limit or 0) >= 0:
        return _resumable(finder, query, table)
    return table.response(finder.find(query))


_ORIGINALS = ("orig.length", "orig.offset", "orig.filename")


def _places(names: Sequence[str], query: CdxQuery) -> list[int]:
    """The positions of the fields in the rows of an answer."""
    counted = {name: 8 + at for at, name in enumerate(query.counts)}
    counted |= {name: 8 + len(query.counts) + at for at, name in enumerate(IN_FILE)}
    return [_NOWHERE if name in ELSEWHERE else counted.get(name) or field_index(name) for name in names]


def _exports(request: Request, names: Sequence[str]) -> ExportedPlaces | None:
    """The files with the captures, if the query requests them."""
    return ExportedPlaces(archive_of(request)) if any(name in IN_FILE for name in names) else None


def _located(batches: Iterator[list[CdxRow]], exports: ExportedPlaces | None) -> Iterator[list[CdxRow]]:
    """Rows with file and offset after their fields; the length is then that of the record in the file."""
    return batches if exports is None else ([_in_file(row, exports) for row in rows] for rows in batches)


def _in_file(row: CdxRow, exports: ExportedPlaces) -> CdxRow:
    found = exports.find(row[2], row[7])
    if found is None:
        return cast(CdxRow, (*row, "-", "-"))
    return cast(CdxRow, (*row[:_LENGTH], str(found.length), *row[_LENGTH + 1 :], found.filename, str(found.offset)))


class _Table(NamedTuple):
    """The form of an answer in the Internet Archive's dialect."""

    names: list[str]
    places: list[int]
    as_json: bool
    exports: ExportedPlaces | None

    def response(self, batches: Iterator[list[CdxRow]], resume: str = "") -> Response:
        """Rows, and the key with which to ask for more."""
        batches = _located(batches, self.exports)
        if self.as_json:
            return streamed_response(json_table(batches, self.places, self.names, resume), "application/json")
        tail = [f"\n{resume}\n"] if resume else []
        return streamed_response(chain(text_lines(batches, self.places), tail), "text/plain; charset=utf-8")


def _refuse_past_the_end(finder: CdxFinder, query: CdxQuery) -> None:
    """Programs count pages up until an answer stops them."""
    if query.page and query.page >= finder.pages(query):
        raise UsageError(f"there is no page {query.page}; showNumPages=true tells how many there are")


def _resumable(finder: CdxFinder, query: CdxQuery, table: _Table) -> Response:
    limit = min(query.limit or MAX_RESUMED, MAX_RESUMED)
    found = first_rows(finder.find(query._replace(limit=limit + 1)), limit + 1)
    rows, key = with_resume(found, limit)
    return table.response(iter([rows] if rows else []), key)


def pywb(request: Request) -> Response:
    """CDXJ lines or JSON objects, one a line."""
    parameters = parse_parameters(request.scope["query_string"])
    query = pywb_query(parameters)
    finder = cdx_finder_of(request)
    if parameters.flag("showNumPages"):
        pages = finder.pages(query)
        return JSONResponse({"pages": pages, "pageSize": query.page_size, "blocks": pages * query.page_size})
    _refuse_past_the_end(finder, query)
    names = [name for name in parameters.get("fields", "fl").split(",") if name]
    text, kind = _formatted(parameters, names)
    return streamed_response(text(_located(finder.find(query), _exports(request, names))), kind)


def _formatted(parameters: CdxParameters, names: Sequence[str]) -> tuple[partial[Iterator[str]], str]:
    unknown = [name for name in names if name not in FIELD_INDEXES and name not in (*ELSEWHERE, *IN_FILE)]
    if unknown:
        raise UsageError(f"unknown field '{unknown[0][:40]}'; the fields are {', '.join(FIELD_INDEXES)}")
    output = parameters.get("output") or "cdxj"
    if output not in _OUTPUTS:
        raise UsageError(f"output must be one of {', '.join(_OUTPUTS)}")
    chosen = [_NAMES.get(name, name) for name in names]
    if output == "json":
        return (partial(json_lines, names=chosen) if chosen else partial(json_lines)), "application/x-ndjson"
    if output == "text" and names:
        return partial(plain_lines, places=[_text_place(name) for name in names]), _PLAIN
    if names:
        return partial(chosen_cdxj_lines, names=chosen), "text/x-cdxj; charset=utf-8"
    return partial(cdxj_lines), "text/x-cdxj; charset=utf-8"


def _text_place(name: str) -> int:
    return 8 + IN_FILE.index(name) if name in IN_FILE else FIELD_INDEXES.get(name, _NOWHERE)


_OUTPUTS = ("cdxj", "json", "text")
_PLAIN = "text/plain; charset=utf-8"


def plain_lines(batches: Iterator[list[CdxRow]], places: Sequence[int]) -> Iterator[str]:
    """Fields with blanks between them, `-` for one that a row lacks."""
    pick = _picker(places)
    for rows in batches:
        yield "".join([" ".join([value or "-" for value in pick(row)]) + "\n" for row in rows])


def available(request: Request) -> Response:
    """Whether a page was captured, and the capture nearest to a time: what browsers' add-ons and bots ask."""
    parameters = parse_parameters(request.scope["query_string"])
    asked, stamp = parameters.get("url"), parameters.get("timestamp")
    query = available_query(parameters)
    row = next(iter(first_rows(cdx_finder_of(request).find(query), 1)), None)
    found: dict[str, object] = {}
    if row is not None:
        address = f"{origin_of(request.scope)}/web/{row[1]}/{row[2]}"
        found["closest"] = {"status": row[4], "available": True, "url": address, "timestamp": row[1]}
    named = {"timestamp": stamp} if stamp else {}
    return JSONResponse({"url": asked, "archived_snapshots": found, **named})


def _answering(dialect: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Questions for one page without patterns are answered at once, all others in a thread."""

    async def answer(request: Request) -> Response:
        query = unquote_to_bytes(request.scope["query_string"])
        long = b"filter=" in query or b"matchType=" in query or b"*" in query
        if not long and archive_of(request).reads_locally:
            return dialect(request)
        return await run_in_threadpool(dialect, request)

    return answer


CDX_ROUTES = [
    Route("/cdx/search/cdx", _answering(wayback), methods=["GET", "HEAD"]),
    Route("/web/cdx", _answering(pywb), methods=["GET", "HEAD"]),
    Route("/wayback/available", _answering(available), methods=["GET", "HEAD"]),
]

__all__ = ["CDX_ROUTES", "CdxFinder", "CdxQuery"]
