"""Names in a published folder and in a clone: the only place they are spelled."""

from __future__ import annotations

import re
from pathlib import Path

from letopis.archive import MARKER

RELEASE = "release.json"
PACKS = "packs"
FIRST_OWN_PACK = 1 << 23
"""Logs of a clone's own are numbered from here on; packs of its origin lie below."""

_PACK_FILE = re.compile(r"(\d{8})\.(?:pack|log\.(\d{1,15}))")
_INDEX_FILE = re.compile(r"index-(\d{8,12})\.zrec")


def index_name(serial: int) -> str:
    """The index of a release."""
    return f"index-{serial:08d}.zrec"


def is_index_name(name: str) -> bool:
    """Whether a release may name this file as its index: never a path that leads elsewhere."""
    return _INDEX_FILE.fullmatch(name) is not None


def segment_name(log: str, start: int) -> str:
    """The part of a log that begins at an offset."""
    return f"{log}.{start}"


def pack_file(name: str) -> tuple[int, int] | None:
    """Number of the pack and offset of the first byte that a published name stands for; None for other names."""
    found = _PACK_FILE.fullmatch(name)
    return (int(found[1]), int(found[2] or 0)) if found else None


def local_name(published: str) -> str:
    """The name of the pack in an archive: segments of a log are joined again."""
    return ".".join(published.split(".")[:2])


class CloneFolder:
    """Where a clone keeps what it knows of its origin."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.packs = archive / PACKS
        self.marker = archive / MARKER
        self.folder = self.marker.parent
        self.release = self.folder / RELEASE
        self.index = self.folder / "index.zrec"
        self.unsettled = self.folder / "unsettled"
        self.incoming = self.folder / "incoming.zrec"
        self.parts = self.folder / "parts"
        self.lock = self.folder / "lock"
