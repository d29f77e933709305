"""Rows as the text that each dialect sends, in pieces of a batch each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from letopis.serve.cdx.query import resume_key
from letopis.serve.cdx.rows import FIELDS, STATUSCODE, Row

_ALL = tuple(range(7))
_JSON_NAMES = ("urlkey", "timestamp", "url", "mime", "status", "digest", "length")


def text_lines(batches: Iterator[list[Row]], places: Sequence[int] = _ALL) -> Iterator[str]:
    """Fields with blanks between them, one row a line."""
    if tuple(places) == _ALL:
        for rows in batches:
            yield "".join(["%s %s %s %s %s %s %s\n" % row[:7] for row in rows])  # noqa: UP031 - twice as fast
        return
    pick = _picker(places)
    for rows in batches:
        yield "\n".join([" ".join(pick(row)) for row in rows]) + "\n"


def _picker(places: Sequence[int]) -> Callable[[Row], Sequence[str]]:
    if len(places) == 1:
        only = places[0]
        return lambda row: (str(row[only]),)
    return itemgetter(*places)


def json_table(batches: Iterator[list[Row]], places: Sequence[int] = _ALL, resume: str = "") -> Iterator[str]:
    """An array of arrays, the names of the fields first. An answer without rows is an empty array."""
    pick = _picker(places)
    begun = False
    for rows in batches:
        if not begun:
            yield "[" + json.dumps([FIELDS[place] for place in places])
            begun = True
        yield ",\n" + json.dumps([pick(row) for row in rows])[1:-1]
    if resume:
        yield f',\n[],\n["{resume}"]'
    yield "]\n" if begun else "[]\n"


def cdxj_lines(batches: Iterator[list[Row]]) -> Iterator[str]:
    """Key, timestamp and a JSON object; a revisit has no status of its own."""
    for rows in batches:
        yield "".join(
            [
                f'{key} {stamp} {{"url": "{_safe(url)}", "mime": "{mime}", {_told(status)}'
                f'"digest": "{digest}", "length": "{length}"}}\n'
                for key, stamp, url, mime, status, digest, length, _ in rows
            ]
        )


def _told(status: str) -> str:
    return f'"status": "{status}", ' if status else ""


def _safe(url: str) -> str:
    return json.dumps(url)[1:-1] if '"' in url or "\\" in url else url


def json_lines(batches: Iterator[list[Row]], names: Sequence[str] = _JSON_NAMES) -> Iterator[str]:
    """One JSON object a line."""
    places = {name: _JSON_NAMES.index(name) for name in names if name in _JSON_NAMES}
    for rows in batches:
        yield "".join([json.dumps(_object(row, places)) + "\n" for row in rows])


def _object(row: Row, places: dict[str, int]) -> dict[str, object]:
    """A revisit has no status of its own."""
    return {name: row[place] for name, place in places.items() if place != STATUSCODE or row[place]}


def with_resume(rows: list[Row], limit: int) -> tuple[list[Row], str]:
    """Rows up to the limit, and the key to go on with when one more was found."""
    return (rows[:limit], resume_key(rows[limit - 1])) if len(rows) > limit else (rows, "")
