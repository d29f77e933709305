"""zrec: compressed sorted records with random access, brought up to date by byte ranges."""

from letopis.zrec.packer import PackedFile, pack
from letopis.zrec.published_file import (
    FileSource,
    NoRanges,
    RangeSource,
    Traffic,
    ZrecRelease,
    describe_release,
    encode_release,
    parse_release,
    release_path,
    write_release,
)
from letopis.zrec.reader import ChunkRow, ZrecInfo, ZrecReader, ZrecVerdict, verify
from letopis.zrec.records import parse_separator
from letopis.zrec.transfer import SyncProgress, SyncReport, sync

__all__ = [
    "ChunkRow",
    "FileSource",
    "NoRanges",
    "PackedFile",
    "RangeSource",
    "SyncProgress",
    "SyncReport",
    "Traffic",
    "ZrecInfo",
    "ZrecReader",
    "ZrecRelease",
    "ZrecVerdict",
    "describe_release",
    "encode_release",
    "pack",
    "parse_release",
    "parse_separator",
    "release_path",
    "sync",
    "verify",
    "write_release",
]
