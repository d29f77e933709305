"""zrec: compressed sorted records with random access, brought up to date by byte ranges."""

from letopis.zrec.packing import Packed, pack
from letopis.zrec.reader import ChunkRow, Info, Reader
from letopis.zrec.records import parse_separator
from letopis.zrec.releasing import Release, release
from letopis.zrec.source import FileSource, NoRanges, RangeSource, Traffic
from letopis.zrec.syncing import Progress, SyncReport, sync
from letopis.zrec.verifying import Verdict, verify

__all__ = [
    "ChunkRow",
    "FileSource",
    "Info",
    "NoRanges",
    "Packed",
    "Progress",
    "RangeSource",
    "Reader",
    "Release",
    "SyncReport",
    "Traffic",
    "Verdict",
    "pack",
    "parse_separator",
    "release",
    "sync",
    "verify",
]
