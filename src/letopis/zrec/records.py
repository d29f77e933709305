"""Text to records and back, and the names of records."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable

from letopis.errors import UsageError
from letopis.lazy import regex
from letopis.zrec.header import MAX_NAME_RULE, MAX_SEPARATOR

BLANK_LINE = b"\n\n"
_NAME_SECONDS = 0.5
_SLOW_SECONDS = 0.001
_SLOW_IN_ALL = 2.0

_ESCAPE = re.compile(r"\\(n|r|t|0|\\|x[0-9a-fA-F]{2})")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
_VALUE = re.compile(rb"[A-Za-z0-9_.-]+:[ \t]*")

Namer = Callable[[bytes], bytes]


def parse_separator(text: str) -> bytes:
    r"""A separator as people type it: `\n`, `\t`, `\r`, `\0`, `\xHH` and `\\` are understood."""
    plain = _ESCAPE.sub(lambda found: _PLAIN.get(found[1]) or chr(int(found[1][1:], 16)), text)
    try:
        raw = plain.encode("latin-1") if _ESCAPE.search(text) else plain.encode()
    except UnicodeEncodeError:
        raw = plain.encode()
    return checked_separator(raw)


def checked_separator(separator: bytes) -> bytes:
    """The separator, if it is one."""
    if not 1 <= len(separator) <= MAX_SEPARATOR:
        raise UsageError(f"A separator has 1 to {MAX_SEPARATOR} bytes; give another one.")
    return separator


def split(text: bytes, separator: bytes) -> tuple[list[bytes], bool]:
    """(records, whether the text ends with a separator); `join` gives back the very same bytes.

    Empty records do not exist: separators in excess belong to the record
    before them (at the start of the text: to the one after them).
    """
    if not text:
        return [], False
    pieces = text.split(separator)
    ended = pieces[-1] == b"" and len(pieces) > 1
    if ended:
        pieces.pop()
    return _glued(pieces, separator), ended


def split_chunk(text: bytes, separator: bytes) -> list[bytes]:
    """The records of one chunk; a separator at its end belongs to the last of them."""
    records, ended = split(text, separator)
    if not records:
        return [b""]
    return [*records[:-1], records[-1] + separator] if ended else records


def _glued(pieces: list[bytes], separator: bytes) -> list[bytes]:
    if b"" not in pieces:
        return pieces
    records: list[bytes] = []
    excess = b""
    for piece in pieces:
        if piece:
            records.append(excess + piece)
            excess = b""
        elif records:
            records[-1] += separator
        else:
            excess += separator
    return records or [excess[len(separator) :]]


def join(records: Iterable[bytes], separator: bytes, ended: bool) -> bytes:
    """The text that `split` took apart."""
    return separator.join(records) + (separator if ended else b"")


def namer(rule: str | None) -> Namer:
    """What names a record: a regular expression (its first group, else the match), or the first line."""
    if rule is None:
        return first_value
    if len(rule.encode()) > MAX_NAME_RULE:
        raise UsageError(f"The expression for names is over {MAX_NAME_RULE} bytes; write a shorter one.")
    budget = _SlowSearches()
    try:
        pattern = regex.compile(rule.encode(), regex.MULTILINE)
    except (regex.error, RecursionError, OverflowError, MemoryError) as wrong:
        raise UsageError(f"The expression for names is not a regular expression ({wrong}); correct it.") from None

    def by_rule(record: bytes) -> bytes:
        found = budget.search(pattern, record)
        if found is None:
            start = record[:60].decode(errors="replace")
            raise UsageError(f"No name in the record that begins {start!r}; give an expression that fits every record.")
        return found[1] or b"" if pattern.groups else found[0]

    return by_rule


class _SlowSearches:
    """Expressions come from strangers, in the header of a file: a search has a time limit, slow ones one together.

    It is time of the processor: a busy machine makes no expression slow.
    """

    def __init__(self) -> None:
        self._spent = 0.0

    def search(self, pattern: regex.Pattern[bytes], record: bytes) -> regex.Match[bytes] | None:
        """The first match; `UsageError` when finding out takes too long."""
        started = time.thread_time()
        try:
            found = pattern.search(record, timeout=_NAME_SECONDS)
        except (TimeoutError, MemoryError):
            self._spent = _SLOW_IN_ALL
            found = None
        seconds = time.thread_time() - started
        self._spent += seconds if seconds > _SLOW_SECONDS else 0.0
        if self._spent >= _SLOW_IN_ALL:
            raise UsageError("The expression for names takes too long; write a simpler one.")
        return found


def first_value(record: bytes) -> bytes:
    """`Field: value` gives the value, any other first line itself."""
    line = record.lstrip(b"\r\n").split(b"\n", 1)[0].rstrip(b"\r")
    found = _VALUE.match(line)
    return line[found.end() :] if found else line
