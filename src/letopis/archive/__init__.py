"""The one object that joins contents and catalogue."""

from letopis.archive.archive import Archive, utc_now
from letopis.archive.clones import MARKER, is_clone
from letopis.archive.facts import Details, Note
from letopis.archive.formats import FORMATS
from letopis.archive.identity import Identity, digest_text, identify
from letopis.archive.recording import Arrival, Recorded

__all__ = [
    "FORMATS",
    "MARKER",
    "Archive",
    "Arrival",
    "Details",
    "Identity",
    "Note",
    "Recorded",
    "digest_text",
    "identify",
    "is_clone",
    "utc_now",
]
