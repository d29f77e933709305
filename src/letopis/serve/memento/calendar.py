"""`/web/*/<url>`: the captures of a page by year, month and day."""

from __future__ import annotations

from itertools import groupby, islice

from fastapi import Request, Response

from letopis.archive import Archive
from letopis.catalog.captures import Captures, KeyRange
from letopis.serve.memento.addresses import Address, Web
from letopis.serve.memento.replay import not_captured
from letopis.serve.pages.answering import page
from letopis.serve.pages.grid import Capture, Days, months
from letopis.serve.stamps import stamp
from letopis.urls import surt

MOST = 20_000


def calendar(archive: Archive, web: Web, address: Address, request: Request) -> Response:
    """A page for people; at most `MOST` captures on it."""
    batches = Captures(archive.catalog.database).batches(KeyRange.exactly(surt(address.url)))
    rows = list(islice((row for batch in batches for row in batch), MOST + 1))
    if not rows:
        raise not_captured(address.url)
    captures = [(stamp(row[2]), web.memento(row[2], row[1]), row[3]) for row in rows[:MOST]]
    return page(
        request,
        "calendar.html",
        url=address.url,
        count=len(captures),
        more=len(rows) > MOST,
        timemap=web.timemap(address.url),
        years=[(year, months(days), days) for year, days in _years(captures)],
    )


def _years(captures: list[tuple[str, str, int]]) -> list[tuple[str, Days]]:
    return [
        (
            year,
            [(_day(day), [_capture(*one) for one in of_day]) for day, of_day in groupby(of_year, lambda c: c[0][:8])],
        )
        for year, of_year in groupby(captures, lambda c: c[0][:4])
    ]


def _day(digits: str) -> str:
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"


def _capture(at: str, address: str, status: int) -> Capture:
    return Capture(f"{at[8:10]}:{at[10:12]}:{at[12:]}", address, status)
