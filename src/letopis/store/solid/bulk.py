"""Long chains of large differences, with arrays of token numbers instead of lists of tokens.

It makes the same of a chain as `apply_script` does script by script, in half the time where there is much to do;
loading numpy costs more than it saves where there is little.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from letopis.errors import Damaged
from letopis.store.solid import frame_format
from letopis.store.solid.frame_format import MAX_TOKENS, script_misfit
from letopis.store.solid.stream import MAX_BODY_BYTES
from letopis.tuples import NamedTuple

TokenPlaces = NDArray[np.int32]
_DIGITS: NDArray[np.uint8] = np.array([min(rank, 255) for rank in frame_format.DIGIT_RANK], dtype=np.uint8)


class _Script(NamedTuple):
    """The operations of one difference, and the first token of what each inserts, counted from the script's own."""

    copied: TokenPlaces
    counts: TokenPlaces
    seeks: TokenPlaces
    literals: TokenPlaces


class _Tokens:
    """All tokens of the newest form and of the scripts: where each begins and ends in one text."""

    def __init__(self, texts: Sequence[bytes], ends: bytes) -> None:
        # Each text gets an end of its own, so that no token reaches into the next one.
        self.text = b"".join([part for text in texts for part in (text, frame_format.TOKEN_END)])
        if len(self.text) > MAX_BODY_BYTES:
            raise _too_large()
        self.stops: TokenPlaces = _ends_in(self.text, ends) + 1
        self.starts: TokenPlaces = np.concatenate(([np.int32(0)], self.stops[:-1]))
        last = np.cumsum([len(text) + 1 for text in texts])
        self.bounds: list[int] = [0, *(np.searchsorted(self.stops, last) + 1).tolist()]
        self.first = self.bounds[1]
        """The first token of the scripts: only theirs begin with numbers."""
        self.heads = self._heads()
        plain = (self.heads.max(axis=0) < frame_format.SHORT_NUMBERS) & (self.heads[1] > 0)
        steps = np.zeros(len(plain) + frame_format.SHORT_NUMBERS, dtype=np.int32)
        steps[: len(plain)] = np.where(plain, np.arange(self.first, self.first + len(plain)) + self.heads[1], 0)
        self.following = steps.data
        """After a token whose operation is its first three bytes: where the next operation stands; 0 for others."""

    def _heads(self) -> NDArray[np.uint8]:
        """The first three bytes of each token of the scripts as digits: most operations are just these."""
        values, begin = np.frombuffer(self.text, dtype=np.uint8), self.starts[self.first :]
        # The last byte is no digit, so that reading on stops there.
        return _DIGITS[np.stack([values[np.minimum(begin + shift, len(values) - 1)] for shift in range(3)])]

    def joined(self, form: TokenPlaces) -> bytes:
        """The text of a version without its closing newline; tokens that follow each other are taken in one go."""
        starts, stops = self.starts[form], self.stops[form]
        if int((stops - starts).sum(dtype=np.int64)) > MAX_BODY_BYTES:
            raise _too_large()
        breaks = np.flatnonzero(stops[:-1] != starts[1:])
        begin = starts[np.concatenate(([0], breaks + 1))].tolist()
        end = stops[np.concatenate((breaks, [len(form) - 1]))].tolist()
        text = self.text
        return b"".join([text[one:other] for one, other in zip(begin, end, strict=True)])[:-1]


def _ends_in(text: bytes, ends: bytes) -> TokenPlaces:
    """Where the bytes that end tokens stand: compared one by one, which is faster than one look-up for each byte."""
    values = np.frombuffer(text, dtype=np.uint8)
    found = values == ends[0]
    for end in ends[1:]:
        found |= values == end
    return np.flatnonzero(found).astype(np.int32)


