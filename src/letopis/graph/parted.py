"""PageRank with the links spread over the workers of a Dask cluster.

Links are cut into parts by their sources. A part goes to one worker once;
each step sends the shares of its sources there and brings back what its
targets get. A worker that dies takes the parts it held with it: the step is
done again with all parts sent to those that are left.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import Any

import numpy as np

from letopis.graph.ranking import Flow, MakeFlow, Ranks
from letopis.graph.segment import Int32

_LEAST_LINKS = 100_000
"""Fewer are not worth a part of their own."""
_LOSSES = 8
"""Steps in a row that may lose a worker."""


class Part:
    """The links of a range of sources."""

    def __init__(self, first: int, sources: Int32, targets: Int32) -> None:
        self.first = first
        self.last = int(sources[-1]) + 1 if len(sources) else first
        self._sources = (sources - first).astype(np.int32)
        self._into, self._places = np.unique(targets, return_inverse=True)

    def flow(self, shares: Ranks) -> tuple[Int32, Ranks]:
        """Targets and what they get; `shares` are those of the part's own sources."""
        given = np.bincount(self._places, weights=shares[self._sources], minlength=len(self._into))
        return self._into, given.astype(np.float64, copy=False)


def _flow_of(part: Part, shares: Ranks) -> tuple[Int32, Ranks]:
    return part.flow(shares)


def _summed(answers: Iterable[tuple[Int32, Ranks]], count: int) -> Ranks:
    total = np.zeros(count)
    for into, given in answers:
        total[into] += given
    return total


def parts_of(sources: Int32, targets: Int32, count: int) -> list[Part]:
    """About equally many links each; all links of a source stay together."""
    if not len(sources):
        return []
    cuts = np.linspace(0, len(sources), count + 1).astype(np.int64)[:-1]
    bounds = [*np.unique(np.searchsorted(sources, sources[cuts], side="left")).tolist(), len(sources)]
    return [Part(int(sources[low]), sources[low:high], targets[low:high]) for low, high in pairwise(bounds)]


def flow_on(client: Any, workers: int) -> MakeFlow:
    """The flow along links on a cluster; `client` is a `distributed.Client`."""

    def make(sources: Int32, targets: Int32, count: int) -> Flow:
        wanted = max(1, min(2 * workers, len(sources) // _LEAST_LINKS))
        parts = parts_of(sources, targets, wanted)
        held = client.scatter(parts, hash=False)

        def gathered(shares: Ranks) -> list[tuple[Int32, Ranks]]:
            tasks = [
                client.submit(_flow_of, each, shares[part.first : part.last], pure=False)
                for each, part in zip(held, parts, strict=True)
            ]
            answers: list[tuple[Int32, Ranks]] = client.gather(tasks)
            return answers

        def flow(shares: Ranks) -> Ranks:
            nonlocal held
            for _ in range(_LOSSES):
                try:
                    return _summed(gathered(shares), count)
                except CancelledError:
                    held = client.scatter(parts, hash=False)
            return _summed(gathered(shares), count)

        return flow

    return make
