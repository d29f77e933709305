"""An archive begins once: packs without their catalogue are an archive that lost it, never a new one.

A catalogue made beside them would know none of their versions, and the next
compaction would give their room back.
"""

from __future__ import annotations

from collections.abc import Callable

from letopis.errors import Damaged
from letopis.store import HEADER_BYTES, Backend


class NoCatalogue(Damaged):
    """Packs are there and their catalogue is not."""


def refuse_packs(backend: Backend, begun: Callable[[], bool] = lambda: False) -> None:
    """NoCatalogue when there are packs already where a catalogue is about to be made.

    `begun` is asked after the packs: whether a catalogue has come meanwhile.
    """
    if any(size > HEADER_BYTES for size in backend.list().values()) and not begun():
        raise NoCatalogue(
            f"{backend.where} holds packs but their catalogue is gone; put its file back, "
            "or build it anew from the packs with 'letopis verify --repair'"
        )
