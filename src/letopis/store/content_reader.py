"""From a place to a content: the shared texts that pages of a site need, single records, frames, large contents.

Also what compaction needs to know about contents that are already stored.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

from letopis.binary import ByteReader, sha1_digest
from letopis.errors import Damaged, NewerFormat
from letopis.lazy import lazy
from letopis.store import record_bodies
from letopis.store.pack_format import (
    FLAG_SOLID,
    PackRecord,
    RecordKind,
    RecordMethod,
    SharedTextRef,
    owner_mark,
    parse_frame_head,
    parse_version_head,
)
from letopis.store.packs import Packs, damaged_at
from letopis.store.record_bodies import LARGE_CONTENT, FrameCoder, body_label, expand_body
from letopis.store.values import ChainEntry, ContentPlace, DecodedContent, PackGone
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis import codec as codecs
else:
    codecs = lazy("letopis.codec")

GENERIC_TEXT = SharedTextRef(0, 1)
"""The known text for any HTML page, which is part of Letopis."""
_CACHED_TEXTS = 32
_SLOW_FACTOR = 2
"""Reading a newest content may take this many times its size."""


class SharedText(NamedTuple):
    """A known text, and where readers find it; without a place there is none."""

    at: SharedTextRef | None
    text: bytes


NO_TEXT = SharedText(None, b"")


class SharedTexts:
    """Reads known texts, from any thread, and caches the last few: 4 MiB of them at most."""

    def __init__(self, packs: Packs) -> None:
        self._packs = packs
        self._kept: OrderedDict[SharedTextRef, bytes] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, at: SharedTextRef) -> bytes:
        """The text; Damaged names the spot where it should be, Moved asks to look the content up again."""
        if at.pack == GENERIC_TEXT.pack:
            return built_in_text(at)
        with self._guard:
            text = self._kept.get(at)
            if text is not None:
                self._kept.move_to_end(at)
                return text
        text = self.decode(at.pack, self._packs.record(at.pack, at.offset))
        self._keep(at, text)
        return text

    def decode(self, pack: int, record: PackRecord) -> bytes:
        """The text of a record that was already read."""
        if record.kind != RecordKind.TEXT:
            raise damaged_at(self._packs.name(pack), record.offset, "the known text of a site is missing")
        try:
            return (
                record_bodies.frame_coder(record.method).decode(record.body, 0, None, built_in_text(GENERIC_TEXT)).body
            )
        except Damaged as error:
            raise damaged_at(self._packs.name(pack), record.offset, str(error)) from error

    def _keep(self, at: SharedTextRef, text: bytes) -> None:
        with self._guard:
            self._kept[at] = text
            while len(self._kept) > _CACHED_TEXTS:
                self._kept.popitem(last=False)


def built_in_text(at: SharedTextRef) -> bytes:
    """A text that is part of Letopis."""
    if at != GENERIC_TEXT:
        raise NewerFormat(f"a frame needs the built-in text {at.offset}; read it with a later release of Letopis")
    return _html_text()


@cache
def _html_text() -> bytes:
    return codecs.html_dictionary().text


def generic_text() -> SharedText:
    """The text that helps any page a little."""
    return SharedText(GENERIC_TEXT, built_in_text(GENERIC_TEXT))


def text_read_cost(at: SharedTextRef | None, text: bytes) -> int:
    """Coder output that reading a text causes if it is not cached."""
    return len(text) if at is not None and at.pack else 0


SiblingSample = Callable[[bytes], Iterable[ChainEntry]]
"""The newest versions of some documents of a site, with current places."""
_REMEMBERED_SITES = 64
_SAMPLE_PAGES = 12


def no_siblings(site: bytes) -> Iterable[ChainEntry]:
    """For stores whose documents belong to no site."""
    return ()


class SiteTexts:
    """What was decided for each site. Pass the same one to all compactions of a run, so that it is decided once."""

    def __init__(self, siblings: SiblingSample = no_siblings) -> None:
        self._siblings = siblings
        self._decided: OrderedDict[bytes, SharedText] = OrderedDict()

    def sample(self, site: bytes) -> list[ChainEntry]:
        """Newest versions to judge a site by."""
        return list(islice(self._siblings(site), _SAMPLE_PAGES))

    def decided(self, site: bytes) -> SharedText | None:
        """The text of a site; None if that is not decided yet."""
        return self._decided.get(site)

    def decide(self, site: bytes, known: SharedText) -> None:
        """Remembers the text of a site, or that it has none."""
        self._decided[site] = known
        if len(self._decided) > _REMEMBERED_SITES:
            self._decided.popitem(last=False)

    def keep(self, packs: Collection[int]) -> None:
        """Forgets the texts of packs that do not exist (any more)."""
        for site, known in list(self._decided.items()):
            if known.at is not None and known.at.pack not in packs:
                del self._decided[site]


# Looking a member up in its enumeration is slow in Python 3.11, and every read needs it.
_VERSION, _FRAME, _PIECES = int(RecordKind.VERSION), int(RecordKind.FRAME), int(RecordMethod.PIECES)


class _FrameContext(NamedTuple):
    """The context of a frame: how many slots it claims, the newest content, the known text, and what those took."""

    slots: int
    newest: bytes | None
    known: bytes
    made: int


class PackReader:
    """Reads contents, from any thread."""

    def __init__(self, packs: Packs) -> None:
        self._packs = packs
        self.texts = SharedTexts(packs)

    def read(self, place: ContentPlace, guess: int = 0) -> DecodedContent:
        """One content; Damaged names the spot."""
        record = self._packs.record(place.pack, place.offset, guess)
        try:
            return self.decode(place, record)
        except Damaged as error:
            self._complain(place, error)

    def decode(self, place: ContentPlace, record: PackRecord) -> DecodedContent:
        """The content of a record that was already read."""
        if record.kind == _FRAME:
            return self._from_frame(place, record)
        if record.kind != _VERSION:
            raise Damaged("the record there holds no content")
        if record.method == _PIECES:
            body = b"".join(self._pieces(place.pack, record))
        else:
            body = expand_body(record.method, record.body)
        return DecodedContent(body, len(body), body_label(record.method, record.body))

    def stream(self, place: ContentPlace) -> Iterator[bytes]:
        """One content part by part, in bounded memory."""
        record = self._packs.record(place.pack, place.offset)
        try:
            if record.kind == _VERSION and record.method == _PIECES:
                yield from self._pieces(place.pack, record)
            else:
                yield self.decode(place, record).body
        except Damaged as error:
            self._complain(place, error)

    def pieces(self, record: PackRecord) -> list[tuple[int, int]]:
        """Offset and raw length of each piece that a version record lists."""
        fields = ByteReader(record.body)
        return [(record.offset - fields.varint(), fields.varint()) for _ in range(fields.varint())]

    def _pieces(self, pack: int, record: PackRecord) -> Iterator[bytes]:
        for offset, length in self.pieces(record):
            piece = self._packs.record(pack, offset)
            body = expand_body(piece.method, piece.body)
            if piece.kind != RecordKind.PIECE or len(body) != length:
                raise damaged_at(self._packs.name(pack), offset, "a piece of a large content is not the one listed")
            yield body

    def _from_frame(self, place: ContentPlace, record: PackRecord) -> DecodedContent:
        coder = record_bodies.frame_coder(record.method)
        _, newest, known, made = self._group(place.pack, record, coder)
        found = coder.decode(record.body, place.slot, newest, known)
        return DecodedContent(found.body, found.decoded_bytes + made, found.method) if made else found

    def _group(self, pack: int, record: PackRecord, coder: FrameCoder) -> _FrameContext:
        """What a frame needs from other records. Only what the frame uses is read."""
        back, slots, _, at = parse_frame_head(record.head)
        if back:
            first = self._packs.record(pack, record.offset - back)
            at = parse_frame_head(first.head).text
        known = self.texts.get(at) if at is not None and coder.needs_known(record.body) else b""
        made = text_read_cost(at, known)
        if not back or not coder.needs_newest(record.body):
            return _FrameContext(slots, None, known, made)
        newest = record_bodies.frame_coder(first.method).decode(first.body, 0, None, known)
        return _FrameContext(slots, newest.body, known, made + newest.decoded_bytes)

    def whole_frame(self, pack: int, record: PackRecord) -> list[bytes]:
        """All contents of a frame record, newest first."""
        try:
            return self._all_of(pack, record)
        except Damaged as error:
            self._complain(ContentPlace(pack, record.offset, 0), error)

    def _all_of(self, pack: int, record: PackRecord) -> list[bytes]:
        coder = record_bodies.frame_coder(record.method)
        group = self._group(pack, record, coder)
        bodies = coder.decode_all(record.body, group.newest, group.known)
        if len(bodies) != group.slots:
            raise Damaged(f"a frame holds {len(bodies)} contents and claims {group.slots}")
        return bodies

    def _complain(self, place: ContentPlace, error: Damaged) -> NoReturn:
        """Raises the error, naming the spot if it does not yet."""
        name = self._packs.name(place.pack)
        if isinstance(error, PackGone | NewerFormat) or name in str(error):
            raise error
        raise Damaged(f"{name}, offset {place.offset}, slot {place.slot}: {error}") from error


class CompactionSource:
    """Reads contents in order to rewrite them. Keeps the frame read last, since neighbours follow each other."""

    def __init__(self, packs: Packs, reader: PackReader) -> None:
        self._packs = packs
        self._reader = reader
        self._frame: tuple[int, int] = (0, 0)
        self._bodies: list[bytes] = []

    def in_log(self, pack: int) -> bool:
        """Whether a pack waits for compaction; one that is lost does not."""
        with suppress(PackGone):
            return self._packs.is_log(pack)
        return False

    def solid(self, pack: int) -> bool:
        """Whether a pack got the full effort."""
        with suppress(PackGone):
            return bool(self._packs.flags(pack) & FLAG_SOLID)
        return False

    def owned(self, key: bytes, place: ContentPlace) -> bool:
        """Whether a content is in a frame or record of the document itself, not in one of another document."""
        try:
            found = self._packs.start(place.pack, place.offset)
        except PackGone:
            return False
        if found is not None and found[0].kind == RecordKind.VERSION and not self._packs.is_log(place.pack):
            record = self.version_record(place)
            return record is not None and parse_version_head(record).key == key
        if found is None or found[0].kind != RecordKind.FRAME:
            return False
        head = parse_frame_head(found[1])
        if not head.back:
            return head.mark == owner_mark(key)
        return self.owned(key, ContentPlace(place.pack, place.offset - head.back, 0))

    def text_of(self, place: ContentPlace) -> SharedTextRef | None:
        """The known text that the frame of a content uses."""
        try:
            found = self._packs.start(place.pack, place.offset)
        except PackGone:
            return None
        if found is None or found[0].kind != RecordKind.FRAME:
            return None
        head = parse_frame_head(found[1])
        return self.text_of(ContentPlace(place.pack, place.offset - head.back, 0)) if head.back else head.text

    def text(self, at: SharedTextRef) -> bytes:
        """A known text; empty if it can no longer be read, so that nothing new will use it."""
        try:
            return self._reader.texts.get(at)
        except Damaged:
            return b""

    def stored_bytes(self, place: ContentPlace) -> int:
        """About how many bytes a content takes: its record, or its part of a frame."""
        with suppress(PackGone):
            found = self._packs.start(place.pack, place.offset)
            if found is not None and found[0].kind == RecordKind.FRAME:
                return (found[0].end - found[0].body_at) // max(1, parse_frame_head(found[1]).slots)
            return found[0].end if found is not None else 0
        return 0

    def version_record(self, place: ContentPlace) -> PackRecord | None:
        """The record of a content that is stored alone; None for one in a frame or in pieces."""
        record = self._packs.record(place.pack, place.offset)
        alone = record.kind == RecordKind.VERSION and record.method != RecordMethod.PIECES
        return record if alone else None

    def slow(self, place: ContentPlace) -> bool:
        """Whether reading a content takes much besides it, because it comes after others in its frame."""
        record = self._packs.record(place.pack, place.offset)
        if record.kind != RecordKind.FRAME or not (place.slot or parse_frame_head(record.head).back):
            return False
        found = self._reader.decode(place, record)
        return found.decoded_bytes > _SLOW_FACTOR * len(found.body)

    def body(self, place: ContentPlace, digest: bytes) -> bytes | None:
        """The content, checked against its digest; None when it is too large to be held."""
        record = self._packs.record(place.pack, place.offset)
        if record.kind == RecordKind.VERSION and parse_version_head(record).raw_bytes > LARGE_CONTENT:
            return None
        body = (
            self._of_frame(place, record)
            if record.kind == RecordKind.FRAME
            else self._reader.decode(place, record).body
        )
        if sha1_digest(body) != digest:
            raise damaged_at(self._packs.name(place.pack), place.offset, "the content does not match its digest")
        return body

    def pieces(self, place: ContentPlace) -> Iterator[tuple[RecordMethod, bytes, int]]:
        """The pieces of a large content as they are stored: method, bytes, raw length."""
        record = self._packs.record(place.pack, place.offset)
        for offset, raw in self._reader.pieces(record):
            piece = self._packs.record(place.pack, offset)
            if piece.kind != RecordKind.PIECE:
                raise damaged_at(self._packs.name(place.pack), offset, "there should be a piece of a large content")
            yield RecordMethod(piece.method), piece.body, raw

    def _of_frame(self, place: ContentPlace, record: PackRecord) -> bytes:
        if self._frame != (place.pack, place.offset):
            self._bodies = self._reader.whole_frame(place.pack, record)
            self._frame = (place.pack, place.offset)
        if place.slot >= len(self._bodies):
            raise Damaged(f"a frame of {len(self._bodies)} contents has no slot {place.slot}; run verify")
        return self._bodies[place.slot]
