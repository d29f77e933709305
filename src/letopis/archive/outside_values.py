"""Values from untrusted sources: each has the expected type and range, or raises a ValueError. Accepted values can be
shown later without another check.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from letopis.model import BlockKind, Headers, Hop

_MOST_TEXT = 64 * 1024
MOST_ROWS = 1000
MOST_NUMBER = 1 << 62
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|u(d[89a-f][0-9a-f]{2})|.)", re.I | re.DOTALL)
"""In a text of JSON: a surrogate pair, a lone surrogate, or anything else after a backslash."""


def parse_json(data: bytes | str) -> Any:
    """The value of a JSON text; ValueError or RecursionError if it is invalid. A lone surrogate, which no file can
    contain, becomes U+FFFD.
    """
    text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "replace")
    if _HALF.search(text):
        text = _ESCAPE.sub(lambda found: "\\ufffd" if found[2] else found[0], text)
    return json.loads(text)


def text_from_outside(value: Any) -> str:
    """A text of bounded length."""
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise ValueError("not a text")
    return value


def list_from_outside(value: Any) -> Sequence[Any]:
    """A list of bounded length, with any elements."""
    if not isinstance(value, list | tuple) or len(value) > MOST_ROWS:
        raise ValueError("not a list")
    return value


def whole_from_outside(value: Any, most: int = MOST_NUMBER) -> int:
    """A whole number from 0 on."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("not a number")
    return value


def number_from_outside(value: Any) -> float:
    """A finite number."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("not a number")
    return float(value)


def block_from_outside(value: Any) -> str:
    """An added or removed block: `added paragraph: its text`."""
    BlockKind(text_from_outside(value).partition(": ")[0].partition(" ")[2])
    return str(value)


def hop_from_outside(row: Any) -> Hop:
    """A redirect that was followed."""
    url, status, location, ip, headers = list_from_outside(row)
    return Hop(
        text_from_outside(url),
        status_from_outside(status),
        text_from_outside(location),
        text_from_outside(ip),
        headers_from_outside(headers),
    )


def headers_from_outside(rows: Any) -> Headers:
    """Header fields: pairs of texts."""
    return tuple([(text_from_outside(name), text_from_outside(value)) for name, value in list_from_outside(rows)])


def status_from_outside(value: Any) -> int:
    """A status, 0 for none."""
    return whole_from_outside(value, 999)
