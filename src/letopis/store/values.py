"""The values that cross the border of the store."""

from __future__ import annotations

from letopis.errors import Damaged
from letopis.tuples import NamedTuple


class Misnamed(Damaged):
    """A pack has the name of another one: nothing in it is damaged, and nothing in it can be read."""


class PackGone(Damaged):
    """The pack is gone: look the content up again, then read its new place.

    It is a kind of damage, since a pack that is still referred to after the second look was lost.
    """


class ContentPlace(NamedTuple):
    """Where one content lies: a record of a pack, and a slot inside a frame (0 in a single record)."""

    pack: int
    offset: int
    slot: int


class VersionItem(NamedTuple):
    """One version of one document, as handed in.

    `key` names the document, `note` holds what is needed to rebuild its facts, `digest` is the identity of the body;
    all three are opaque here. Without a body the content is already stored under the same digest and only the fact is
    written.
    """

    key: bytes
    time: int
    note: bytes
    digest: bytes
    body: bytes | None


class HighWaterMark(NamedTuple):
    """Up to where the owner of a store knows it: packs up to the number `highest`, of the log `log` its first bytes.

    Packs may have been lost, or older copies of them put back: a place that was given out once must never hold
    something else. Packs may hold more as well: then it is the owner's list that was put back, and not they.
    """

    highest: int = 0
    log: int = 0
    end: int = 0


class AppendResult(NamedTuple):
    """Where an item went; no place when only its fact was written."""

    place: ContentPlace | None
    stored_bytes: int
    method: str


class DecodedContent(NamedTuple):
    """One content, and how many bytes of coder output it took to get it."""

    body: bytes
    decoded_bytes: int
    method: str


class ChainEntry(NamedTuple):
    """One version of a chain: its fact and where its content lies."""

    time: int
    note: bytes
    digest: bytes
    place: ContentPlace


class VersionChain(NamedTuple):
    """The versions of one document that are to be kept, newest first.

    Documents with the same `site`, which is opaque here, are likely to share text.
    """

    key: bytes
    entries: tuple[ChainEntry, ...]
    site: bytes = b""


class ContentMove(NamedTuple):
    """A content that lies elsewhere from now on."""

    digest: bytes
    old: ContentPlace
    new: ContentPlace
    stored_bytes: int
    method: str


class CompactionBatch(NamedTuple):
    """A durable batch of moves, ready to be committed to the catalogue.

    `chains` counts the documents looked at since the batch before, whether or not there was anything to do for them.
    `failed` names contents that could not be read and stay where they are.
    """

    moves: tuple[ContentMove, ...]
    chains: int
    pack_bytes: int
    failed: tuple[ContentPlace, ...] = ()


class VersionFact(NamedTuple):
    """A version as the packs tell it. Without a place the content lies elsewhere, under `digest`."""

    key: bytes
    time: int
    note: bytes
    digest: bytes
    place: ContentPlace | None
    raw_bytes: int
    stored_bytes: int
    method: str


class PackDamage(NamedTuple):
    """Bytes of a pack that are not what was written; `length` 0 when it is unknown."""

    pack: int
    offset: int
    length: int
    problem: str

    def __str__(self) -> str:
        """One sentence that names the spot."""
        return f"pack {self.pack}, offset {self.offset}, {self.length} bytes: {self.problem}"


class PackTotals(NamedTuple):
    """What a store occupies. `log_bytes` wait for compaction."""

    packs: int
    pack_bytes: int
    log_bytes: int
