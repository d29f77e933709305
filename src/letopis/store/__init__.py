"""Bytes in packs: append-only, checked, recovered without hands, compacted while others read."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from letopis.store.backend import Backend, Draft, Lease
from letopis.store.layout import HEADER_BYTES
from letopis.store.local import Disk, LocalBackend
from letopis.store.sites import Sites
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
    Written,
)

if TYPE_CHECKING:
    from letopis.store.blocks import BlockCache
    from letopis.store.bucket import Bucket
    from letopis.store.objects import ObjectBackend, Sharing

_HOMES = {"BlockCache": "blocks", "Bucket": "bucket", "ObjectBackend": "objects", "Sharing": "objects"}

__all__ = [
    "HEADER_BYTES",
    "Backend",
    "BlockCache",
    "Bucket",
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
    "ObjectBackend",
    "Place",
    "Placed",
    "Sharing",
    "Sites",
    "Store",
    "Totals",
    "Written",
    "sha1_digest",
]


def __getattr__(name: str) -> Any:
    """Object stores are imported at their first use: most archives lie in a folder."""
    if name not in _HOMES:
        raise AttributeError(f"module 'letopis.store' has no attribute {name!r}")
    return getattr(import_module(f"letopis.store.{_HOMES[name]}"), name)
