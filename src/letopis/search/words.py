"""What a word is: the one place that cuts text, for the index, the questions and the slow scans of tests."""

from __future__ import annotations

import re
import unicodedata

_WIDE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts written without blanks: each character is a word, and a word of a question becomes a phrase."""
WORD = re.compile(f"[{_WIDE}]|[^\\W{_WIDE}]+")
LONGEST = 80
"""Characters of a word that count; longer ones are no language."""


def settled(text: str) -> str:
    """Text with its accents in one piece, so that equal words have equal characters."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def lowered(text: str) -> str:
    """Text in small letters, each at the place of its capital."""
    # The dotted capital I alone has a small form of two characters.
    return (text if "İ" not in text else text.replace("İ", "i")).lower()


def words_of(text: str) -> list[str]:
    """The words of a settled text in lower case, in order."""
    return [word[:LONGEST] for word in WORD.findall(lowered(text))]


def is_wide(word: str) -> bool:
    """Whether a word is a character of a script without blanks."""
    return re.fullmatch(f"[{_WIDE}]", word) is not None
