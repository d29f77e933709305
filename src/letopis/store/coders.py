"""The ways to read several contents out of one frame, by the method that records name them with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from letopis.errors import Damaged, UnknownVersion
from letopis.store import run
from letopis.store.layout import Method
from letopis.store.values import Decoded


class FrameCoder(NamedTuple):
    """One way to read frames: one content of a frame or all of them.

    Those take the newest content of the group and the known text of the
    site where `needs_newest` and `needs_known` say so.
    """

    method: Method
    decode: Callable[[bytes, int, bytes | None, bytes], Decoded]
    decode_all: Callable[[bytes, bytes | None, bytes], list[bytes]]
    needs_newest: Callable[[bytes], bool]
    needs_known: Callable[[bytes], bool]
    newest_span: Callable[[bytes], int]

    def shares(self, data: bytes, count: int, first: bool) -> list[int]:
        """What each content of a frame may be said to occupy; together the whole frame."""
        own = [self.newest_span(data)] if first else []
        others, rest = count - len(own), len(data) - sum(own)
        if others == 0:
            return [len(data)]
        return own + [rest * (index + 1) // others - rest * index // others for index in range(others)]


@cache
def _solid() -> Any:
    """The package of solid frames, loaded at the first frame.

    Loaded late on purpose: it needs numpy and rapidfuzz, whose
    loading costs more than a thousand checks that find nothing new, and
    whoever reads only newest or recent versions never meets a solid frame.
    """
    from letopis.store import solid  # noqa: PLC0415

    return solid


def _solid_decode(data: bytes, slot: int, newest: bytes | None, known: bytes) -> Decoded:
    try:
        found: Decoded = _solid().decode(data, slot, newest, known)
    except UnknownVersion as error:
        raise Damaged(f"a solid frame has no slot {slot}; run verify") from error
    return found


def _solid_decode_all(data: bytes, newest: bytes | None, known: bytes) -> list[bytes]:
    bodies: list[bytes] = _solid().decode_all(data, newest, known)
    return bodies


def _solid_needs_newest(data: bytes) -> bool:
    return bool(_solid().needs_newest(data))


def _solid_needs_known(data: bytes) -> bool:
    return bool(_solid().needs_known(data))


def _solid_newest_span(data: bytes) -> int:
    return int(_solid().newest_span(data))


RUN = FrameCoder(
    Method.RUN,
    lambda data, slot, newest, _: run.decode(data, slot, newest),
    lambda data, newest, _: run.decode_all(data, newest),
    run.needs_newest,
    lambda _: False,
    run.newest_span,
)
SOLID = FrameCoder(
    Method.SOLID, _solid_decode, _solid_decode_all, _solid_needs_newest, _solid_needs_known, _solid_newest_span
)
_BY_METHOD: dict[int, FrameCoder] = {coder.method: coder for coder in (RUN, SOLID)}


def of(method: int) -> FrameCoder:
    """The coder of a record's method."""
    try:
        return _BY_METHOD[method]
    except KeyError:
        raise Damaged(f"a frame names the unknown method {method}; run verify") from None
