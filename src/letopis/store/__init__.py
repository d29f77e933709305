"""Bytes in packs: append-only, checked, recovered without hands, compacted while others read."""

from typing import TYPE_CHECKING

from letopis.lazy import homes, public_names
from letopis.store.backend import Backend, Disk, LocalBackend, WriteLease
from letopis.store.content_reader import SiteTexts
from letopis.store.pack_format import HEADER_BYTES
from letopis.store.store import Store
from letopis.store.values import (
    AppendResult,
    ChainEntry,
    CompactionBatch,
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

_HOMES = homes({
    "bucket": ("BlockCache", "Bucket"),
    "object_backend": ("ObjectBackend", "WriterCoordination"),
})  # fmt: skip

__all__ = [
    "HEADER_BYTES", "AppendResult", "Backend", "BlockCache", "Bucket", "ChainEntry", "CompactionBatch",
    "ContentPlace", "DecodedContent", "Disk", "HighWaterMark", "LocalBackend", "ObjectBackend", "PackDamage",
    "PackGone", "PackTotals", "SiteTexts", "Store", "VersionChain", "VersionFact", "VersionItem", "WriteLease",
    "WriterCoordination",
]  # fmt: skip

# Object stores are imported at their first use: most archives lie in a folder.
__getattr__ = public_names(__name__, _HOMES)
