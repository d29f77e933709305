"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from letopis.errors import NotReady, UsageError


@contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete and durable; whatever stops the work leaves the old one.

    A folder is refused at once; pipes and devices are written as they are.
    """
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file with -o")
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    part = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        with part.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise NotReady(f"cannot write {target}: {error.strerror or error}; choose another place with -o") from error
    finally:
        part.unlink(missing_ok=True)
