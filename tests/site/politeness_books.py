"""Politeness books for tests that have no server to be polite to."""

from __future__ import annotations

from letopis.look.politeness import Politeness, PolitenessBook
from letopis.look.slots import MemorySlots


def free_book() -> PolitenessBook:
    """A book without any delay, which nobody shares."""
    return PolitenessBook(MemorySlots(), Politeness(delay=0.0, ip_delay=0.0), crawls=False)
