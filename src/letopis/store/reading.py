"""From a place to a content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from letopis.errors import Damaged, NewerFormat
from letopis.store import coders
from letopis.store.coders import FrameCoder
from letopis.store.content import expand, label_of
from letopis.store.layout import Kind, Method, Record, parse_frame_head
from letopis.store.packs import Packs, damaged
from letopis.store.texts import Texts, cost
from letopis.store.values import Decoded, Moved, Place
from letopis.store.varint import Cursor

# Looking a member up in its enumeration is slow in Python 3.11, and every read asks.
_VERSION, _FRAME, _PIECES = int(Kind.VERSION), int(Kind.FRAME), int(Method.PIECES)


class _Group(NamedTuple):
    """What a frame has around it: how many slots it claims, the newest content, the known text, and what those took."""

    slots: int
    newest: bytes | None
    known: bytes
    made: int


class Reader:
    """Reads contents, from any thread."""

    def __init__(self, packs: Packs) -> None:
        self._packs = packs
        self.texts = Texts(packs)

    def read(self, place: Place, guess: int = 0) -> Decoded:
        """One content; Damaged names the spot."""
        record = self._packs.record(place.pack, place.offset, guess)
        try:
            return self.decode(place, record)
        except Damaged as error:
            self._complain(place, error)

    def decode(self, place: Place, record: Record) -> Decoded:
        """The content of a record that was already read."""
        if record.kind == _FRAME:
            return self._from_frame(place, record)
        if record.kind != _VERSION:
            raise Damaged("the record there holds no content")
        if record.method == _PIECES:
            body = b"".join(self._pieces(place.pack, record))
        else:
            body = expand(record.method, record.body)
        return Decoded(body, len(body), label_of(record.method, record.body))

    def stream(self, place: Place) -> Iterator[bytes]:
        """One content part by part, in bounded memory."""
        record = self._packs.record(place.pack, place.offset)
        try:
            if record.kind == _VERSION and record.method == _PIECES:
                yield from self._pieces(place.pack, record)
            else:
                yield self.decode(place, record).body
        except Damaged as error:
            self._complain(place, error)

    def pieces(self, record: Record) -> list[tuple[int, int]]:
        """Offset and raw length of each piece that a version record lists."""
        fields = Cursor(record.body)
        return [(record.offset - fields.varint(), fields.varint()) for _ in range(fields.varint())]

    def _pieces(self, pack: int, record: Record) -> Iterator[bytes]:
        for offset, length in self.pieces(record):
            piece = self._packs.record(pack, offset)
            body = expand(piece.method, piece.body)
            if piece.kind != Kind.PIECE or len(body) != length:
                raise damaged(self._packs.name(pack), offset, "a piece of a large content is not the one listed")
            yield body

    def _from_frame(self, place: Place, record: Record) -> Decoded:
        coder = coders.of(record.method)
        _, newest, known, made = self._group(place.pack, record, coder)
        found = coder.decode(record.body, place.slot, newest, known)
        return Decoded(found.body, found.decoded_bytes + made, found.method) if made else found

    def _group(self, pack: int, record: Record, coder: FrameCoder) -> _Group:
        """What a frame needs from outside. Only what the frame asks for is read."""
        head = parse_frame_head(record.head)
        first = self._packs.record(pack, record.offset - head.back) if head.back else record
        at = parse_frame_head(first.head).text if head.back else head.text
        known = self.texts.get(at) if at is not None and coder.needs_known(record.body) else b""
        made = cost(at, known)
        if not head.back or not coder.needs_newest(record.body):
            return _Group(head.slots, None, known, made)
        newest = coders.of(first.method).decode(first.body, 0, None, known)
        return _Group(head.slots, newest.body, known, made + newest.decoded_bytes)

    def whole_frame(self, pack: int, record: Record) -> list[bytes]:
        """All contents of a frame record, newest first."""
        try:
            return self._all_of(pack, record)
        except Damaged as error:
            self._complain(Place(pack, record.offset, 0), error)

    def _all_of(self, pack: int, record: Record) -> list[bytes]:
        coder = coders.of(record.method)
        group = self._group(pack, record, coder)
        bodies = coder.decode_all(record.body, group.newest, group.known)
        if len(bodies) != group.slots:
            raise Damaged(f"a frame holds {len(bodies)} contents and claims {group.slots}")
        return bodies

    def _complain(self, place: Place, error: Damaged) -> NoReturn:
        """Raises the error, naming the spot if it does not yet."""
        name = self._packs.name(place.pack)
        if isinstance(error, Moved | NewerFormat) or name in str(error):
            raise error
        raise Damaged(f"{name}, offset {place.offset}, slot {place.slot}: {error}") from error
