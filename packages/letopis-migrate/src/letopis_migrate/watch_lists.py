"""Lists of what Distill and Visualping watch, as they are exported: pages with intervals, selectors and tags.

Neither exports what it has seen, so there are watches and no captures.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from letopis.archive.outside_values import parse_json
from letopis.errors import UsageError
from letopis.exchange.sources import MOST_WATCHES, ImportedWatch, read_json, read_whole

_DISTILL = re.compile(rb'\{\s*"(?:client|data)"\s*:')
_URI = re.compile(rb'"uri"\s*:\s*"')
_JOBS = re.compile(rb'(?:\{\s*"jobs"\s*:\s*)?\[\s*\{')
_JOB_FIELDS = (b'"interval"', b'"url"')
_LEFT_OUT = ("crop", "preactions", "keywords", "advanced_schedule")
_MOST_SECONDS = 366 * 86400.0


def is_distill(head: bytes) -> bool:
    """Whether a file begins like an export of Distill."""
    return _DISTILL.match(head) is not None and _URI.search(head) is not None


def distill_watches(file: Path) -> Iterator[ImportedWatch]:
    """The monitors of an export; the first tag counts."""
    rows = _object(read_json(file)).get("data")
    if not isinstance(rows, list):
        raise UsageError(f"{file} is not an export of Distill: it has no list of monitors; export it again")
    for row in islice((row for row in rows if isinstance(row, dict)), MOST_WATCHES):
        filters, left_out = _selectors(_embedded(row.get("config")))
        schedule = _object(_embedded(row.get("schedule")).get("params"))
        tag = str(row.get("tags") or "").partition(",")[0].strip()
        paused = bool(row.get("paused"))
        every = _seconds(schedule.get("interval"))
        yield ImportedWatch(str(row.get("uri") or ""), every, tuple(filters), tag, paused, tuple(left_out))


def _selectors(config: dict[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """Parts of the page that are chosen or left out, and what has no counterpart."""
    filters: list[tuple[str, str]] = []
    left_out: list[str] = ["conditions"] if config.get("conditions") else []
    for frame in _inner(config, "selections", "frames"):
        for rule in _inner(frame, "includes"):
            kind, expression = str(rule.get("type") or "").lower(), str(rule.get("expr") or "").strip()
            if kind in ("css", "xpath") and expression:
                filters.append((kind, expression))
        for rule in _inner(frame, "excludes"):
            kind, expression = str(rule.get("type") or "").lower(), str(rule.get("expr") or "").strip()
            filters += [("remove", expression)] if kind == "css" and expression else []
            left_out += [f"exclusion by {kind}"] if kind != "css" else []
    return filters[:100], left_out


def _inner(value: dict[str, Any], *names: str) -> Iterator[dict[str, Any]]:
    """The objects in lists inside lists, by the names of those."""
    rows = value.get(names[0])
    for row in rows[:100] if isinstance(rows, list) else ():
        if isinstance(row, dict):
            yield from _inner(row, *names[1:]) if names[1:] else (row,)


def is_visualping(head: bytes) -> bool:
    """Whether a file begins like a list of jobs of Visualping, in JSON or in CSV."""
    if _JOBS.match(head):
        return all(name in head for name in _JOB_FIELDS)
    return {"url", "interval"} <= _columns(head.partition(b"\n")[0]).keys()


def visualping_watches(file: Path) -> Iterator[ImportedWatch]:
    """The jobs of a list; intervals are minutes."""
    for row in islice(_jobs(file), MOST_WATCHES):
        selector = str(row.get("xpath") or "").strip()
        filters = (("xpath" if selector.startswith(("/", "(")) else "css", selector),) if selector else ()
        minutes = _seconds(row.get("interval"))
        paused = str(row.get("active", True)).strip().lower() in ("0", "false", "no", "paused")
        left_out = tuple(name for name in _LEFT_OUT if row.get(name))
        yield ImportedWatch(str(row.get("url") or "").strip(), minutes and minutes * 60, filters, "", paused, left_out)


def _jobs(file: Path) -> Iterator[dict[str, Any]]:
    data = read_whole(file)
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        columns = _columns(data.partition(b"\n")[0])
        try:
            for row in csv.reader(io.StringIO(data.decode("utf-8-sig", "replace").partition("\n")[2])):
                yield {name: row[place] for name, place in columns.items() if place < len(row)}
        except csv.Error as error:
            raise UsageError(f"{file} is not valid CSV ({error}); export it again") from None
        return
    found = read_json(file)
    rows = found.get("jobs") if isinstance(found, dict) else found
    yield from (row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()


def _columns(line: bytes) -> dict[str, int]:
    try:
        names = next(csv.reader([line.decode("utf-8-sig", "replace").strip()]), [])
    except csv.Error:
        return {}
    return {name.strip().lower(): place for place, name in enumerate(names)}


def _embedded(value: Any) -> dict[str, Any]:
    """An object that stands as text inside JSON."""
    try:
        return _object(parse_json(value)) if isinstance(value, str) else _object(value)
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _seconds(value: Any) -> float | None:
    """A number of seconds, or of minutes; None for what is no time between two checks."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if 0 < found <= _MOST_SECONDS else None
