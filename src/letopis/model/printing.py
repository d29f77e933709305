"""Text from outside on its way to a terminal: nothing in it moves the cursor, rewrites a line or turns it around."""

from __future__ import annotations

import re
from datetime import datetime

from letopis.model.times import rfc3339

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_TURNS = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that turn the direction of what follows them, and separators that some terminals take for lines."""
_UNPRINTABLE = f"[{_CONTROLS}{_TURNS}]"
_UNPRINTABLE_IN_JSON = f"[\x7f-\x9f{_TURNS}]"


class Styled(str):
    """Text for a terminal with bold words, of which every part from outside was made printable before."""

    __slots__ = ()


def bold(text: str) -> Styled:
    """Bold at a terminal; elsewhere the marks are taken out by whoever prints."""
    return Styled(f"\x1b[1m{printable(text)}\x1b[0m")


def printable(text: str) -> str:
    r"""The text with control characters, but for tabs and ends of lines, as they are written in Python: `\x1b`.

    What is styled already stays as it is.
    """
    if isinstance(text, Styled) or text.isprintable():  # most lines of most commands, which need no pattern then
        return text
    return re.sub(_UNPRINTABLE, lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_line(text: str) -> str:
    """The same on one line."""
    return printable(text).replace("\n", "\\n").replace("\t", " ")


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun, which is plural but for one."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def printable_json(document: str) -> str:
    r"""A JSON document that means the same: what JSON itself does not escape is written as `\u009b`."""
    return re.sub(_UNPRINTABLE_IN_JSON, lambda found: f"\\u{ord(found[0]):04x}", document)


def plain_text(value: object) -> str:
    """A value as a table filters and writes it: times as RFC 3339, the parts of a list with blanks between."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return rfc3339(value)
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
