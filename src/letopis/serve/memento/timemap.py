"""TimeMaps: every capture of a URL, in three forms, page by page where there are very many."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from fastapi import Response

from letopis.archive import Archive
from letopis.catalog import OUTCOME_CODES
from letopis.catalog.captures import Captures, CaptureTuple, KeyRange, Span
from letopis.model import Outcome, from_millis, rfc3339
from letopis.serve.cdx.answers import cdxj_lines
from letopis.serve.cdx.query import Finder, Query
from letopis.serve.memento.addresses import Address, Web
from letopis.serve.memento.links import LINK_FORMAT
from letopis.serve.memento.replay import not_captured
from letopis.serve.stamps import earliest, http_stamp, stamp
from letopis.serve.streaming import streamed
from letopis.urls import surt

PAGE = 10_000
"""Captures on one page of a TimeMap."""

_TOO_LARGE = OUTCOME_CODES[Outcome.TOO_LARGE]


class Entry(NamedTuple):
    """One capture as a TimeMap lists it."""

    stamp: str
    time: int
    url: str


def timemap(archive: Archive, finder: Finder, web: Web, address: Address) -> Response:
    """The page of the TimeMap that the address names, in its form."""
    since = earliest(address.stamps[0]) if address.stamps else 0
    if address.form == "cdxj":
        return _cdxj(finder, address, since)
    keys = KeyRange.exactly(surt(address.url))
    found = _entries(Captures(archive.catalog.database).batches(keys, Span(since)))
    if not found:
        raise not_captured(address.url)
    entries, more = found[:PAGE], found[PAGE:]
    following = web.timemap(address.url, address.form, more[0].stamp) if more else ""
    if address.form == "json":
        return _json(web, address, entries, following)
    return Response(_link(web, address, entries, following, since), media_type=LINK_FORMAT)


def _entries(batches: Iterator[list[CaptureTuple]]) -> list[Entry]:
    """Up to one more than a page; of several captures in one second the last, as replay shows it."""
    by_stamp: dict[str, Entry] = {}
    for batch in batches:
        for capture in batch:
            if capture[8] != _TOO_LARGE:
                text = stamp(capture[2])
                by_stamp[text] = Entry(text, capture[2], capture[1])
        if len(by_stamp) > PAGE + 1:
            break
    return list(by_stamp.values())


def _link(web: Web, address: Address, entries: list[Entry], following: str, since: int) -> str:
    span = f'from="{http_stamp(entries[0].time)}"; until="{http_stamp(entries[-1].time)}"'
    own = web.timemap(address.url, "link", address.stamps[0] if address.stamps else "")
    head = [
        f'<{address.url}>; rel="original"',
        f'<{own}>; rel="self"; type="{LINK_FORMAT}"; {span}',
        f'<{web.timegate(address.url)}>; rel="timegate"',
    ]
    if following:
        head.append(f'<{following}>; rel="timemap next"; type="{LINK_FORMAT}"')
    base = f"<{web.origin}/web/"
    lines = [f'{base}{at}/{url}>; rel="memento"; datetime="{http_stamp(time)}"' for at, time, url in entries]
    if not since:
        lines[0] = lines[0].replace('rel="memento"', 'rel="first memento"')
    if not following:
        word = '"first last memento"' if len(lines) == 1 and not since else '"last memento"'
        lines[-1] = lines[-1].replace('"first memento"', '"memento"').replace('rel="memento"', f"rel={word}")
    return ",\n".join(chain(head, lines)) + "\n"


def _json(web: Web, address: Address, entries: list[Entry], following: str) -> Response:
    listed = [{"datetime": rfc3339(from_millis(time // 1000 * 1000)), "uri": f"{web.origin}/web/{at}/{url}"}
              for at, time, url in entries]  # fmt: skip
    document: dict[str, object] = {
        "original_uri": address.url,
        "self": web.timemap(address.url, "json", address.stamps[0] if address.stamps else ""),
        "timegate_uri": web.timegate(address.url),
        "timemap_uri": {f"{form}_format": web.timemap(address.url, form) for form in ("link", "json", "cdxj")},
        "mementos": {"first": listed[0], "last": listed[-1], "list": listed},
    }
    if following:
        document["next"] = following
    return Response(json.dumps(document), media_type="application/json")


def _cdxj(finder: Finder, address: Address, since: int) -> Response:
    query = Query(KeyRange.exactly(surt(address.url)), Span(since), revisit_status="")
    rows = finder.find(query)
    begun = next(rows, None)
    if begun is None:
        raise not_captured(address.url)
    return streamed(cdxj_lines(chain([begun], rows)), "text/x-cdxj; charset=utf-8")
