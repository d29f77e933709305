"""Long chains of large differences, with arrays of token numbers instead of lists of tokens.

It makes the same of a chain as `tokenwise.apply` does script by script, in
half the time where there is much to do; loading numpy costs more than it
saves where there is little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from letopis.errors import Damaged
from letopis.store.solid import numbers, tokens
from letopis.store.solid.layout import MOST_BYTES
from letopis.store.solid.residue import misfit
from letopis.store.solid.tokenwise import MOST_TOKENS

Places = NDArray[np.int64]
_DIGITS = np.array([min(rank, 999) for rank in numbers.RANK], dtype=np.int64)


class _Script(NamedTuple):
    """The operations of one difference, and the first token of what each inserts."""

    copied: Places
    counts: Places
    seeks: Places
    literals: Places


class _Tokens:
    """All tokens of the newest form and of the scripts: where each begins and ends in one text."""

    def __init__(self, texts: Sequence[bytes], ends: bytes) -> None:
        # Each text gets an end of its own, so that no token reaches into the next one.
        self.text = b"".join(text + tokens.END for text in texts)
        marks = np.zeros(256, dtype=bool)
        marks[list(ends)] = True
        self.stops: Places = np.flatnonzero(marks[np.frombuffer(self.text, dtype=np.uint8)]) + 1
        self.starts: Places = np.concatenate(([0], self.stops[:-1]))
        last = np.cumsum([len(text) + 1 for text in texts])
        self.bounds: list[int] = [0, *(np.searchsorted(self.stops, last) + 1).tolist()]
        self.heads = self._heads()
        plain = (self.heads < numbers.SHORT).all(axis=0) & (self.heads[1] > 0)
        self.following = np.where(plain, np.arange(len(plain)) + self.heads[1], 0).data

    def _heads(self) -> Places:
        """The first three bytes of each token as digits: most operations are just these."""
        text = np.frombuffer(self.text + tokens.END * 2, dtype=np.uint8)
        return np.stack([_DIGITS[text[self.starts + shift]] for shift in range(3)])

    def joined(self, form: Places) -> bytes:
        """The text of a version without its closing newline; tokens that follow each other are taken in one go."""
        starts, stops = self.starts[form], self.stops[form]
        if int((stops - starts).sum()) > MOST_BYTES:
            raise Damaged("a version unfolds to more than a gigabyte; restore this pack from a copy")
        breaks = np.flatnonzero(stops[:-1] != starts[1:])
        begin = starts[np.concatenate(([0], breaks + 1))].tolist()
        end = stops[np.concatenate((breaks, [len(form) - 1]))].tolist()
        view = memoryview(self.text)
        return b"".join([view[one:other] for one, other in zip(begin, end, strict=True)])[:-1]


def applied(newest: bytes, scripts: Sequence[bytes], ends: bytes) -> bytes:
    """The form that a chain of scripts makes of the newest one; raises Damaged when they do not fit."""
    table = _Tokens([newest, *scripts], ends)
    form: Places = np.arange(table.bounds[1])
    for number in range(1, len(scripts) + 1):
        form = _assembled(form, _operations(table, number))
    return table.joined(form) if len(form) else b""


def _operations(table: _Tokens, number: int) -> _Script:
    """Reads a script; where numbers stand before an inserted token, its beginning is moved behind them."""
    index, last = table.bounds[number], table.bounds[number + 1] - 1
    end = int(table.stops[last]) - 1
    following, starts = table.following, table.starts.data
    text, rank, short = table.text, numbers.RANK, numbers.SHORT
    order: list[int] = []
    others: list[tuple[int, int, int, int]] = []
    at = starts[index]
    while index < last or at < end:
        # Most operations are three bytes before the first inserted token: those are read all at once below.
        if at == starts[index] and (step := following[index]):
            order.append(index)
            index = step
        else:
            order.append(-1 - len(others))
            head = text[at : at + 3]
            if len(head) == 3 and rank[head[0]] < short and rank[head[1]] < short and rank[head[2]] < short:
                copied, count, seek, at = rank[head[0]], rank[head[1]], rank[head[2]], at + 3
            else:
                copied, count, seek, at = _operation(text, at)
            others.append((copied, count, seek, index))
            if not count:
                continue
            starts[index] = at
            index += count
        if index > last:
            raise Damaged("inserted text is cut off in a difference; restore this pack from a copy")
        at = starts[index]
    return _script(table, np.array(order, dtype=np.int64), others)


def _operation(text: bytes, at: int) -> tuple[int, int, int, int]:
    copied, at = numbers.read(text, at)
    count, at = numbers.read(text, at)
    seek, at = numbers.read(text, at)
    if copied > MOST_TOKENS or count > MOST_TOKENS or seek > MOST_TOKENS:
        raise misfit()
    return copied, count, seek, at


def _script(table: _Tokens, order: Places, others: list[tuple[int, int, int, int]]) -> _Script:
    """All operations in their order; those of three bytes are looked up in the heads of their tokens."""
    plain = order >= 0
    rows = np.empty((4, len(order)), dtype=np.int64)
    rows[:3, plain] = table.heads[:, order[plain]]
    rows[3, plain] = order[plain]
    if others:
        rows[:, ~plain] = np.array(others, dtype=np.int64).T
    table.starts[order[plain]] += 3
    copied, counts, signed, literals = rows
    return _Script(copied, counts, np.where(signed & 1, -((signed + 1) >> 1), signed >> 1) + counts, literals)


def _assembled(form: Places, script: _Script) -> Places:
    """The token numbers of a version, from those of its base."""
    have = len(form)
    copied, counts, seeks, literals = script
    stops = np.cumsum(copied + seeks) - seeks
    cursors = np.concatenate(([0], stops + seeks))
    if np.any(stops > have) or np.any(cursors < 0) or np.any(cursors > have) or np.any(stops < copied):
        raise misfit()
    # Copied and inserted tokens take turns; the inserted ones are counted on from the end of the base.
    lengths = np.empty(2 * len(copied) + 1, dtype=np.int64)
    lengths[0:-1:2], lengths[1::2], lengths[-1] = copied, counts, have - cursors[-1]
    begins = np.empty_like(lengths)
    begins[0::2], begins[1::2] = cursors, literals
    total = int(lengths.sum())
    if total > MOST_TOKENS:
        raise misfit()
    inserted = np.zeros(len(lengths), dtype=bool)
    inserted[1::2] = True
    places = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(total)
    fresh = np.repeat(inserted, lengths)
    out = places.copy()
    out[~fresh] = form[places[~fresh]]
    return out
