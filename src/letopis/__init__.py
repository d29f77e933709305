"""Letopis: the web, remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from letopis.lazy import public_names

if TYPE_CHECKING:
    from letopis.archive import Archive
    from letopis.config import Settings
    from letopis.errors import (
        Busy,
        Damaged,
        DocumentTooLarge,
        LetopisError,
        NotFound,
        NotReady,
        Refused,
        Unavailable,
        UsageError,
    )
    from letopis.model import Check, Put, PutResult, Version
    from letopis.monitor.monitor import Monitor

__version__ = "0.1.0"

__all__ = [
    "Archive", "Busy", "Check", "Damaged", "DocumentTooLarge", "LetopisError", "Monitor", "NotFound", "NotReady",
    "Put", "PutResult", "Refused", "Settings", "Unavailable", "UsageError", "Version",
]  # fmt: skip

# Public names are imported at their first use: the command line starts faster without them.
__getattr__ = public_names(__name__, {
    "archive": ("Archive",),
    "config": ("Settings",),
    "errors": (
        "Busy", "Damaged", "DocumentTooLarge", "LetopisError", "NotFound", "NotReady", "Refused", "Unavailable",
        "UsageError",
    ),
    "model": ("Check", "Put", "PutResult", "Version"),
    "monitor.monitor": ("Monitor",),
})  # fmt: skip
