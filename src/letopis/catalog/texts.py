"""Text as every engine can keep it.

Pages hold what no database takes: PostgreSQL refuses NUL characters, and
halves of surrogate pairs have no UTF-8. A page must not be lost for one such
character, and an archive must read the same wherever it lies, so the
catalogue replaces them on every engine, in this one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """The text itself, or a copy with U+FFFD in place of what cannot be stored."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_values(values: Sequence[Any]) -> Sequence[Any]:
    """The values of a row or of a question, all texts among them storable; the same object when they were."""
    for value in values:
        if value.__class__ is str and storable(value) is not value:
            return tuple(storable(each) if each.__class__ is str else each for each in values)
    return values
