"""Archives on media that cannot be written to: a disc, a snapshot, a share of somebody else.

Packs are read where they lie. Catalogue and indexes are opened for writing even by readers (SQLite recovers its log,
an index follows the record), so a reader works on a copy of them that goes with it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from letopis.catalog.dialect import Sqlite
from letopis.errors import NotReady
from letopis.lazy import lazy

if TYPE_CHECKING:
    import shutil
    import tempfile
else:
    shutil, tempfile = lazy("shutil"), lazy("tempfile")  # most archives can be written to

_PACKS = "packs"
_SPARE = 16 << 20


def is_on_read_only_medium(folder: Path) -> bool:
    """Whether an archive lies there that this process cannot write to."""
    return Sqlite.file_in(folder).is_file() and not os.access(folder, os.W_OK)


def copy_of_read_only(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder with all of the archive but its packs, to which it leads; NotReady where there is no room for it."""
    files = [path for path in folder.rglob("*") if path.is_file() and _PACKS not in path.relative_to(folder).parts[:1]]
    needed = sum(path.stat().st_size for path in files) + _SPARE
    scratch = tempfile.TemporaryDirectory(prefix="letopis-", ignore_cleanup_errors=True)
    if shutil.disk_usage(scratch.name).free < needed:
        scratch.cleanup()
        raise NotReady(
            f"{folder} is on a read-only medium, and its catalogue needs {needed >> 20} MiB of temporary space; "
            "set TMPDIR to a folder with room for it"
        )
    for path in files:
        target = Path(scratch.name) / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (Path(scratch.name) / _PACKS).symlink_to((folder / _PACKS).absolute(), target_is_directory=True)
    return scratch
