"""QR codes are read back by a reader of our own that shares nothing with the writer but the standard.

Codes of 91 lengths from 1 to 271 bytes, every third, were also read by zxing-cpp 3.1.1, all of them as written.
"""

from __future__ import annotations

import re

import pytest

from letopis.errors import UsageError
from letopis.web.qr_code import qr_matrix, qr_svg

FORMATS = {
    0x77C4: 0, 0x72F3: 1, 0x7DAA: 2, 0x789D: 3, 0x662F: 4, 0x6318: 5, 0x6C41: 6, 0x6976: 7,
}  # fmt: skip
"""The fifteen bits of level L by mask, from the table of the standard."""
VERSIONS = {7: 0x07C94, 8: 0x085BC, 9: 0x09A99, 10: 0x0A4D3}
"""The eighteen bits of a version, from the table of the standard."""
BLOCKS = {1: (1, 7), 2: (1, 10), 3: (1, 15), 4: (1, 20), 5: (1, 26), 6: (2, 18), 7: (2, 20), 8: (2, 24), 9: (2, 30)}
CENTRES = {2: [6, 18], 3: [6, 22], 4: [6, 26], 5: [6, 30], 6: [6, 34], 7: [6, 22, 38], 8: [6, 24, 42], 9: [6, 26, 46]}
BLOCKS[10], CENTRES[10], CENTRES[1] = (4, 18), [6, 28, 50], []


def masked(mask: int, y: int, x: int) -> bool:
    return [
        (y + x) % 2, y % 2, x % 3, (y + x) % 3, (y // 2 + x // 3) % 2, (y * x) % 2 + (y * x) % 3,
        ((y * x) % 2 + (y * x) % 3) % 2, ((y + x) % 2 + (y * x) % 3) % 2,
    ][mask] == 0  # fmt: skip


def is_pattern(version: int, size: int, y: int, x: int) -> bool:
    corner = (y < 9 and x < 9) or (y < 9 and x >= size - 8) or (y >= size - 8 and x < 9)
    centres, last = CENTRES[version], size - 7
    aligned = any(
        abs(y - cy) < 3 and abs(x - cx) < 3
        for cy in centres
        for cx in centres
        if (cy, cx) not in ((6, 6), (6, last), (last, 6))
    )
    marked = version > 6 and ((y < 6 and size - 11 <= x < size - 8) or (x < 6 and size - 11 <= y < size - 8))
    return corner or aligned or marked or 6 in (y, x)


def times_power(value: int, power: int) -> int:
    for _ in range(power):
        value = (value << 1) ^ (0x11D if value & 0x80 else 0)
    return value


def is_whole(block: list[int], corrections: int) -> bool:
    """Whether all syndromes of a block are zero."""
    for root in range(corrections):
        total = 0
        for byte in block:
            total = times_power(total, root) ^ byte
        if total:
            return False
    return True


def read(rows: list[list[int]]) -> bytes:
    size = len(rows)
    version = (size - 17) // 4
    places = [(8, x) for x in (0, 1, 2, 3, 4, 5, 7, 8)] + [(y, 8) for y in (7, 5, 4, 3, 2, 1, 0)]
    mask = FORMATS[int("".join(str(rows[y][x]) for y, x in places), 2)]
    bits, upward, x = "", True, size - 1
    while x > 0:
        x -= x == 6
        for y in range(size - 1, -1, -1) if upward else range(size):
            for column in (x, x - 1):
                if not is_pattern(version, size, y, column):
                    bits += str(rows[y][column] ^ masked(mask, y, column))
        upward, x = not upward, x - 2
    words = [int(bits[at : at + 8], 2) for at in range(0, len(bits) // 8 * 8, 8)]
    count, corrections = BLOCKS[version]
    data = len(words) - count * corrections
    small = data // count
    blocks: list[list[int]] = [[] for _ in range(count)]
    for at in range(small * count):
        blocks[at % count].append(words[at])
    for extra in range(data - small * count):
        blocks[count - (data - small * count) + extra].append(words[small * count + extra])
    for number, block in enumerate(blocks):
        assert is_whole(block + words[data + number :: count][:corrections], corrections)
    text = "".join(f"{byte:08b}" for block in blocks for byte in block)
    head = 20 if version > 9 else 12
    assert text[:4] == "0100"
    length = int(text[4:head], 2)
    return bytes(int(text[head + at : head + at + 8], 2) for at in range(0, 8 * length, 8))


@pytest.mark.parametrize("length", [1, 17, 18, 53, 78, 106, 107, 134, 154, 155, 192, 230, 231, 271])
def test_what_was_written_is_read_back_whole(length: int) -> None:
    data = bytes((7 * place + length) % 256 for place in range(length))
    assert read(qr_matrix(data)) == data


@pytest.mark.parametrize(("length", "version"), [(150, 7), (190, 8), (225, 9), (270, 10)])
def test_larger_codes_say_their_version(length: int, version: int) -> None:
    rows = qr_matrix(b"x" * length)
    size = len(rows)
    assert size == 17 + 4 * version
    said = sum(rows[at // 3][size - 11 + at % 3] << at for at in range(18))
    assert said == VERSIONS[version] == sum(rows[size - 11 + at % 3][at // 3] << at for at in range(18))


def test_the_picture_has_a_quiet_zone_and_a_name_and_longer_texts_are_refused() -> None:
    drawn = qr_svg("otpauth://totp/Letopis:olga?secret=ABC", "QR code")
    found = re.search(r'viewBox="0 0 (\d+) \1"', drawn)
    assert found
    assert int(found[1]) == len(qr_matrix(b"otpauth://totp/Letopis:olga?secret=ABC")) + 8
    assert 'role="img" aria-label="QR code"' in drawn
    with pytest.raises(UsageError):
        qr_matrix(b"x" * 272)
