"""Packs from one place to another, byte for byte, under their own names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from letopis.errors import Busy
from letopis.store.backend import Backend

_CHUNK = 8 << 20
_LOG = ".log"


class Copied(NamedTuple):
    """A pack that is whole at the new place; `fresh` when it was not there before."""

    name: str
    size: int
    fresh: bool


def copy_packs(source: Backend, target: Backend) -> Iterator[Copied]:
    """Copies what is missing; can be killed at any point and begun again.

    A finished pack appears whole or not at all, a log goes on where it
    ended. Neither place may be written to meanwhile.
    """
    there = target.list()
    for name, size in sorted(source.list().items()):
        have = there.get(name, 0)
        if have > size or (0 < have < size and not name.endswith(_LOG)):
            raise Busy(f"{name} in {target.where} is another pack than in {source.where}; choose an empty place")
        if have < size:
            _copy(source, target, name, have, size)
        yield Copied(name, size, have < size)


def _copy(source: Backend, target: Backend, name: str, start: int, size: int) -> None:
    if name.endswith(_LOG):
        for offset in range(start, size, _CHUNK):
            target.append(name, offset, source.read(name, offset, min(_CHUNK, size - offset)))
            target.sync(name)
        return
    draft = target.create(name)
    try:
        for offset in range(0, size, _CHUNK):
            draft.write(source.read(name, offset, min(_CHUNK, size - offset)))
        draft.commit()
    finally:
        draft.discard()
