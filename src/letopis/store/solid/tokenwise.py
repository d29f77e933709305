"""Operations counted in tokens: the smaller dialect, for versions that differ little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from letopis.errors import Damaged
from letopis.store.solid import numbers, tokens
from letopis.store.solid.matching import Run
from letopis.store.solid.residue import misfit

# From so many pieces on, building anew is faster than changing in place.
_MANY = 200
_NOTHING: list[bytes] = []
# A hostile frame may copy copies of copies; a list of tokens never grows past this. Versions are written in tokens
# only while they have at most half of it, so that changing one into another in place never meets the limit.
MOST_TOKENS = 1 << 23
MOST_WRITTEN = MOST_TOKENS // 2


def written(runs: Iterable[Run], version: Sequence[bytes], base_count: int) -> bytes:
    """The operations that make the version from its base, without reference and stop."""
    out: list[bytes] = []
    cursor = start = copied = 0
    for run in [*runs, Run(len(version), base_count, 0)]:
        if run.start > start or run.source != cursor:
            out.append(_operation(copied, run.source - cursor, version[start : run.start]))
            copied = 0
        copied += run.length
        cursor, start = run.source + run.length, run.start + run.length
    return b"".join(out)


def _operation(copied: int, seek: int, literal: Sequence[bytes]) -> bytes:
    count = len(literal)
    # Most insertions replace as many tokens as they bring: that seek is written as 0.
    return b"".join((numbers.number(copied), numbers.number(count), numbers.signed(seek - count), *literal))


def apply(form: list[bytes], script: bytes, at: int, ends: bytes) -> list[bytes]:
    """The version that the operations from `at` on make of the base; raises Damaged when they do not fit.

    The base itself is changed into the version where that is possible, since
    a long chain of small differences is then cheap.
    """
    # Numbers hold no token end, so one cut finds all inserted tokens; numbers stand before the first of each run.
    pieces = tokens.pieces(script[at:], ends)
    if len(pieces) > _MANY:
        return _rebuilt(form, pieces)
    cursor = 0
    operations = list(_operations(pieces))
    if any(seek < 0 for _, _, seek in operations):
        return _rebuilt(form, pieces)
    for copied, literal, seek in operations:
        cursor += copied
        if cursor + seek > len(form) or len(form) > MOST_TOKENS:
            raise misfit()
        form[cursor : cursor + seek] = literal
        cursor += len(literal)
    return form


def _rebuilt(form: list[bytes], pieces: list[bytes]) -> list[bytes]:
    out: list[bytes] = []
    cursor, have = 0, len(form)
    for copied, literal, seek in _operations(pieces):
        stop = cursor + copied
        out += form[cursor:stop]
        out += literal
        cursor = stop + seek
        if stop > have or not 0 <= cursor <= have or len(out) > MOST_TOKENS:
            raise misfit()
    out += form[cursor:]
    return out


def _operations(pieces: list[bytes]) -> Iterator[tuple[int, list[bytes], int]]:
    """Tokens to copy, tokens to insert, and how far the base's cursor moves after that."""
    index = at = 0
    piece = pieces[0]
    last = len(pieces) - 1
    rank, short, read, unsign = numbers.RANK, numbers.SHORT, numbers.read, numbers.unsign
    while index < last or at < len(piece):
        # The three reads are spelled out for one-byte numbers: this loop is where old versions spend their time.
        head = piece[at : at + 3]
        if len(head) == 3 and (copied := rank[head[0]]) < short and (count := rank[head[1]]) < short:
            seek, at = (rank[head[2]], at + 3) if rank[head[2]] < short else read(piece, at + 2)
        else:
            copied, at = read(piece, at)
            count, at = read(piece, at)
            seek, at = read(piece, at)
        literal = _NOTHING
        if count:
            literal = pieces[index : index + count]
            literal[0] = piece[at:]
            index, at = index + count, 0
            if index > last:
                raise Damaged("inserted text is cut off in a difference; restore this pack from a copy")
            piece = pieces[index]
        yield copied, literal, (unsign(seek) if seek else 0) + count