def apply_scripts(newest: bytes, scripts: Sequence[bytes], ends: bytes) -> bytes:
    """The form that a chain of scripts makes of the newest one; raises Damaged when they do not fit."""
    table = _Tokens([newest, *scripts], ends)
    form: TokenPlaces = np.arange(table.first, dtype=np.int32)
    for number in range(1, len(scripts) + 1):
        own: TokenPlaces = np.arange(table.bounds[number], table.bounds[number + 1], dtype=np.int32)
        form = _assembled(form, own, _operations(table, number))
    return table.joined(form) if len(form) else b""


def _operations(table: _Tokens, number: int) -> _Script:
    """Reads a script; where numbers stand before an inserted token, its beginning is moved behind them."""
    index, last, first = table.bounds[number], table.bounds[number + 1] - 1, table.first
    end = int(table.stops[last]) - 1
    following, starts, text = table.following, table.starts.data, table.text
    rank, short, read = frame_format.DIGIT_RANK, frame_format.SHORT_NUMBERS, _number
    order, others = array("i"), array("i")
    while True:
        # Most operations are three bytes before the first inserted token: those are read all at once below.
        while step := following[index - first]:
            order.append(index)
            index = step
        if index > last:
            raise _cut_off()
        at, count = starts[index], 0
        while not count and (index < last or at < end):
            # One-byte numbers are read in place: a call for each would take longer than the rest of it.
            copied, at = (value, at + 1) if (value := rank[text[at]]) < short else read(text, at)
            count, at = (value, at + 1) if (value := rank[text[at]]) < short else read(text, at)
            seek, at = (value, at + 1) if (value := rank[text[at]]) < short else read(text, at)
            order.append(-1)
            others.extend((copied, count, seek, index))
        if not count:
            break
        starts[index] = at
        index += count
        if index > last:
            raise _cut_off()
    return _script(table, np.frombuffer(order, np.int32), np.frombuffer(others, np.int32), table.bounds[number])


def _too_large() -> Damaged:
    return Damaged("a version unfolds to more than a gigabyte; restore this pack from a copy")


def _cut_off() -> Damaged:
    return Damaged("inserted text is truncated in a difference; restore this pack from a copy")


def _number(text: bytes, at: int) -> tuple[int, int]:
    value, at = frame_format.read_number(text, at)
    if value > MAX_TOKENS:
        raise script_misfit()
    return value, at


def _script(table: _Tokens, order: TokenPlaces, others: TokenPlaces, first: int) -> _Script:
    """All operations in their order; those of three bytes are looked up in the heads of their tokens."""
    plain = order >= 0
    found = order[plain]
    rows = np.empty((4, len(order)), dtype=np.int32)
    rows[:3, plain] = table.heads[:, found - table.first]
    rows[3, plain] = found
    rows[:, ~plain] = others.reshape(-1, 4).T
    table.starts[found] += 3
    copied, counts, signed, literals = rows
    return _Script(copied, counts, np.where(signed & 1, -((signed + 1) >> 1), signed >> 1) + counts, literals - first)


def _assembled(form: TokenPlaces, own: TokenPlaces, script: _Script) -> TokenPlaces:
    """The token numbers of a version, from those of its base and the script's own."""
    have = len(form)
    copied, counts, seeks, literals = script
    stops = np.cumsum(copied + seeks, dtype=np.int64) - seeks
    cursors = np.concatenate(([0], stops + seeks))
    if np.any(stops > have) or np.any(cursors < 0) or np.any(cursors > have) or np.any(stops < copied):
        raise script_misfit()
    # Copied and inserted tokens take turns; the script's own tokens stand behind those of the base.
    lengths = np.empty(2 * len(copied) + 1, dtype=np.int64)
    lengths[0:-1:2], lengths[1::2], lengths[-1] = copied, counts, have - cursors[-1]
    begins = np.empty_like(lengths)
    begins[0::2], begins[1::2] = cursors, have + literals
    total = int(lengths.sum())
    if total > MAX_TOKENS:
        raise script_misfit()
    places = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(total)
    made: TokenPlaces = np.concatenate((form, own))[places]
    return made
