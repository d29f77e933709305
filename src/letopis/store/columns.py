"""The facts of many documents in columns, so that a version costs a few bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from math import gcd
from typing import NamedTuple, TypeVar

from letopis.errors import Damaged
from letopis.store.varint import Cursor, text, varint, zigzag

_NEXT, _DIGEST = 0, 1
_COLUMNS = 7
_T = TypeVar("_T")
MOST_VERSIONS = 1 << 16
"""Versions that one entry of a facts record may have; a longer chain takes several."""


class Held(NamedTuple):
    """A frame of a document: its offset in the pack and its number of slots."""

    offset: int
    slots: int


class ChainFacts(NamedTuple):
    """The versions of one document, newest first.

    A content is the number of a slot, counted through all frames, or the
    digest of a content that lies elsewhere.
    """

    key: bytes
    frames: tuple[Held, ...]
    times: tuple[int, ...]
    notes: tuple[bytes, ...]
    contents: tuple[int | bytes, ...]


def encode_columns(chains: Sequence[ChainFacts], offset: int) -> bytes:
    """The body of a facts record that will lie at `offset`."""
    columns = [bytearray() for _ in range(_COLUMNS)]
    keys, counts, frames, times, contents, notes, digests = columns
    for chain in chains:
        distinct = {note: index for index, note in enumerate(dict.fromkeys(chain.notes))}
        keys += text(chain.key)
        counts += varint(len(chain.times)) + varint(len(chain.frames)) + varint(len(distinct))
        frames += b"".join(varint(offset - held.offset) + varint(held.slots) for held in chain.frames)
        times += _times(chain.times)
        contents += _runs(_codes(chain.contents, digests))
        notes += b"".join(map(text, distinct)) + _runs([distinct[note] for note in chain.notes])
    return b"".join(text(bytes(column)) for column in columns)


def decode_columns(body: bytes, offset: int) -> Iterator[ChainFacts]:
    """The documents of a facts record; Damaged when its columns do not fit together."""
    outer = Cursor(body)
    keys, counts, frames, times, contents, notes, digests = (Cursor(outer.text()) for _ in range(_COLUMNS))
    while keys.left:
        versions, held, distinct = counts.varint(), counts.varint(), counts.varint()
        if versions > MOST_VERSIONS:
            raise Damaged("a facts record claims too many versions; run verify")
        key = keys.text()
        found = tuple(Held(offset - frames.varint(), frames.varint()) for _ in range(held))
        said = [notes.text() for _ in range(distinct)]
        yield ChainFacts(
            key,
            found,
            tuple(_read_times(times, versions)),
            tuple(_nth(said, index) for index in _read_runs(notes, versions)),
            tuple(_read_contents(_read_runs(contents, versions), digests)),
        )


def _times(times: Sequence[int]) -> bytes:
    if not times:
        return b""
    steps = [earlier - later for later, earlier in pairwise(times)]
    unit = gcd(*steps)
    deltas = b"".join(zigzag(step // unit) for step in steps) if unit else b""
    return varint(unit) + zigzag(times[0]) + deltas


def _read_times(column: Cursor, count: int) -> Iterator[int]:
    if not count:
        return
    unit, time = column.varint(), column.zigzag()
    yield time
    for _ in range(count - 1):
        time += unit * column.zigzag() if unit else 0
        yield time


def _codes(contents: Sequence[int | bytes], digests: bytearray) -> list[int]:
    """Contents as small numbers; digests go to their own column."""
    codes = []
    last: dict[int | bytes, int] = {}
    upcoming = 0
    for index, content in enumerate(contents):
        if content in last:
            codes.append(2 * (index - last[content] - 1) + 2)
        elif isinstance(content, bytes):
            digests += text(content)
            codes.append(_DIGEST)
        else:
            codes.append(_NEXT if content == upcoming else 2 * content + 3)
            upcoming = content + 1
        last[content] = index
    return codes


def _read_contents(codes: Iterator[int], digests: Cursor) -> Iterator[int | bytes]:
    seen: list[int | bytes] = []
    upcoming = 0
    for code in codes:
        if code == _DIGEST:
            seen.append(digests.text())
        elif code and not code & 1:
            seen.append(_nth(seen, len(seen) - code // 2))
        else:
            slot = (code - 3) // 2 if code else upcoming
            upcoming = slot + 1
            seen.append(slot)
    return iter(seen)


def _runs(numbers: Sequence[int]) -> bytes:
    return b"".join(varint(number) + varint(len(list(run))) for number, run in groupby(numbers))


def _read_runs(column: Cursor, count: int) -> Iterator[int]:
    while count > 0:
        number, run = column.varint(), column.varint()
        if not 0 < run <= count:
            raise Damaged("the columns of a facts record do not fit together; run verify")
        count -= run
        for _ in range(run):
            yield number


def _nth(row: Sequence[_T], index: int) -> _T:
    if not 0 <= index < len(row):
        raise Damaged("the columns of a facts record do not fit together; run verify")
    return row[index]
