"""zrec: compressed sorted records with random access, brought up to date by byte ranges."""

from letopis.zrec.chunks import parse_separator
from letopis.zrec.packer import PackedFile, pack
from letopis.zrec.published_file import (
    FileSource,
    NoRanges,
    RangeCut,
    RangeSource,
    Traffic,
    ZrecRelease,
    describe_release,
    encode_release,
    parse_release,
    release_path,
    write_release,
)
from letopis.zrec.reader import ByteView, ChunkRow, RecordChange, ZrecInfo, ZrecReader, ZrecVerdict, diff, verify
from letopis.zrec.transfer import SyncProgress, SyncReport, sync

__all__ = [
    "ByteView", "ChunkRow", "FileSource", "NoRanges", "PackedFile", "RangeCut", "RangeSource", "RecordChange",
    "SyncProgress", "SyncReport", "Traffic", "ZrecInfo", "ZrecReader", "ZrecRelease", "ZrecVerdict",
    "describe_release", "diff", "encode_release", "pack", "parse_release", "parse_separator", "release_path",
    "sync", "verify", "write_release",
]  # fmt: skip
