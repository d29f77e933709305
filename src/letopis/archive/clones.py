"""What makes an archive a clone: it follows another one, and records nothing of its own."""

from __future__ import annotations

import json
from pathlib import Path

from letopis.errors import Refused

MARKER = Path("replica") / "clone.json"
"""Present in the folder of every clone; tells where it came from."""


def is_clone(folder: Path) -> bool:
    """Whether the archive follows another one."""
    return (folder / MARKER).exists()


def refuse_clone(folder: Path) -> None:
    """`Refused` when the archive is a clone."""
    if is_clone(folder):
        raise Refused(
            f"this archive is a clone of {_origin(folder)} and takes in only what 'letopis pull {folder}' brings; "
            f"'letopis pull {folder} --detach' makes it an archive of its own"
        )


def _origin(folder: Path) -> str:
    try:
        return str(json.loads((folder / MARKER).read_bytes())["origin"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another archive"
