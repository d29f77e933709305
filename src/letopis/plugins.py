"""What other packages add to Letopis: formats, readers of sources, compression methods, verbs, simulations.

Each is an entry point of a group of its own. Few installations have any, and some questions come at every start: the
files that could name the group are looked through for its name first, which is far cheaper than Python's own look-up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from letopis.errors import MissingExtra
from letopis.lazy import lazy

if TYPE_CHECKING:
    from importlib import metadata as package_metadata
    from importlib.metadata import EntryPoint
else:
    package_metadata = lazy("importlib.metadata")

_ENTRY_POINTS_FILE = "entry_points.txt"


def entry_points_of(group: str) -> Sequence[EntryPoint]:
    """The entry points of a group, not loaded yet: their names cost nothing more."""
    if not _may_have_entry_points(group.encode()):
        return ()
    return tuple(package_metadata.entry_points(group=group))


def load_entry_point(group: str, name: str, package: str) -> Any:
    """What one entry point names; MissingExtra says which package to install when it is not there."""
    for point in entry_points_of(group):
        if point.name == name:
            return point.load()
    raise MissingExtra(f"'{name}' needs another package: 'pip install {package}'")


def _may_have_entry_points(group: bytes) -> bool:
    """False when no package names the group, as far as packages lie in folders."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True  # it knows of packages that lie in no folder
    return any(_is_named_in(place, group) for place in sys.path)


def _is_named_in(place: str, group: bytes) -> bool:
    """Whether a package of a place names the group; of what is no folder nothing is known."""
    try:
        names = os.listdir(place or ".")
    except OSError:
        return os.path.isfile(place)
    files = (os.path.join(place, name, _ENTRY_POINTS_FILE) for name in names if _is_about_package(name))
    return any(_names_group(file, group) for file in files)


def _is_about_package(name: str) -> bool:
    return name.lower().endswith((".dist-info", "egg-info"))


def _names_group(file: str, group: bytes) -> bool:
    try:
        with open(file, "rb") as text:
            return group in text.read()
    except OSError:
        return False
