"""What a server says, as a value, and the conditional requests that it understands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from letopis.demo.streams import NEVER
from letopis.model import Headers, from_millis, header, http_date


class Answer(NamedTuple):
    """One HTTP answer. Date, Content-Length and Connection are the server's business."""

    status: int
    headers: Headers
    body: bytes


class Held(NamedTuple):
    """An answer to an unconditional GET with the time from which it may differ, and whether dates may be compared."""

    answer: Answer
    until: int = NEVER
    dated: bool = False


def html(status: int, body: bytes, charset: str, headers: Headers = ()) -> Answer:
    """A page."""
    return Answer(status, (("Content-Type", f"text/html; charset={charset}"), *headers), body)


def sentence(status: int, text: str, headers: Headers = ()) -> Answer:
    """A short page that says one thing."""
    body = f'<!DOCTYPE html>\n<html lang="en"><head><title>{status}</title></head><body><p>{text}</p></body></html>\n'
    return html(status, body.encode(), "utf-8", headers)


def redirect(status: int, location: str) -> Answer:
    """An answer that sends the client elsewhere."""
    return sentence(status, "This page is elsewhere.", (("Location", location),))


def stamp(millis: int) -> str:
    """A time as HTTP writes it."""
    return http_date(from_millis(millis))


def _unchanged(answer: Answer, dated: bool, asked: Mapping[str, str]) -> bool:
    etag, wanted = header(answer.headers, "ETag"), asked.get("if-none-match", "")
    if wanted:
        return bool(etag) and (wanted.strip() == "*" or etag in [item.strip() for item in wanted.split(",")])
    since, modified = asked.get("if-modified-since", ""), header(answer.headers, "Last-Modified")
    return bool(dated and since and modified) and _date(modified) <= _date(since)


def _date(text: str) -> datetime:
    """A time out of a header; a text that is none lies before everything, so that it never proves a page unchanged."""
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def conditional(held: Held, asked: Mapping[str, str]) -> Answer:
    """The held answer, or a 304 when the request's validators fit. Names in `asked` are lower case."""
    answer = held.answer
    if answer.status != 200 or not _unchanged(answer, held.dated, asked):
        return answer
    kept = tuple(pair for pair in answer.headers if pair[0] in ("ETag", "Last-Modified"))
    return Answer(304, kept, b"")
