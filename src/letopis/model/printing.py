"""Text from outside on its way to a terminal: nothing in it moves the cursor, rewrites a line or turns it around."""

from __future__ import annotations

import re

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_TURNS = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that turn the direction of what follows them, and separators that some terminals take for lines."""
_UNPRINTABLE = re.compile(f"[{_CONTROLS}{_TURNS}]")
_UNPRINTABLE_IN_JSON = re.compile(f"[\x7f-\x9f{_TURNS}]")


def printable(text: str) -> str:
    r"""The text with control characters, but for tabs and ends of lines, as they are written in Python: `\x1b`."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_line(text: str) -> str:
    """The same on one line."""
    return printable(text).replace("\n", "\\n").replace("\t", " ")


def printable_json(document: str) -> str:
    r"""A JSON document that means the same: what JSON itself does not escape is written as `\u009b`."""
    return _UNPRINTABLE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
