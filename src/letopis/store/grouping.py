"""Pure decisions of compaction: which versions are written anew, and which of them share a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from letopis.store.values import Entry

READ_BOUND = 2_000_000
"""Coder output that reading any content may take, whatever its size."""
WORK = 8
"""Reading a content may take this many times its size, when that is more."""
_MERGE = 2


def affordable(newest: int, length: int) -> bool:
    """Whether a content may be coded against a newest content of that length."""
    return newest + length <= max(READ_BOUND, WORK * length)


def quick_share(entries: Sequence[Entry], loose: Callable[[Entry], bool], settled: Callable[[Entry], bool]) -> int:
    """How many of the newest versions a quick compaction writes anew.

    All down to the last loose one (still in a log), then further runs of
    versions as long as they are not much longer than what was taken: each
    version is so written anew only a logarithmic number of times. A run that
    is settled (has its final form) ends it.
    """
    taken = max((index + 1 for index, entry in enumerate(entries) if loose(entry)), default=0)
    while 0 < taken < len(entries):
        run = _same_pack(entries, taken)
        if run > _MERGE * taken or settled(entries[taken]):
            break
        taken += run
    return taken


def groups(lengths: Sequence[int], whole: int) -> Iterator[list[int]]:
    """Splits contents, newest first, into groups that each have a newest of their own.

    The first `whole` contents head groups; a content that is too small for
    the head of its group to be decoded with it goes to the next one.
    """
    for index in range(min(whole - 1, len(lengths))):
        yield [index]
    rest = list(range(max(whole - 1, 0), len(lengths)))
    while rest:
        head = lengths[rest[0]]
        group = [index for index in rest if index == rest[0] or affordable(head, lengths[index])]
        yield group
        taken = set(group)
        rest = [index for index in rest if index not in taken]


def _same_pack(entries: Sequence[Entry], start: int) -> int:
    pack = entries[start].place.pack
    length = 1
    while start + length < len(entries) and entries[start + length].place.pack == pack:
        length += 1
    return length
