"""Tokens: the units that differences count in.

A token ends with, and includes, one byte of a set of ends. Which set serves a
document best depends on what changes in it: whole attributes, parts of
addresses, or their parameters; a contest decides. A form is cut after one more
newline is appended, so that every token has its end.
"""

from __future__ import annotations

END = b"\n"
END_SETS = (b'\n>"', b'\n>"/', b'\n>"/?&')


def cut(form: bytes, ends: bytes) -> list[bytes]:
    """All tokens of a form, which has no NUL, with the closing newline added."""
    cut = pieces(form + END, ends)
    cut.pop()
    return cut


def pieces(text: bytes, ends: bytes) -> list[bytes]:
    """The tokens of a text without NUL, and at last what follows them, be it empty."""
    # Three times as fast as a regular expression, and old versions are read through here.
    for value in ends:
        end = bytes((value,))
        text = text.replace(end, end + b"\0")
    return text.split(b"\0")


def joined(tokens: list[bytes]) -> bytes:
    """The form that these tokens were cut from."""
    return b"".join(tokens)[:-1]
