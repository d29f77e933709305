"""REST for what is recorded: versions, history, contents, differences, links, totals. None asks the web."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from letopis.api.models import HistoryRow, HistoryShape, StatsShape, VersionShape, VersionsShape
from letopis.api.requests import (
    ArchiveDep,
    AtParam,
    CursorParam,
    FromParam,
    LimitParam,
    ToParam,
    UrlParam,
    cursor_position,
    parse_moment,
    problem_responses,
)
from letopis.archive import Archive
from letopis.model import Check, Version, to_millis
from letopis.replay.csp import RAW_POLICY, SAFE_HEADERS, safe_content_type

router = APIRouter(tags=["reading"])

Format = Literal["unified", "words", "chars", "html", "visual", "links", "json", "binary"]
_TYPES = {
    "html": "text/html; charset=utf-8",
    "visual": "text/html; charset=utf-8",
    "json": "application/json",
    "binary": "application/octet-stream",
}
_BYTES: dict[str, Any] = {"schema": {}}
_ANY_BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"*/*": _BYTES}, "description": "The bytes"}}


@router.get("/versions", responses=problem_responses(404))
def versions(
    archive: ArchiveDep,
    url: UrlParam,
    start: FromParam = None,
    to: ToParam = None,
    limit: LimitParam = 1000,
    cursor: CursorParam = None,
) -> VersionsShape:
    """The versions of a page, oldest first."""
    since, until, after = parse_moment(archive, start), parse_moment(archive, to), cursor_position(cursor)
    rows = [
        row
        for row in archive.versions(url)
        if row.number >= after and (since is None or row.time >= since) and (until is None or row.time <= until)
    ]
    following = str(rows[limit].number) if len(rows) > limit else None
    address = rows[0].url if rows else url
    return VersionsShape(url=address, versions=[VersionShape.of(row) for row in rows[:limit]], cursor=following)


@router.get("/history", responses=problem_responses(404))
def history(
    archive: ArchiveDep,
    url: UrlParam,
    start: FromParam = None,
    to: ToParam = None,
    limit: LimitParam = 1000,
    cursor: CursorParam = None,
) -> HistoryShape:
    """Every check of a page, oldest first."""
    since, until, after = parse_moment(archive, start), parse_moment(archive, to), cursor_position(cursor)
    rows = [
        row
        for row in archive.history(url)
        if to_millis(row.checked_at) >= after
        and (since is None or row.checked_at >= since)
        and (until is None or row.checked_at <= until)
    ]
    following = str(to_millis(rows[limit].checked_at)) if len(rows) > limit else None
    address = rows[0].url if rows else url
    return HistoryShape(url=address, history=[_history_row(row) for row in rows[:limit]], cursor=following)


def _history_row(check: Check) -> HistoryRow:
    names = ("status", "available", "outcome", "version", "meaningful", "score", "error")
    return HistoryRow(time=check.checked_at, **{name: getattr(check, name) for name in names})


@router.get("/content", response_class=Response, responses={**problem_responses(404), **_ANY_BYTES})
def content(
    request: Request,
    archive: ArchiveDep,
    url: UrlParam,
    at: AtParam = None,
    version: Annotated[int | None, Query(ge=-(2**31), le=2**31)] = None,
    as_is: bool = False,
) -> Response:
    """The bytes of a version: the newest, the one valid at a time, or a numbered one.

    With `as_is` as the server sent them, also where a browser rendered the page.
    """
    found = _version(archive, url, at, version)
    found = archive.as_sent(found) if as_is else found
    fields = {
        "etag": f'"{found.digest}"',
        "content-type": safe_content_type(found.content_type),
        "content-security-policy": RAW_POLICY,
        "x-letopis-version": str(found.number),
        **SAFE_HEADERS,
    }
    if fields["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": fields["etag"]})
    return Response(found.body, headers=fields)


def _version(archive: Archive, url: str, at: str | None, number: int | None = None) -> Version:
    return archive.get(url, version=number, at=parse_moment(archive, at))


@router.get("/diff", response_class=Response, responses={**problem_responses(404), **_ANY_BYTES})
def diff(
    archive: ArchiveDep, url: UrlParam, start: FromParam = None, to: ToParam = None, format: Format = "unified"
) -> Response:
    """What changed between two times; without them, between the last two versions."""
    new = _version(archive, url, to)
    before = None if start is not None else max(0, new.number - 1)
    old = _version(archive, url, start, before)
    shown = archive.difference(old, new, format)
    headers = {"content-security-policy": RAW_POLICY, **SAFE_HEADERS}
    return Response(shown, headers=headers, media_type=_TYPES.get(format, "text/plain; charset=utf-8"))


@router.get("/stats", responses=problem_responses())
def stats(archive: ArchiveDep) -> StatsShape:
    """Totals of the archive."""
    totals = archive.stats()
    ratio = round(totals.pack_bytes / totals.raw_bytes, 4) if totals.raw_bytes else None
    return StatsShape(**asdict(totals), ratio=ratio)
