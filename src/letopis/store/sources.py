"""What compaction asks about contents that are already stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from letopis.errors import Damaged
from letopis.store.content import LARGE
from letopis.store.layout import (
    FLAG_SOLID,
    Kind,
    Method,
    Record,
    TextAt,
    owner,
    parse_frame_head,
    parse_version_head,
)
from letopis.store.packs import Packs, damaged
from letopis.store.reading import Reader
from letopis.store.values import Moved, Place


class Sources:
    """Reads contents for writing them anew. Keeps the frame read last, since neighbours follow each other."""

    def __init__(self, packs: Packs, reader: Reader, identity: Callable[[bytes], bytes]) -> None:
        self._packs = packs
        self._reader = reader
        self._identity = identity
        self._frame: tuple[int, int] = (0, 0)
        self._bodies: list[bytes] = []

    def in_log(self, pack: int) -> bool:
        """Whether a pack waits for compaction; one that is lost does not."""
        with suppress(Moved):
            return self._packs.is_log(pack)
        return False

    def solid(self, pack: int) -> bool:
        """Whether a pack got the full effort."""
        with suppress(Moved):
            return bool(self._packs.flags(pack) & FLAG_SOLID)
        return False

    def owned(self, key: bytes, place: Place) -> bool:
        """Whether a content lies in a frame of the document itself, not in one it borrows from."""
        try:
            found = self._packs.start(place.pack, place.offset)
        except Moved:
            return False
        if found is None or found[0].kind != Kind.FRAME:
            return False
        head = parse_frame_head(found[1])
        if not head.back:
            return head.mark == owner(key)
        return self.owned(key, Place(place.pack, place.offset - head.back, 0))

    def text_of(self, place: Place) -> TextAt | None:
        """The known text that a content's frame leans on."""
        try:
            found = self._packs.start(place.pack, place.offset)
        except Moved:
            return None
        if found is None or found[0].kind != Kind.FRAME:
            return None
        head = parse_frame_head(found[1])
        return self.text_of(Place(place.pack, place.offset - head.back, 0)) if head.back else head.text

    def text(self, at: TextAt) -> bytes:
        """A known text; empty when it cannot be read any more, so that nothing new will lean on it."""
        try:
            return self._reader.texts.get(at)
        except Damaged:
            return b""

    def slots(self, pack: int, offset: int) -> int:
        """Number of contents in a frame."""
        found = self._packs.start(pack, offset)
        return parse_frame_head(found[1]).slots if found else 0

    def body(self, place: Place, digest: bytes) -> bytes | None:
        """The content, checked against its digest; None when it is too large to be held."""
        record = self._packs.record(place.pack, place.offset)
        if record.kind == Kind.VERSION and parse_version_head(record).raw_bytes > LARGE:
            return None
        body = self._of_frame(place, record) if record.kind == Kind.FRAME else self._reader.decode(place, record).body
        if self._identity(body) != digest:
            raise damaged(self._packs.name(place.pack), place.offset, "the content does not fit its digest")
        return body

    def pieces(self, place: Place) -> Iterator[tuple[Method, bytes, int]]:
        """The pieces of a large content as they are stored: method, bytes, raw length."""
        record = self._packs.record(place.pack, place.offset)
        for offset, raw in self._reader.pieces(record):
            piece = self._packs.record(place.pack, offset)
            if piece.kind != Kind.PIECE:
                raise damaged(self._packs.name(place.pack), offset, "there should be a piece of a large content")
            yield Method(piece.method), piece.body, raw

    def _of_frame(self, place: Place, record: Record) -> bytes:
        if self._frame != (place.pack, place.offset):
            self._bodies = self._reader.whole_frame(place.pack, record)
            self._frame = (place.pack, place.offset)
        if place.slot >= len(self._bodies):
            raise Damaged(f"a frame of {len(self._bodies)} contents has no slot {place.slot}; run verify")
        return self._bodies[place.slot]
