"""Pictures of pages: taken by Chromium, packed so that what looks the same is the same bytes, and compared.

Chromium packs a PNG as one stream: one changed word changes every byte behind it, and ten pictures of a page cost ten
times the bytes of one. Here the rows between two gaps of a page are packed by themselves, so that the store finds
again what stayed, also where it moved up or down.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from letopis.fetch.devtools import DevtoolsError, DevtoolsSession

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LEVEL = 3
"""The quickest that still packs well; Chromium's own quick way is as quick, and larger by a tenth."""
_HEAD = b"\x78\x5e"
"""Of a stream of zlib that was packed quickly."""
_SAME = b"\2"
"""Begins a row that contains only what differs from the row above."""
_LEAST_ROWS = 12
_MOST_ROWS = 96
_PIECE = 8192
"""Of packed bytes at once: fifteen million bytes in one piece of memory cost as much as to unpack them."""
_CHECKSUM = 4
"""Bytes of it, at the end of a stream of zlib."""
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel, by the colour type of PNG."""
COUNT_PIXELS = """async ([one, other]) => {
  const read = async (text) => {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes]));
    const { width, height } = picture;
    const pane = new OffscreenCanvas(width, height).getContext("2d");
    pane.drawImage(picture, 0, 0);
    return { width, height, data: pane.getImageData(0, 0, width, height).data };
  };
  const [a, b] = [await read(one), await read(other)];
  const width = Math.max(a.width, b.width), height = Math.max(a.height, b.height);
  let same = 0;
  for (let y = 0; y < Math.min(a.height, b.height); y += 1)
    for (let x = 0; x < Math.min(a.width, b.width); x += 1) {
      const i = 4 * (y * a.width + x), j = 4 * (y * b.width + x);
      same += Math.abs(a.data[i] - b.data[j]) <= 16 && Math.abs(a.data[i + 1] - b.data[j + 1]) <= 16 &&
        Math.abs(a.data[i + 2] - b.data[j + 2]) <= 16;
    }
  return same / (width * height);
}"""
"""The share of pixels of two pictures in base64 that look the same; what only one of them has counts as different."""


_TRIES = 5
"""How often Chromium is asked for a picture that it fails to take."""


async def take_screenshot(session: DevtoolsSession, kind: str, most_height: int, scale: float) -> bytes:
    """The whole page up to a height of its own pixels, drawn at a scale, as PNG or WebP; the page does not notice.

    A PNG is packed in a hurry: what is kept is packed again, which takes as long as good compression by Chromium.
    """
    size = (await session.send("Page.getLayoutMetrics"))["cssContentSize"]
    place = {"x": 0, "y": 0, "width": max(1, min(size["width"], 10_000)), "scale": max(0.1, min(scale, 1))}
    asked: dict[str, object] = {"format": kind, "clip": place | {"height": min(max(1, size["height"]), most_height)}}
    asked |= {"quality": 75} if kind == "webp" else {"optimizeForSpeed": True}
    for _ in range(_TRIES - 1):
        with suppress(DevtoolsError):  # about one in a hundred, of a page that is just being drawn
            return b64decode((await session.send("Page.captureScreenshot", asked))["data"])
    return b64decode((await session.send("Page.captureScreenshot", asked))["data"])


def width_of(picture: bytes) -> int:
    """Of a PNG; 0 for what is none."""
    return int.from_bytes(picture[16:20]) if picture.startswith(_SIGNATURE) else 0


def packed_by_rows(picture: bytes) -> bytes:
    """The same PNG, pixel for pixel, with rows between gaps packed by themselves; what is no plain PNG as it is."""
    try:
        chunks = list(_chunks(picture))
        width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
        row = 1 + (width * depth * _CHANNELS[colour] + 7) // 8
        stream = b"".join(data for name, data in chunks if name == b"IDAT")
        packed = b"" if interlaced else _packed(stream, row, row * height)
    except (struct.error, zlib.error, KeyError, IndexError, ValueError):
        return picture
    if interlaced:
        return picture
    before = [chunk for chunk in chunks[: _first_data(chunks)] if chunk[0] != b"IDAT"]
    behind = [chunk for chunk in chunks[_first_data(chunks) :] if chunk[0] != b"IDAT"]
    return _SIGNATURE + b"".join(_chunk(*one) for one in (*before, (b"IDAT", packed), *behind))


def _packed(stream: bytes, row: int, size: int) -> bytes:
    """The same rows; their checksum is that of the stream, so nobody needs to count it again."""
    packer, gap = zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS), _SAME + bytes(row - 1)
    parts = [_HEAD]
    for rows, start, end in _strips(_unpacked(stream, size), row):
        ink = end
        while ink > start and rows.endswith(gap, start, ink):
            ink -= row
        parts += [packer.compress(memoryview(rows)[start:ink]), packer.flush(zlib.Z_FULL_FLUSH)]
        parts += [_packed_gap(gap, (end - ink) // row)] if ink < end else []
    return b"".join((*parts, packer.flush(), stream[-_CHECKSUM:]))


def _unpacked(stream: bytes, size: int) -> Iterator[bytes]:
    """The rows in pieces that stay in the cache of the processor; ValueError unless they are as many bytes as said."""
    unpacker, left = zlib.decompressobj(wbits=-zlib.MAX_WBITS), size
    for at in range(len(_HEAD), len(stream), _PIECE):
        piece = unpacker.decompress(stream[at : at + _PIECE])
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left or not unpacker.eof:
        raise ValueError("not the rows of this picture")


@lru_cache(500)
def _packed_gap(row: bytes, count: int) -> bytes:
    """Rows without ink, which are half of many a page; pages have few gaps of different heights."""
    packer = zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS)
    return packer.compress(row * count) + packer.flush(zlib.Z_FULL_FLUSH)


def _strips(pieces: Iterator[bytes], row: int) -> Iterator[tuple[bytes, int, int]]:
    """Spans of rows that end in a gap: at a row that equals the one above, which its filter writes as zeros."""
    gap, rows, start, end = bytes(row - 1), b"", 0, _LEAST_ROWS * row
    for piece in pieces:
        rows, start, end = rows[start:] + piece, 0, end - start
        while end + row <= len(rows):  # the row behind it decides
            is_gap = rows.endswith(gap, start, end) and not rows.startswith(gap, end + 1)
            if is_gap or end - start >= _MOST_ROWS * row:
                yield rows, start, end
                start, end = end, end + (_LEAST_ROWS - 1) * row
            end += row
    yield rows, start, len(rows)


def _first_data(chunks: list[tuple[bytes, bytes]]) -> int:
    return next((at for at, chunk in enumerate(chunks) if chunk[0] == b"IDAT"), len(chunks))


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not picture.startswith(_SIGNATURE):
        raise ValueError("no PNG")
    at = len(_SIGNATURE)
    while at < len(picture):
        length, name = struct.unpack_from(">I4s", picture, at)
        yield name, picture[at + 8 : at + 8 + length]
        at += 12 + length


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
