"""Pictures: their size in pixels, from the first bytes of the file."""

from __future__ import annotations

import struct
from collections.abc import Callable

from letopis.extract.draft import Draft
from letopis.extract.source import Source
from letopis.model import BlockKind

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset((0x01, *range(0xD0, 0xD9)))


def read(source: Source, draft: Draft) -> None:
    """Reads a picture: a description such as `1024 x 768 pixels`."""
    size = image_size(source.body, source.content_type)
    if size is None:
        draft.warn("the picture's size could not be read")
        return
    draft.block(BlockKind.DESCRIPTION, f"{size[0]} x {size[1]} pixels")
    draft.description = f"{size[0]} x {size[1]} pixels"


def image_size(body: bytes, content_type: str) -> tuple[int, int] | None:
    """Width and height, or None for what is damaged or unknown."""
    reader = _READERS.get(content_type)
    try:
        return reader(body) if reader else None
    except (struct.error, IndexError):
        return None


def _png(body: bytes) -> tuple[int, int] | None:
    width, height = struct.unpack_from(">II", body, 16)
    return width, height


def _gif(body: bytes) -> tuple[int, int] | None:
    width, height = struct.unpack_from("<HH", body, 6)
    return width, height


def _jpeg(body: bytes) -> tuple[int, int] | None:
    """Walks the segments up to the first frame header."""
    at = 2
    while at < len(body):
        if body[at] != 0xFF:
            return None
        marker = body[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", body, at + 5)
            return width, height
        if marker == 0xFF:
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            at += 2 + max(2, struct.unpack_from(">H", body, at + 2)[0])
    return None


def _webp(body: bytes) -> tuple[int, int] | None:
    kind = body[12:16] if len(body) >= 25 else b""
    if kind == b"VP8X":
        return 1 + int.from_bytes(body[24:27], "little"), 1 + int.from_bytes(body[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(body[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", body, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_READERS: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
}
