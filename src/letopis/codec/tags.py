"""The static dictionary of the preprocessing methods: 56 pieces of HTML in a fixed order.

An opening tag has no `>`, so that it matches with and without attributes; one
that always has attributes ends in a blank, one that never has them in `>`;
attributes end in `=`, so that every style of quoting matches. The order is
part of the format.
"""

from __future__ import annotations

_CLOSING = "a b body div font form head html input li ol p script span table td title ul"
_OPENING = "a|b|body|br|div|font|form|head|html|img |input|li|link |meta |ol|p|script|span|table|td|title>|tr|ul"
_ATTRIBUTES = "align border class content height href id language name padding src style target type width"

LOWER = (
    *(f"</{name}>".encode() for name in _CLOSING.split()),
    *(f"<{name}".encode() for name in _OPENING.split("|")),
    *(f"{name}=".encode() for name in _ATTRIBUTES.split()),
)
"""One case, for the methods that ignore it."""

BOTH_CASES = (*LOWER, *(word.upper() for word in LOWER))
"""All words in lower case, then all of them in upper case."""
