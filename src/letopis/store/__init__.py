"""Bytes in packs: append-only, checked, recovered without hands, compacted while others read."""

from letopis.store.backend import Backend, Draft, Lease
from letopis.store.local import Disk, LocalBackend
from letopis.store.store import Effort, Identity, Store, sha1_digest
from letopis.store.values import (
    Chain,
    Compacted,
    Decoded,
    Entry,
    Fact,
    Finding,
    Item,
    Move,
    Moved,
    Place,
    Placed,
    Totals,
)

__all__ = [
    "Backend",
    "Chain",
    "Compacted",
    "Decoded",
    "Disk",
    "Draft",
    "Effort",
    "Entry",
    "Fact",
    "Finding",
    "Identity",
    "Item",
    "Lease",
    "LocalBackend",
    "Move",
    "Moved",
    "Place",
    "Placed",
    "Store",
    "Totals",
    "sha1_digest",
]
