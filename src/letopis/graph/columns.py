"""Columns of numbers and of texts: in memory as arrays, on disk as a few bytes an entry.

    columns = count u16, column*
    column  = kind u8 (a letter of KINDS), packed size u32, packed bytes

Numbers are packed as differences of neighbours, their bytes sorted by
significance, and then zstd: runs and slowly growing values vanish. Texts are
a column of lengths beside their UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as StructError
from typing import Any

import numpy as np
import numpy.typing as npt
from backports import zstd

from letopis.errors import Damaged

Array = npt.NDArray[np.generic]
Ints = npt.NDArray[np.int64]

LEVEL = 6
_NARROW = np.iinfo(np.uint32).max
"""Bytes of texts whose places still fit four bytes."""
KINDS: dict[bytes, np.dtype[Any]] = {
    b"b": np.dtype("<u1"),
    b"h": np.dtype("<i2"),
    b"i": np.dtype("<i4"),
    b"q": np.dtype("<i8"),
}
_LETTER = {kind: letter[0] for letter, kind in KINDS.items()}
_COUNT = Struct("<H")
_HEAD = Struct("<BI")


class Texts:
    """Many short texts in one run of bytes; made into `str` only when asked for."""

    __slots__ = ("_bounds", "_data")

    def __init__(self, data: bytes, bounds: Ints) -> None:
        self._data = data
        # A million addresses, titles, types and languages: four bytes saved at each.
        self._bounds = bounds.astype(np.uint32) if len(data) <= _NARROW else bounds

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """A column of these texts."""
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        return cls._joined(b"".join(parts), np.fromiter(map(len, parts), np.int64, len(parts)))

    @classmethod
    def _joined(cls, data: bytes, lengths: Ints) -> Texts:
        bounds = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=bounds[1:])
        if int(bounds[-1]) != len(data) or (lengths < 0).any():
            raise Damaged("a column of texts does not fit its lengths; delete the folder of the index")
        return cls(data, bounds)

    @classmethod
    def join(cls, parts: Sequence[Texts]) -> Texts:
        """The texts of all parts in order."""
        if len(parts) == 1:
            return parts[0]
        return cls._joined(b"".join(part._data for part in parts), np.concatenate([part.lengths for part in parts]))

    @property
    def lengths(self) -> Ints:
        """Bytes of each text."""
        return np.diff(self._bounds).astype(np.int64)

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return len(self._data) + self._bounds.nbytes

    @property
    def data(self) -> bytes:
        """All bytes in a row."""
        return self._data

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, index: int) -> str:
        return self._data[self._bounds[index] : self._bounds[index + 1]].decode("utf-8", "surrogatepass")


def pack(columns: Sequence[Array | Texts]) -> bytes:
    """Columns as bytes."""
    out = []
    for column in columns:
        if isinstance(column, Texts):
            out += [_packed(column.lengths.astype("<i4")), _packed(np.frombuffer(column.data, "<u1"), delta=False)]
        else:
            out.append(_packed(column))
    return _COUNT.pack(len(out)) + b"".join(out)


def unpack(data: bytes) -> list[Array]:
    """The arrays of `pack`, a column of texts as its lengths and its bytes; Damaged for anything else."""
    try:
        (count,) = _COUNT.unpack_from(data)
        at, found = _COUNT.size, []
        for _ in range(count):
            letter, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            found.append(_unpacked(KINDS[bytes((letter,))], data[at : at + size]))
            at += size
    except (KeyError, ValueError, StructError, zstd.ZstdError):
        raise Damaged("a frame of the index of links cannot be read; delete its folder, it is built again") from None
    return found


def texts(lengths: Array, data: Array) -> Texts:
    """A column of texts out of its two arrays."""
    return Texts._joined(data.tobytes(), lengths.astype(np.int64))


def _packed(array: Array, *, delta: bool = True) -> bytes:
    kind = array.dtype.newbyteorder("<")
    plain = np.ascontiguousarray(array, kind)
    if delta and len(plain):
        plain = np.concatenate([plain[:1], np.diff(plain)]).astype(kind)
    rows = plain.view("<u1").reshape(len(plain), kind.itemsize).T
    packed = zstd.compress(bytes([delta]) + np.ascontiguousarray(rows).tobytes(), LEVEL)
    return _HEAD.pack(_LETTER[kind], len(packed)) + packed


def _unpacked(kind: np.dtype[Any], data: bytes) -> Array:
    raw = zstd.decompress(data)
    rows = np.frombuffer(raw, "<u1", offset=1).reshape(kind.itemsize, -1)
    plain: Array = np.ascontiguousarray(rows.T).reshape(-1).view(kind)
    if not raw[0]:
        return plain
    # Differences wrap around like the sums that undo them.
    return np.cumsum(plain, dtype=kind)
