"""The archive: contents and catalogue joined in one object."""

from letopis.archive.archive import Archive, utc_now
from letopis.archive.details import CheckDetails
from letopis.archive.records import Identity, NewCapture, RecordedCapture, digest_text, identify
from letopis.archive.write_gates import CLONE_MARKER, holds_archive, is_clone
from letopis.model.rights import OWN, READ, WRITE

__all__ = [
    "CLONE_MARKER", "OWN", "READ", "WRITE", "Archive", "CheckDetails", "Identity", "NewCapture", "RecordedCapture",
    "digest_text", "holds_archive", "identify", "is_clone", "utc_now",
]  # fmt: skip
