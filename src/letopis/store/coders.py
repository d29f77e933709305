"""The ways to keep several contents in one frame, by the method that records name them with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from letopis.errors import Damaged, UnknownVersion
from letopis.store import run, solid
from letopis.store.layout import Method
from letopis.store.values import Decoded


class CodedFrame(Protocol):
    """What a coder makes."""

    @property
    def data(self) -> bytes:
        """The bytes to be kept."""

    @property
    def count(self) -> int:
        """Contents in it."""


class Encode(Protocol):
    """Contents, newest first, to frames; the first frame begins with the newest."""

    def __call__(self, bodies: Sequence[bytes], *, bound: int) -> Sequence[CodedFrame]:
        """Makes the frames."""


@dataclass(frozen=True, slots=True)
class FrameCoder:
    """One way: how to write frames, how to read one content of a frame or all of them."""

    method: Method
    encode: Encode
    decode: Callable[[bytes, int, bytes | None], Decoded]
    decode_all: Callable[[bytes, bytes | None], list[bytes]]
    needs_newest: Callable[[bytes], bool]
    newest_span: Callable[[bytes], int]

    def shares(self, data: bytes, count: int, first: bool) -> list[int]:
        """What each content of a frame may be said to occupy; together the whole frame."""
        own = [self.newest_span(data)] if first else []
        others, rest = count - len(own), len(data) - sum(own)
        if others == 0:
            return [len(data)]
        return own + [rest * (index + 1) // others - rest * index // others for index in range(others)]


def _solid_decode(data: bytes, slot: int, newest: bytes | None) -> Decoded:
    try:
        found = solid.decode(data, slot, newest)
    except UnknownVersion as error:
        raise Damaged(f"a solid frame has no slot {slot}; run verify") from error
    return Decoded(found.body, found.decoded_bytes, Method.SOLID.label)


RUN = FrameCoder(Method.RUN, run.encode, run.decode, run.decode_all, run.needs_newest, run.newest_span)
SOLID = FrameCoder(Method.SOLID, solid.encode, _solid_decode, solid.decode_all, solid.needs_newest, solid.newest_span)
_BY_METHOD: dict[int, FrameCoder] = {coder.method: coder for coder in (RUN, SOLID)}


def of(method: int) -> FrameCoder:
    """The coder of a record's method."""
    try:
        return _BY_METHOD[method]
    except KeyError:
        raise Damaged(f"a frame names the unknown method {method}; run verify") from None
