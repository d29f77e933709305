"""Versions, history, contents, differences, links and totals. None of these ever asks the web."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from letopis import extract
from letopis.archive import Archive
from letopis.model import Check, Version, to_millis
from letopis.serve.memento.cage import RAW_POLICY, SAFE, content_type
from letopis.serve.problems import answers
from letopis.serve.rest.parameters import At, Cursor, From, Limit, To, Url, moment, position
from letopis.serve.rest.shapes import (
    HistoryRow,
    HistoryShape,
    LinkShape,
    LinksShape,
    StatsShape,
    VersionShape,
    VersionsShape,
)
from letopis.serve.shared import TheArchive

router = APIRouter(tags=["reading"])

Format = Literal["unified", "words", "chars", "html", "visual", "links", "json", "binary"]
_TYPES = {
    "html": "text/html; charset=utf-8",
    "visual": "text/html; charset=utf-8",
    "json": "application/json",
    "binary": "application/octet-stream",
}
_BYTES: dict[str, Any] = {"schema": {}}
_ANYTHING: dict[int | str, dict[str, Any]] = {200: {"content": {"*/*": _BYTES}, "description": "The bytes"}}


@router.get("/versions", responses=answers(404))
def versions(
    archive: TheArchive, url: Url, start: From = None, to: To = None, limit: Limit = 1000, cursor: Cursor = None
) -> VersionsShape:
    """The versions of a page, oldest first."""
    since, until, after = moment(archive, start), moment(archive, to), position(cursor)
    rows = [
        row
        for row in archive.versions(url)
        if row.number >= after and (since is None or row.time >= since) and (until is None or row.time <= until)
    ]
    following = str(rows[limit].number) if len(rows) > limit else None
    address = rows[0].url if rows else url
    return VersionsShape(url=address, versions=[VersionShape.of(row) for row in rows[:limit]], cursor=following)


@router.get("/history", responses=answers(404))
def history(
    archive: TheArchive, url: Url, start: From = None, to: To = None, limit: Limit = 1000, cursor: Cursor = None
) -> HistoryShape:
    """Every check of a page, oldest first."""
    since, until, after = moment(archive, start), moment(archive, to), position(cursor)
    rows = [
        row
        for row in archive.history(url)
        if to_millis(row.checked_at) >= after
        and (since is None or row.checked_at >= since)
        and (until is None or row.checked_at <= until)
    ]
    following = str(to_millis(rows[limit].checked_at)) if len(rows) > limit else None
    address = rows[0].url if rows else url
    return HistoryShape(url=address, history=[_row(row) for row in rows[:limit]], cursor=following)


def _row(check: Check) -> HistoryRow:
    names = ("status", "available", "outcome", "version", "meaningful", "score", "error")
    return HistoryRow(time=check.checked_at, **{name: getattr(check, name) for name in names})


@router.get("/content", response_class=Response, responses={**answers(404), **_ANYTHING})
def content(
    request: Request,
    archive: TheArchive,
    url: Url,
    at: At = None,
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
        "content-type": content_type(found.content_type),
        "content-security-policy": RAW_POLICY,
        "x-letopis-version": str(found.number),
        **SAFE,
    }
    if fields["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": fields["etag"]})
    return Response(found.body, headers=fields)


def _version(archive: Archive, url: str, at: str | None, number: int | None = None) -> Version:
    return archive.get(url, version=number, at=moment(archive, at))


@router.get("/diff", response_class=Response, responses={**answers(404), **_ANYTHING})
def diff(archive: TheArchive, url: Url, start: From = None, to: To = None, format: Format = "unified") -> Response:
    """What changed between two times; without them, between the last two versions."""
    new = _version(archive, url, to)
    before = None if start is not None else max(0, new.number - 1)
    old = _version(archive, url, start, before)
    shown = archive.difference(old, new, format)
    headers = {"content-security-policy": RAW_POLICY, **SAFE}
    return Response(shown, headers=headers, media_type=_TYPES.get(format, "text/plain; charset=utf-8"))


@router.get("/links", responses=answers(404))
def links(archive: TheArchive, url: Url, at: At = None) -> LinksShape:
    """The links that stand on a page, or stood there at a time."""
    found = _version(archive, url, at)
    page = extract.page(found.body, found.url, found.headers)
    rows = [LinkShape(source=found.url, target=link.target, type=link.type, text=link.text) for link in page.links]
    return LinksShape(url=found.url, version=found.number, time=found.time, links=rows)


@router.get("/stats", responses=answers())
def stats(archive: TheArchive) -> StatsShape:
    """Totals of the archive."""
    totals = archive.stats()
    ratio = round(totals.pack_bytes / totals.raw_bytes, 4) if totals.raw_bytes else None
    return StatsShape(**asdict(totals), ratio=ratio)
