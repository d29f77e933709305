"""Formats that other packages bring: entry points of the group `letopis.formats`.

Most installations have none, and every crawl asks. Python's own look-up
reads and parses what all installed packages say of themselves; here the
files that could name the group are looked through for its name first.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

GROUP = "letopis.formats"
_SAID_IN = "entry_points.txt"


def installed() -> list[object]:
    """What the entry points of the group name, loaded."""
    if not _may_be_any():
        return []
    from importlib.metadata import entry_points  # noqa: PLC0415 - most installations never come here

    return [point.load() for point in entry_points(group=GROUP)]


def _may_be_any() -> bool:
    """False when no package names the group, as far as packages lie in folders."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True  # it knows of packages that lie in no folder
    return any(map(_named_in, sys.path))


def _named_in(place: str) -> bool:
    """Whether a package of a place names the group; of what is no folder nothing is known."""
    try:
        names = os.listdir(place or ".")
    except OSError:
        return os.path.isfile(place)
    return any(_names_group(os.path.join(place, name, _SAID_IN)) for name in names if _is_about_package(name))


def _is_about_package(name: str) -> bool:
    return name.lower().endswith((".dist-info", "egg-info"))


def _names_group(file: str) -> bool:
    try:
        with open(file, "rb") as said:
            return GROUP.encode() in said.read()
    except OSError:
        return False
