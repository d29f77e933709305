"""Files that verbs read and write for people: a sentence instead of an errno when it fails."""

from __future__ import annotations

import sys
from pathlib import Path

from letopis.cli.context import Given
from letopis.errors import UsageError


def read_file(file: Path) -> bytes:
    """The bytes of a file, or of standard input for `-`."""
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; give a readable file or -") from None


def write_out(given: Given, data: bytes, target: Path | None) -> None:
    """Bytes to a file or to standard output."""
    if target is None:
        given.output.bytes(data)
        return
    try:
        target.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}; give another -o") from None
