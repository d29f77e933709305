"""Whole pages: the capture sets of a page, the members of each, its picture and its text as shown."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime

from letopis.archive import READ
from letopis.archive.sets import CaptureSet
from letopis.errors import NotFound
from letopis.exchange.warc_records import picture_type
from letopis.model import rfc3339
from letopis.operations.checks import PageListQuery
from letopis.operations.context import Context
from letopis.operations.operation import Document, Rows, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url


class PageSet(NamedTuple):
    """One capture of a whole page: the number of resources, and whether its picture and text were kept."""

    time: datetime
    members: int
    has_screenshot: bool
    has_text: bool


@operation(
    "sets", right=READ, verb="sets", route=("GET", "/sets"), about={"url": str, "cursor": str | None}, errors=(404,),
    examples=("letopis sets https://example.org/", "letopis sets https://example.org/ --from 2024-01-01 --json"),
)  # fmt: skip
def sets(context: Context, asked: PageListQuery) -> Rows[PageSet]:
    """List the capture sets of a page, oldest first: when it was captured whole, with a browser or its requisites."""
    url = parse_user_url(asked.url)
    context.archive.answers.resource(url)
    first, most = asked.position(), asked.most(context)
    found = context.archive.sets.of(url, asked.start, asked.to)[first:]
    rows = [PageSet(one.time, one.members, one.has_screenshot, one.has_text) for one in found[:most]]
    following = None if most is None or len(found) <= most else str(first + most)
    return Rows(rows, {"url": url, "cursor": following})


class SetQuery(Parameters):
    """Which set of which page."""

    url: str = parameter("Address of the page.", argument=True)
    at: datetime | None = parameter("The set nearest to this time; default: the newest.", default=None)


class SetResource(NamedTuple):
    """A resource that a page used; the response to a method other than GET has an address with `__wb_method`."""

    url: str
    time: datetime


@operation(
    "set_members", right=READ, verb="set", route=("GET", "/set"), about={"url": str, "time": datetime}, errors=(404,),
    examples=("letopis set https://example.org/", "letopis set https://example.org/ --at 2024-01-31"),
)  # fmt: skip
def set_members(context: Context, asked: SetQuery) -> Rows[SetResource]:
    """List the resources that a page used when it was captured whole."""
    found = _set_of(context, asked)
    members = context.archive.sets.members(found)
    return Rows([SetResource(*one) for one in members], {"url": found.url, "time": found.time})


@operation(
    "screenshot", right=READ, verb="screenshot", route=("GET", "/screenshot"), errors=(404,),
    examples=("letopis screenshot https://example.org/ -o page.png",),
)  # fmt: skip
def screenshot(context: Context, asked: SetQuery) -> Document:
    """Print the picture of a page as a browser showed it."""
    found = _set_of(context, asked)
    body = context.archive.sets.screenshot(found)
    row = {"url": found.url, "time": found.time, "content_type": picture_type(body), "base64": b64encode(body).decode()}
    return _document(found, body, picture_type(body), row if context.wants_row else None)


@operation(
    "shown_text", right=READ, verb="shown-text", route=("GET", "/shown-text"), errors=(404,),
    examples=("letopis shown-text https://example.org/ --at 2024-01-31",),
)  # fmt: skip
def shown_text(context: Context, asked: SetQuery) -> Document:
    """Print the text of a page as a browser showed it."""
    found = _set_of(context, asked)
    text = context.archive.sets.text(found)
    row = {"url": found.url, "time": found.time, "text": text} if context.wants_row else None
    return _document(found, text.encode(), "text/plain; charset=utf-8", row)


def _set_of(context: Context, asked: SetQuery) -> CaptureSet:
    url, archive = parse_user_url(asked.url), context.archive
    found = archive.sets.nearest(url, asked.at or archive.clock())
    if found is None:
        archive.answers.resource(url)
        raise NotFound(f"{url} was never captured whole; use 'letopis check --browser {url}'")
    return found


def _document(found: CaptureSet, body: bytes, content_type: str, row: dict[str, object] | None) -> Document:
    headers = {"content-type": content_type, "x-letopis-time": rfc3339(found.time)}
    return Document([body], content_type, headers, row=row)
