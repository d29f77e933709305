"""Bytes in packs: append-only, checked, recovered without hands, compacted while others read."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from letopis.store.backend import Backend, Disk, LocalBackend, PackDraft, WriteLease
from letopis.store.content_reader import SiteTexts
from letopis.store.pack_format import HEADER_BYTES
from letopis.store.store import CompactionEffort, DigestFunction, Store
from letopis.store.values import (
    AppendResult,
    ChainEntry,
    CompactionBatch,
    ContentMove,
    ContentPlace,
    DecodedContent,
    HighWaterMark,
    PackDamage,
    PackGone,
    PackTotals,
    VersionChain,
    VersionFact,
    VersionItem,
)

if TYPE_CHECKING:
    from letopis.store.bucket import BlockCache, Bucket
    from letopis.store.object_backend import ObjectBackend, WriterCoordination

_HOMES = {
    "BlockCache": "bucket",
    "Bucket": "bucket",
    "ObjectBackend": "object_backend",
    "WriterCoordination": "object_backend",
}

__all__ = [
    "HEADER_BYTES",
    "AppendResult",
    "Backend",
    "BlockCache",
    "Bucket",
    "ChainEntry",
    "CompactionBatch",
    "CompactionEffort",
    "ContentMove",
    "ContentPlace",
    "DecodedContent",
    "DigestFunction",
    "Disk",
    "HighWaterMark",
    "LocalBackend",
    "ObjectBackend",
    "PackDamage",
    "PackDraft",
    "PackGone",
    "PackTotals",
    "SiteTexts",
    "Store",
    "VersionChain",
    "VersionFact",
    "VersionItem",
    "WriteLease",
    "WriterCoordination",
]


def __getattr__(name: str) -> Any:
    """Object stores are imported at their first use: most archives lie in a folder."""
    if name not in _HOMES:
        raise AttributeError(f"module 'letopis.store' has no attribute {name!r}")
    return getattr(import_module(f"letopis.store.{_HOMES[name]}"), name)
