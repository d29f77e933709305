"""Waiting for what another thread or process does: as long as it takes on a busy machine, never longer than it must."""

from __future__ import annotations

import time
from collections.abc import Callable

_PATIENCE = 300.0


def until(holds: Callable[[], bool]) -> None:
    """Returns as soon as it holds; fails where it does not within five minutes."""
    end = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.01)
