"""Weights of pages: what the links between them say, kept in one small file for whoever orders answers.

Derived and never needed: the file can be deleted, and is made again from the
links. It is replaced as a whole, so a reader sees the old or the new one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

_MAGIC = b"LTPWGHT1"
_MIN_WEIGHT, _MAX_WEIGHT = 0.6, 3.0
_POWER = 0.2


@dataclass(frozen=True, slots=True)
class PageWeights:
    """Ranks by the numbers of resources, in order."""

    keys: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.float32]

    @classmethod
    def of(cls, ranks: Iterable[tuple[int, float]]) -> PageWeights:
        """The weights of these resources."""
        pairs = sorted(ranks)
        keys = np.array([key for key, _ in pairs], np.int64)
        return cls(keys, np.array([rank for _, rank in pairs], np.float32))

    def weight(self, key: int) -> float:
        """What a score is multiplied by: 1 for a page of average rank and for one that is not known."""
        at = int(np.searchsorted(self.keys, key))
        if at == len(self.keys) or self.keys[at] != key:
            return 1.0
        return float(min(_MAX_WEIGHT, max(_MIN_WEIGHT, float(self.ranks[at]) ** _POWER)))

    def save(self, folder: Path) -> None:
        """Replaces the file of an archive's folder."""
        target = _weights_file(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(_MAGIC + self.keys.astype("<i8").tobytes() + self.ranks.astype("<f4").tobytes())
        fresh.replace(target)

    @classmethod
    def load(cls, folder: Path) -> PageWeights | None:
        """The weights of an archive's folder; None when there are none, or none that make sense."""
        try:
            state = os.stat(f"{folder}/index/weights")  # Asked at every question: a Path costs four times as much.
            return _read_weights(folder, state.st_mtime_ns, state.st_size)
        except OSError:
            return None


@lru_cache(maxsize=4)
def _read_weights(folder: Path, _changed: int, _size: int) -> PageWeights | None:
    """Read once for as long as the file stays the same."""
    data = _weights_file(folder).read_bytes()
    count, rest = divmod(len(data) - len(_MAGIC), 12)
    if not data.startswith(_MAGIC) or rest or count < 0:
        return None
    keys = np.frombuffer(data, "<i8", count, len(_MAGIC))
    return PageWeights(keys, np.frombuffer(data, "<f4", count, len(_MAGIC) + 8 * count))


def _weights_file(folder: Path) -> Path:
    return folder / "index" / "weights"
