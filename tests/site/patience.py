"""Waiting for what another thread or process does: as long as it takes on a busy machine, never longer than it must."""

from __future__ import annotations

import time
from collections.abc import Callable

from letopis.config import CaptureSettings

_PATIENCE = 300.0
UNHURRIED = CaptureSettings(load=120.0, quiet=60.0)
"""How long a browser may take for a page and for what it asks for: pages that behave are there much sooner."""
UNHURRIED_COMMANDS = {"LETOPIS_CAPTURE_LOAD": "120", "LETOPIS_CAPTURE_QUIET": "60"}
"""The same for commands, as their environment tells it."""


def until(holds: Callable[[], bool]) -> None:
    """Returns as soon as it holds; fails where it does not within five minutes."""
    end = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.01)
