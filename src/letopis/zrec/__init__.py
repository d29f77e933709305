"""zrec: compressed sorted records with random access, brought up to date by byte ranges."""

from letopis.zrec.packing import Packed, pack
from letopis.zrec.reader import ChunkRow, Info, Reader
from letopis.zrec.records import parse_separator
from letopis.zrec.releasing import Release, describe, release
from letopis.zrec.releasing import encode as encode_release
from letopis.zrec.releasing import parse as parse_release
from letopis.zrec.releasing import path_of as release_path
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
    "describe",
    "encode_release",
    "pack",
    "parse_release",
    "parse_separator",
    "release",
    "release_path",
    "sync",
    "verify",
]
