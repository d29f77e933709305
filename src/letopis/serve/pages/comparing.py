"""`/compare/<url>?from=&to=`: what changed between two versions, in five views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response

from letopis.archive import Archive
from letopis.archive.differences import Side, side, texts_of
from letopis.change import compare, link_changes, pieces, unified, visual
from letopis.errors import UsageError
from letopis.extract.rewriting import Rewriter
from letopis.model import Version, parse_time, rfc3339, stamp14
from letopis.serve.access import principal_of
from letopis.serve.memento.cage import SAFE
from letopis.serve.origin import origin
from letopis.serve.pages.addresses import asked_page
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.differing import counted, running, side_by_side
from letopis.serve.pages.languages import marked
from letopis.serve.pages.marks import Marks
from letopis.serve.shared import TheArchive

router = APIRouter(route_class=PageRoute)

VIEWS = {
    "words": marked("Words"),
    "sides": marked("Side by side"),
    "visual": marked("As it looks"),
    "links": marked("Links"),
    "raw": marked("Source"),
}
_FRAME = "frame"
_MOST_LINES = 5000


class Pair(NamedTuple):
    """The two versions, and those beside them."""

    old: Version
    new: Version
    versions: list[Version]


@router.get("/compare/{rest:path}")
def comparison(request: Request, archive: TheArchive) -> Response:
    """Two versions: by default the newest and the one before it."""
    asked = asked_page(archive, request.scope, "/compare/", ("from", "to", "view"))
    view = asked.own.get("view", "words")
    if view not in (*VIEWS, _FRAME):
        raise UsageError(f"there is no view '{view[:40]}'; choose one of {', '.join(VIEWS)}")
    pair = _pair(archive, asked.url, asked.own.get("from", ""), asked.own.get("to", ""))
    old, new = side(pair.old), side(pair.new)
    if view == _FRAME:
        return _framed(old, new, origin(request.scope))
    if new.version.number == len(pair.versions) - 1:
        Marks(archive, principal_of(request)).read([archive.answers.resource(asked.url)])
    return page(
        request,
        "compare.html",
        url=asked.url,
        title=new.page.title,
        pair=pair,
        view=view,
        views=VIEWS,
        verdict=compare(new.page, [old.page], same_bytes=pair.old.body == pair.new.body),
        link=f"from={rfc3339(pair.old.time)}&to={rfc3339(pair.new.time)}",
        choices=pair.versions[::-1][:200],
        **_FILLED[view](old, new),
    )


def _framed(old: Side, new: Side, ours: str) -> Response:
    """The newer page with marks: it has no origin, runs nothing, and loads nothing but captured pictures.

    Both pages lead to captures of the newer one's time, so that only what really changed differs.
    """
    folder = f"/web/{stamp14(new.version.time)}/"
    before, after = (
        Rewriter(one.version.url, lambda target, _: folder + target).html(one.source) for one in (old, new)
    )
    text = visual(before, after, remote=True)
    policy = (
        f"sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src {ours}/web/ data:; font-src data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    )
    return Response(text, headers={"content-security-policy": policy, **SAFE}, media_type="text/html; charset=utf-8")


def _pair(archive: Archive, url: str, start: str, end: str) -> Pair:
    versions = archive.answers.versions(url)
    now = archive.clock()
    new = archive.answers.at(url, parse_time(end, now)) if end else archive.answers.newest(url)
    if start:
        old = archive.answers.at(url, parse_time(start, now))
    else:
        old = archive.answers.numbered(url, max(new.number - 1, 0))
    return Pair(old, new, versions)


def _words(old: Side, new: Side) -> dict[str, Any]:
    found = pieces(*texts_of(old, new))
    return {"runs": running(found), "counts": counted(found)}


def _sides(old: Side, new: Side) -> dict[str, Any]:
    found = pieces(*texts_of(old, new))
    return {"rows": side_by_side(found), "counts": counted(found)}


def _links(old: Side, new: Side) -> dict[str, Any]:
    return {"links": link_changes(old.page, new.page)}


def _raw(old: Side, new: Side) -> dict[str, Any]:
    if not (old.is_text and new.is_text):
        return {"lines": None}
    lines = unified(old.source, new.source, old.name, new.name).rstrip("\n").split("\n")
    return {
        "lines": [(_sign(line, at), line) for at, line in enumerate(lines[:_MOST_LINES])],
        "cut": len(lines) > _MOST_LINES,
    }


def _sign(line: str, at: int) -> str:
    if at < 2 or line.startswith("@@"):
        return "head"
    return {"+": "came", "-": "gone"}.get(line[:1], "same")


_FILLED: dict[str, Callable[[Side, Side], dict[str, Any]]] = {
    "words": _words,
    "sides": _sides,
    "visual": lambda old, new: {},
    "links": _links,
    "raw": _raw,
}
