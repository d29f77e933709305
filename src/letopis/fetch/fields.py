"""Header blocks as they came off the wire, turned into fields and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from letopis.errors import SettingError
from letopis.model.web import Headers

_BREAKS = re.compile(r"[\r\n\0]")


class Block(NamedTuple):
    """One header block: its fields in order, and the first value of each name in lower case."""

    status: int
    version: str
    fields: Headers
    first: dict[str, str]


def parse_block(lines: list[bytes]) -> Block:
    """The block of these lines, its status line first.

    Order and spelling are kept; bytes become characters one to one
    (Latin-1), so that nothing is lost. Folded lines are joined by a blank.
    """
    status_line, *rest = b"".join(lines).decode("latin-1").split("\n")
    fields: list[tuple[str, str]] = []
    for line in rest:
        if line[:1] <= " ":
            _unfold(fields, line)
            continue
        name, _, value = line.partition(":")
        fields.append((name, value.strip()))
    # Read backwards, so that the first of several fields of one name is the one that stays.
    first = {name.lower(): value for name, value in reversed(fields)}
    version, _, tail = status_line.partition(" ")
    code = tail[:3]
    status = int(code) if code.isascii() and code.isdecimal() else 0
    return Block(status, version.removeprefix("HTTP/"), tuple(fields), first)


def _unfold(fields: list[tuple[str, str]], line: str) -> None:
    """Adds a continuation line to the field before it; what follows the last line break is none."""
    if fields and line:
        name, value = fields.pop()
        fields.append((name, f"{value} {line.strip()}".strip()))


def wire_lines(headers: Headers) -> list[bytes]:
    """Request fields in the form libcurl wants; an empty value needs a semicolon there."""
    return [_wire_line(name, value) for name, value in headers]


@lru_cache(maxsize=256)
def _wire_line(name: str, value: str) -> bytes:
    """Remembered: nearly all requests send the same fields."""
    line = f"{name}: {value}" if value else f"{name};"
    return line.encode("latin-1", "replace")


def is_sendable(name: str, value: str) -> bool:
    """No field may smuggle in another one, nor a second request."""
    return bool(name) and ":" not in name and not _BREAKS.search(name) and not _BREAKS.search(value)


def from_settings(lines: Iterable[str]) -> Headers:
    """Fields of the user's 'Name: value' lines, or SettingError."""
    fields = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not is_sendable(name.strip(), value):
            raise SettingError(f"fetch.headers has '{line}'; write each header as 'Name: value'")
        fields.append((name.strip(), value.strip()))
    return tuple(fields)


def merged(*layers: Headers) -> Headers:
    """All fields; a name in a later layer replaces those of the layers before it."""
    result: list[tuple[str, str]] = []
    for layer in layers:
        names = {name.lower() for name, _ in layer}
        result = [field for field in result if field[0].lower() not in names] + list(layer)
    return tuple(field for field in result if is_sendable(*field))
