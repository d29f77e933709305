"""`/web/*/<url>`: the captures of a page by year, month and day."""

from __future__ import annotations

from itertools import groupby, islice

from fastapi import Request, Response

from letopis.archive import Archive
from letopis.catalog.captures import Captures, KeyRange
from letopis.serve.memento.addresses import Address, Web
from letopis.serve.memento.replay import not_captured
from letopis.serve.pages.answering import GUARDED
from letopis.serve.pages.rendering import environment
from letopis.serve.stamps import stamp
from letopis.urls import surt

MOST = 20_000
_TEMPLATE = """{% extends "base.html" %}
{% block title %}Captures of {{ url }} · Letopis{% endblock %}
{% block main %}
<h1>Captures of {{ url }}</h1>
<p>{{ count }} captures{% if more %} and more{% endif %}. <a href="{{ timemap }}">TimeMap</a></p>
{% for year, days in years %}
<section aria-labelledby="y{{ year }}"><h2 id="y{{ year }}">{{ year }}</h2>
<ul>
{% for day, captures in days %}
<li>{{ day }}: {% for capture in captures %}<a href="{{ capture.address }}">{{ capture.time }}</a>
 <span>{{ capture.status }}</span>{% if not loop.last %}, {% endif %}{% endfor %}</li>
{% endfor %}
</ul></section>
{% endfor %}
{% endblock %}
"""


def calendar(archive: Archive, web: Web, address: Address, request: Request) -> Response:
    """A page for people; at most `MOST` captures on it."""
    batches = Captures(archive.catalog.database).batches(KeyRange.exactly(surt(address.url)))
    rows = list(islice((row for batch in batches for row in batch), MOST + 1))
    if not rows:
        raise not_captured(address.url)
    captures = [(stamp(row[2]), web.memento(row[2], row[1]), row[3]) for row in rows[:MOST]]
    page = environment.from_string(_TEMPLATE).render(
        path=request.url.path,
        url=address.url,
        count=len(captures),
        more=len(rows) > MOST,
        timemap=web.timemap(address.url),
        years=_years(captures),
    )
    return Response(page, headers=GUARDED, media_type="text/html; charset=utf-8")


def _years(captures: list[tuple[str, str, int]]) -> list[tuple[str, list[tuple[str, list[dict[str, object]]]]]]:
    return [
        (
            year,
            [(_day(day), [_capture(*one) for one in of_day]) for day, of_day in groupby(of_year, lambda c: c[0][:8])],
        )
        for year, of_year in groupby(captures, lambda c: c[0][:4])
    ]


def _day(digits: str) -> str:
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"


def _capture(at: str, address: str, status: int) -> dict[str, object]:
    return {"time": f"{at[8:10]}:{at[10:12]}:{at[12:]}", "address": address, "status": status}
