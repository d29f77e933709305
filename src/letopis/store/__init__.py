"""Bytes in packs: append-only, checked, recovered automatically, compacted while others read."""

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
    Misnamed,
    PackDamage,
    PackGone,
    PackTotals,
    VersionChain,
    VersionFact,
    VersionItem,
)

__all__ = [
    "HEADER_BYTES", "AppendResult", "Backend", "ChainEntry", "CompactionBatch", "ContentPlace", "DecodedContent",
    "Disk", "HighWaterMark", "LocalBackend", "Misnamed", "PackDamage", "PackGone", "PackTotals", "SiteTexts", "Store",
    "VersionChain", "VersionFact", "VersionItem", "WriteLease",
]  # fmt: skip
