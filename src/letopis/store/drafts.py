"""A pack that compaction writes: invisible until it is whole."""

from __future__ import annotations

from letopis.store.backend import Draft
from letopis.store.columns import ChainFacts, encode_columns
from letopis.store.content import smallest
from letopis.store.layout import Kind, Method, encode_record, pack_header
from letopis.store.packs import PACK, Packs

_CHAINS_PER_FACTS = 256
_WRITE_BYTES = 1 << 20


class PackWriter:
    """Writes records into a draft, and the facts of its documents behind their frames."""

    def __init__(self, packs: Packs, flags: int) -> None:
        self._packs = packs
        self.pack, self._name = packs.allocate(PACK)
        self._draft: Draft = packs.backend.create(self._name)
        self._buffer = bytearray(pack_header(flags, self.pack))
        self._facts: list[ChainFacts] = []
        self.end = len(self._buffer)

    def add(self, kind: Kind, method: Method, head: bytes, body: bytes) -> tuple[int, int]:
        """Writes one record; its offset and its length."""
        offset = self.end
        record = encode_record(kind, method, head, body, pack=self.pack, offset=offset)
        self._buffer += record
        self.end += len(record)
        if len(self._buffer) >= _WRITE_BYTES:
            self._flush()
        return offset, len(record)

    def say(self, facts: ChainFacts) -> None:
        """Takes the facts of a document whose frames were written."""
        self._facts.append(facts)
        if len(self._facts) >= _CHAINS_PER_FACTS:
            self._write_facts()

    def commit(self) -> int:
        """Makes the pack durable and known; its size."""
        self._write_facts()
        self._flush()
        self._draft.commit()
        self._packs.add(self.pack, self._name)
        return self.end

    def discard(self) -> None:
        """Forgets the pack."""
        self._draft.discard()

    def _write_facts(self) -> None:
        if self._facts:
            method, body = smallest(encode_columns(self._facts, self.end))
            self._facts.clear()
            self.add(Kind.FACTS, method, b"", body)

    def _flush(self) -> None:
        data = bytes(self._buffer)
        self._buffer.clear()
        self._draft.write(data)
