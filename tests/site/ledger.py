"""A catalogue as small as one can be: what the store needs somebody to remember, in memory or in a journal."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from letopis.binary import sha1_digest
from letopis.store import AppendResult, ChainEntry, CompactionBatch, ContentPlace, Store, VersionChain, VersionItem


class Ledger:
    """Versions by key, places by digest. With a journal every commit is one appended line."""

    def __init__(self, journal: Path | None = None) -> None:
        self.versions: dict[bytes, list[tuple[int, bytes, bytes]]] = {}
        self.places: dict[bytes, ContentPlace] = {}
        self._journal = journal
        if journal is not None and journal.exists():
            for line in journal.read_bytes().split(b"\n")[:-1]:
                self._apply(json.loads(line))

    def put(self, store: Store, batch: list[tuple[bytes, int, bytes, bytes]]) -> list[AppendResult]:
        """Stores (key, time, note, body) tuples durably, then remembers them."""
        items = [self._item(*row) for row in batch]
        placed = store.append(items)
        store.sync()
        rows = [
            [item.key.hex(), item.time, item.note.hex(), item.digest.hex(), result.place]
            for item, result in zip(items, placed, strict=True)
        ]
        self._commit({"put": rows})
        return placed

    def move(self, batch: CompactionBatch) -> None:
        self._commit({"move": [[move.digest.hex(), move.new] for move in batch.moves]})

    def forget(self, key: bytes, times: list[int]) -> None:
        self._commit({"forget": [key.hex(), times]})

    def chains(self) -> Iterator[VersionChain]:
        for key in list(self.versions):
            rows = sorted(self.versions[key], reverse=True)
            yield VersionChain(key, tuple(ChainEntry(*row, self.places[row[2]]) for row in rows))

    def live(self) -> set[int]:
        used = {row[2] for rows in self.versions.values() for row in rows}
        return {place.pack for digest, place in self.places.items() if digest in used}

    def keep(self, key: bytes, time: int) -> bool:
        return any(row[0] == time for row in self.versions.get(key, ()))

    def facts(self) -> set[tuple[bytes, int, bytes, bytes]]:
        return {(key, *row) for key, rows in self.versions.items() for row in rows}

    def _item(self, key: bytes, time: int, note: bytes, body: bytes) -> VersionItem:
        digest = sha1_digest(body)
        return VersionItem(key, time, note, digest, None if digest in self.places else body)

    def _commit(self, change: dict[str, Any]) -> None:
        if self._journal is not None:
            with self._journal.open("ab", buffering=0) as file:
                file.write(json.dumps(change).encode() + b"\n")
        self._apply(json.loads(json.dumps(change)))

    def _apply(self, change: dict[str, Any]) -> None:
        for key, time, note, digest, place in change.get("put", ()):
            row = (time, bytes.fromhex(note), bytes.fromhex(digest))
            self.versions.setdefault(bytes.fromhex(key), []).append(row)
            if place is not None:
                self.places[bytes.fromhex(digest)] = ContentPlace(*place)
        for digest, place in change.get("move", ()):
            self.places[bytes.fromhex(digest)] = ContentPlace(*place)
        if "forget" in change:
            key, times = bytes.fromhex(change["forget"][0]), change["forget"][1]
            self.versions[key] = [row for row in self.versions[key] if row[0] not in times]
