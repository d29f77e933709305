"""When the web of a graph changed: between two such times every date shows the same."""

from __future__ import annotations

import numpy as np

from letopis.graph.graph import Graph

NEVER = -1
"""A time before everything."""


class Moments:
    """The times at which anything in a graph begins to hold."""

    def __init__(self, graph: Graph) -> None:
        self._times = np.sort(np.concatenate([graph.history.times, graph.states.times]))

    def last(self, time: int) -> int:
        """The last of them up to a time: `as_of` shows the same there; NEVER when nothing was known yet."""
        place = int(np.searchsorted(self._times, time, side="right"))
        return int(self._times[place - 1]) if place else NEVER
