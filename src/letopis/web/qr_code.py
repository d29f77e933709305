"""QR codes as SVG, for the secret of a second factor: ISO/IEC 18004, bytes, level L, versions 1 to 10.

Made here, since a secret is shown to nobody else, and one address is all that is ever drawn.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from letopis.errors import UsageError

_BLOCKS = (
    (7, (19,)), (10, (34,)), (15, (55,)), (20, (80,)), (26, (108,)), (18, (68, 68)), (20, (78, 78)), (24, (97, 97)),
    (30, (116, 116)), (18, (68, 68, 69, 69)),
)  # fmt: skip
"""By version: correction bytes of a block, and the data bytes of each block."""
_ALIGNED = ((), (18,), (22,), (26,), (30,), (34,), (22, 38), (24, 42), (26, 46), (28, 50))
"""By version: centres of alignment patterns beside 6."""
_MASKS = (
    lambda y, x: (y + x) % 2 == 0,
    lambda y, x: y % 2 == 0,
    lambda y, x: x % 3 == 0,
    lambda y, x: (y + x) % 3 == 0,
    lambda y, x: (y // 2 + x // 3) % 2 == 0,
    lambda y, x: y * x % 2 + y * x % 3 == 0,
    lambda y, x: (y * x % 2 + y * x % 3) % 2 == 0,
    lambda y, x: ((y + x) % 2 + y * x % 3) % 2 == 0,
)
_LEVEL_L = 1
_QUIET = 4
Matrix = list[list[int]]


def qr_svg(text: str, label: str) -> str:
    """A picture of a text with its quiet zone; `label` must be safe in an attribute. UsageError for a longer text."""
    rows = qr_matrix(text.encode())
    size = len(rows) + 2 * _QUIET
    dark = "".join(
        f"M{x + _QUIET} {y + _QUIET}h1v1h-1z" for y, row in enumerate(rows) for x, bit in enumerate(row) if bit
    )
    return (
        f'<svg class="qr" viewBox="0 0 {size} {size}" role="img" aria-label="{label}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{dark}" fill="#000"/></svg>'
    )


def qr_matrix(data: bytes) -> Matrix:
    """The rows of the code, 1 for dark, with the mask that reads best."""
    version = _version_for(data)
    bits = _bits(_codewords(data, version))
    found = [_drawn(version, bits, mask) for mask in range(len(_MASKS))]
    return min(found, key=_penalty)


def _version_for(data: bytes) -> int:
    for version, (_, blocks) in enumerate(_BLOCKS, 1):
        if len(data) + (3 if version > 9 else 2) <= sum(blocks):
            return version
    raise UsageError(f"{len(data)} bytes do not fit into a QR code that is read easily")


# Bytes and their correction


@cache
def _field() -> tuple[list[int], list[int]]:
    """Powers of 2 in GF(256) with the polynomial 0x11d, and their logarithms."""
    powers, logs, value = [0] * 512, [0] * 256, 1
    for place in range(255):
        powers[place] = powers[place + 255] = value
        logs[value] = place
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    return powers, logs


def _product(one: int, other: int) -> int:
    powers, logs = _field()
    return powers[logs[one] + logs[other]] if one and other else 0


def _correction(data: bytes, count: int) -> bytes:
    """The remainder of a block by the generator polynomial of a length."""
    generator = [1]
    for place in range(count):
        root = _field()[0][place]
        longer = [*generator, 0]
        generator = [longer[i] ^ (_product(generator[i - 1], root) if i else 0) for i in range(len(longer))]
    rest = [*data, *([0] * count)]
    for place in range(len(data)):
        lead = rest[place]
        for step, factor in enumerate(generator):
            rest[place + step] ^= _product(factor, lead)
    return bytes(rest[-count:])


def _codewords(data: bytes, version: int) -> bytes:
    """Data with its mode and its length, filled up, then corrections; blocks take turns."""
    count, sizes = _BLOCKS[version - 1]
    long = version > 9
    head = f"0100{len(data):0{16 if long else 8}b}" + "".join(f"{byte:08b}" for byte in data)
    text = head + "0" * min(4, 8 * sum(sizes) - len(head))
    text += "0" * (-len(text) % 8)
    whole = bytes(int(text[at : at + 8], 2) for at in range(0, len(text), 8))
    whole += bytes((0xEC, 0x11)[at % 2] for at in range(sum(sizes) - len(whole)))
    blocks, start = [], 0
    for size in sizes:
        blocks.append(whole[start : start + size])
        start += size
    corrections = [_correction(block, count) for block in blocks]
    turns = [block[at] for at in range(max(sizes)) for block in blocks if at < len(block)]
    return bytes(turns) + bytes(block[at] for at in range(count) for block in corrections)


def _bits(data: bytes) -> list[int]:
    return [byte >> shift & 1 for byte in data for shift in range(7, -1, -1)]


# Drawing


def _drawn(version: int, bits: list[int], mask: int) -> Matrix:
    size = 17 + 4 * version
    fixed = _patterns(version, size) | _format(mask, size) | _version_marks(version, size)
    rows = [[fixed.get((y, x), 0) for x in range(size)] for y in range(size)]
    free = ((y, x) for y, x in _zigzag(size) if (y, x) not in fixed)
    for number, (y, x) in enumerate(free):
        bit = bits[number] if number < len(bits) else 0
        rows[y][x] = bit ^ int(_MASKS[mask](y, x))
    return rows


def _patterns(version: int, size: int) -> dict[tuple[int, int], int]:
    """Finders with their white borders, timing lines, alignment patterns, the dark module."""
    fixed = {(6, at): 1 - at % 2 for at in range(size)} | {(at, 6): 1 - at % 2 for at in range(size)}
    centres = (6, *_ALIGNED[version - 1]) if version > 1 else ()
    last = size - 7
    for y, x in product(centres, repeat=2):
        if (y, x) not in ((6, 6), (6, last), (last, 6)):
            for dy, dx in product(range(-2, 3), repeat=2):
                fixed[y + dy, x + dx] = int(max(abs(dy), abs(dx)) != 1)
    for top, left in ((0, 0), (0, last), (last, 0)):
        for dy, dx in product(range(-1, 8), repeat=2):
            y, x, ring = top + dy, left + dx, max(abs(dy - 3), abs(dx - 3))
            if 0 <= y < size and 0 <= x < size:
                fixed[y, x] = int(ring in (0, 1, 3))
    return fixed | {(size - 8, 8): 1}


def _remainder(value: int, generator: int) -> int:
    """A value with the check bits of a BCH code behind it."""
    width = generator.bit_length() - 1
    rest = value << width
    while rest.bit_length() > width:
        rest ^= generator << (rest.bit_length() - width - 1)
    return value << width | rest


def _format(mask: int, size: int) -> dict[tuple[int, int], int]:
    """Level and mask, twice."""
    word = _remainder(_LEVEL_L << 3 | mask, 0x537) ^ 0x5412
    first = [(8, x) for x in (0, 1, 2, 3, 4, 5, 7, 8)] + [(y, 8) for y in (7, 5, 4, 3, 2, 1, 0)]
    second = [(size - 1 - at, 8) for at in range(7)] + [(8, size - 8 + at) for at in range(8)]
    return {place: word >> (14 - at) & 1 for places in (first, second) for at, place in enumerate(places)}


def _version_marks(version: int, size: int) -> dict[tuple[int, int], int]:
    """The version, twice, of those that say it."""
    if version < 7:
        return {}
    word, found = _remainder(version, 0x1F25), {}
    for at in range(18):
        y, x = at // 3, size - 11 + at % 3
        found[y, x] = found[x, y] = word >> at & 1
    return found


def _zigzag(size: int) -> list[tuple[int, int]]:
    """The places of data: up and down in pairs of columns from the right, without the timing column."""
    rights = [right if right > 6 else right - 1 for right in range(size - 1, 0, -2)]
    return [
        (y, x)
        for number, right in enumerate(rights)
        for y in (range(size - 1, -1, -1) if number % 2 == 0 else range(size))
        for x in (right, right - 1)
    ]


def _penalty(rows: Matrix) -> int:
    """How hard a code is to read: long runs, blocks of one colour, what looks like a finder, too dark or light."""
    size, lines = len(rows), ["".join(map(str, line)) for line in [*rows, *zip(*rows, strict=True)]]
    runs = sum(len(run) - 2 for line in lines for run in line.replace("01", "0 1").replace("10", "1 0").split()
               if len(run) >= 5)  # fmt: skip
    blocks = sum(
        rows[y][x] == rows[y][x + 1] == rows[y + 1][x] == rows[y + 1][x + 1]
        for y, x in product(range(size - 1), repeat=2)
    )
    alike = sum(
        line[at : at + 11] in ("10111010000", "00001011101") for line in lines for at in range(size - 10)
    )  # fmt: skip
    dark = 100 * sum(map(sum, rows)) / size**2
    return runs + 3 * blocks + 40 * alike + 10 * int(abs(dark - 50) // 5)
