"""The dictionary: which pieces of the text are worth having at hand for every chunk.

Pieces are chosen greedily: from each stretch of the text the window whose
8-byte strings occur in the most other records and are not covered yet. The best
pieces stand last, where distances are shortest. Wide windows win: they
compress well themselves, and the dictionary is part of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from backports import zstd
from numpy.typing import NDArray

from letopis.errors import Damaged
from letopis.zrec.limits import MAX_DICTIONARY, KiB, MiB

LEVEL = 22
_STRING = 8
_TABLE_BITS = 22
_WINDOW = 1024
_SAMPLES = 1500
_TABLES = 64 * KiB
_LEAST = 16 * KiB
_TRAINING = 24 * MiB
_MOST_TEXTS = 1 << 17


def train(texts: Sequence[bytes], size: int | None = None) -> bytes:
    """A dictionary for these texts, b"" when they are too few to pay for one. Same texts, same dictionary."""
    texts = _thinned(texts)
    total = sum(map(len, texts))
    size = min(MiB, total // 8) if size is None else min(size, MAX_DICTIONARY - _TABLES)
    if size < _LEAST or len(texts) < 64:
        return b""
    content = _chosen(texts, size)
    if len(content) < _STRING:
        return b""
    samples = texts[:: max(1, len(texts) // _SAMPLES)]
    raw = zstd.ZstdDict(content, is_raw=True)
    return bytes(zstd.finalize_dict(raw, samples, len(content) + _TABLES, LEVEL).dict_content)


def stored_form(dictionary: bytes) -> bytes:
    """What stands in the file."""
    return zstd.compress(dictionary, LEVEL) if dictionary else b""


def from_stored(stored: bytes) -> bytes:
    """The dictionary itself; never unpacks more than the limit."""
    if not stored:
        return b""
    try:
        opened = zstd.ZstdDecompressor()
        dictionary = opened.decompress(stored, MAX_DICTIONARY)
    except zstd.ZstdError as wrong:
        raise Damaged(f"The dictionary of the zrec file cannot be unpacked ({wrong}); get a fresh copy.") from None
    if not opened.eof or opened.unused_data or len(dictionary) < _STRING:
        raise Damaged("The dictionary of the zrec file is cut short or over the limit; get a fresh copy.")
    return dictionary


def _thinned(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Every n-th text when there is more than training needs."""
    total = sum(map(len, texts))
    step = max(1, -(-total // _TRAINING), len(texts) // _MOST_TEXTS)
    return texts[::step]


def _chosen(texts: Sequence[bytes], size: int) -> bytes:
    joined = b"\n".join(texts)
    keys = _string_keys(joined)
    worth = _worth(keys, texts)
    pieces: list[tuple[float, int, bytes]] = []
    taken, idle, turn = 0, 0, 0
    stretch = max(_WINDOW, len(keys) * _WINDOW // size)
    starts = range(0, len(keys), stretch)
    while taken < size and idle < len(starts):
        start = starts[turn % len(starts)]
        low, high, gain = _best_window(worth[keys[start : start + stretch]])
        turn, idle = turn + 1, idle + 1
        if gain > 0:
            idle = 0
            worth[keys[start + low : start + high]] = 0
            piece = joined[start + low : start + high + _STRING - 1]
            pieces.append((gain / len(piece), turn, piece))
            taken += len(piece)
    return b"".join(piece for _, _, piece in sorted(pieces))[-size:]


def _string_keys(joined: bytes) -> NDArray[np.int64]:
    """A 22-bit key for the 8 bytes at every position."""
    data = np.frombuffer(joined, np.uint8).astype(np.uint64)
    count = len(data) - _STRING + 1
    keys = np.zeros(count, np.uint64)
    for step in range(_STRING):
        keys |= data[step : step + count] << np.uint64(8 * step)
    keys *= np.uint64(0x9E3779B185EBCA87)
    keys >>= np.uint64(64 - _TABLE_BITS)
    return keys.astype(np.int64)


def _worth(keys: NDArray[np.int64], texts: Sequence[bytes]) -> NDArray[np.int64]:
    """For each key the number of records it occurs in, less one."""
    counts = np.zeros(1 << _TABLE_BITS, np.int64)
    start = 0
    for text in texts:
        end = start + len(text) + 1
        counts[np.unique(keys[start:end])] += 1
        start = end
    return np.maximum(counts - 1, 0)


def _best_window(worth: NDArray[np.int64]) -> tuple[int, int, int]:
    """(start, end, gain) of the best window, without worthless ends."""
    width = min(_WINDOW, len(worth))
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(worth)))
    gains = sums[width:] - sums[:-width]
    best = int(np.argmax(gains))
    if not gains[best]:
        return 0, 0, 0
    useful = np.flatnonzero(worth[best : best + width])
    return best + int(useful[0]), best + int(useful[-1]) + 1, int(gains[best])
