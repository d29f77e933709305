"""Results as XML text: elements, rows of attributes, and nothing that XML cannot hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from letopis.model import rfc3339

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """The text with a replacement sign for each character that XML cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)


def start(name: str, attributes: Mapping[str, Any], end: str = ">") -> str:
    """A start tag; values that are None are left out, lists become words."""
    given = "".join(
        f" {key}={quoteattr(clean(_text(value)))}" for key, value in attributes.items() if value is not None
    )
    return f"<{name}{given}{end}"


def element(name: str, attributes: Mapping[str, Any], content: str | None = None) -> str:
    """An element with text inside, or an empty one."""
    if content is None:
        return start(name, attributes, "/>")
    return f"{start(name, attributes)}{escape(clean(content))}</{name}>"


def around(name: str, attributes: Mapping[str, Any], parts: Iterable[str]) -> bytes:
    """An element around others, one a line."""
    inside = "".join(f"  {part}\n" for part in parts)
    if not inside:
        return start(name, attributes, "/>").encode()
    return f"{start(name, attributes)}\n{inside}</{name}>".encode()


def rows(name: str, attributes: Mapping[str, Any], row: str, found: Iterable[Mapping[str, Any]]) -> bytes:
    """An element with one empty element a row, and how many there are."""
    parts = [element(row, one) for one in found]
    return around(name, {**attributes, "count": len(parts)}, parts)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, list | tuple):
        return " ".join(map(_text, value))
    return str(value)
