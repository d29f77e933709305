"""Pictures of pages keep every pixel, and cost little where little changed."""

from __future__ import annotations

import random
import struct
import zlib

import pytest

from letopis.fetch.page_pictures import packed_by_rows

WIDTH, LINES = 400, 40
GAP, INK = 10, 14
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def rows_of(lines: list[int]) -> bytes:
    """Lines of ink with gaps between them, as Chromium filters rows: each is what it differs by from the one above."""
    white, above, rows = b"\xff" * (3 * WIDTH), bytes(3 * WIDTH), []
    for line in lines:
        ink = random.Random(line)
        for pixels in [white] * GAP + [ink.randbytes(3 * WIDTH) for _ in range(INK)] + [white]:
            rows.append(b"\x02" + bytes((a - b) & 255 for a, b in zip(pixels, above, strict=True)))
            above = pixels
    return b"".join(rows)


def picture(rows: bytes, colour: int = 2, interlaced: int = 0) -> bytes:
    height = len(rows) // (3 * WIDTH + 1)
    head = struct.pack(">IIBBBBB", WIDTH, height, 8, colour, 0, 0, interlaced)
    packed = zlib.compress(rows)
    chunks = ((b"IHDR", head), (b"IDAT", packed[:4000]), (b"IDAT", packed[4000:]), (b"tEXt", b"k\0v"), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def chunks_of(png: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], len(SIGNATURE)
    while at < len(png):
        length, name = struct.unpack_from(">I4s", png, at)
        data = png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length)[0] == zlib.crc32(name + data)
        found.append((name, data))
        at += 12 + length
    return found


def test_a_picture_keeps_every_pixel_and_all_that_is_told_beside() -> None:
    rows = rows_of(list(range(LINES)))
    (head, data, note, end) = chunks_of(packed_by_rows(picture(rows)))
    assert zlib.decompress(data[1]) == rows
    assert [head[0], data[0], note, end[0]] == [b"IHDR", b"IDAT", (b"tEXt", b"k\0v"), b"IEND"]


def strips_of(png: bytes) -> list[bytes]:
    """What is packed by itself, by the mark that ends it."""
    return dict(chunks_of(png))[b"IDAT"].split(b"\0\0\xff\xff")


@pytest.mark.parametrize("lines", [[*range(5), 99, *range(6, LINES)], [99, *range(LINES)]], ids=["changed", "moved"])
def test_what_stays_on_a_page_stays_the_same_bytes_also_where_it_moved(lines: list[int]) -> None:
    before, after = (strips_of(packed_by_rows(picture(rows_of(one)))) for one in (list(range(LINES)), lines))
    assert len(before) >= LINES
    assert sum(strip not in before for strip in after) <= 4, "the new line, the one behind it, and the checksum"


TALLER_THAN_MEMORY = picture(rows_of([1])).replace(
    struct.pack(">II", WIDTH, GAP + INK + 1), struct.pack(">II", WIDTH, 2**32 - 1), 1
)
"""It says to have four thousand million rows."""


def test_what_is_no_plain_picture_comes_as_it_is() -> None:
    whole = picture(rows_of([1, 2]))
    strange = (
        b"",
        b"GIF89a",
        whole[:60],
        picture(rows_of([1]), interlaced=1),
        picture(rows_of([1]), colour=6),
        SIGNATURE,
        TALLER_THAN_MEMORY,
    )
    assert [packed_by_rows(one) for one in strange] == list(strange)
