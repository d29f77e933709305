"""A folder that somebody else has written: nothing outside it is read, and nothing without a bound."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from letopis.exchange.codings import MAX_BODY
from letopis.exchange.report import ImportReport

_SPECIAL = "neither a file nor a folder"
_OUT = "a link that leads out of the folder"


class Folder:
    """Files by their path under one root; what is refused is told to the report."""

    def __init__(self, root: Path, report: ImportReport) -> None:
        self.root = root
        self._real = root.resolve()
        self._report = report

    def files(self, under: str = "", *, skip: frozenset[str] = frozenset()) -> Iterator[str]:
        """Paths of all files, sorted; folders behind links are not entered, nor those named in `skip`."""
        waiting = [under]
        while waiting:
            folder = waiting.pop()
            entries = self._entries(folder)
            below = []
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    below += [] if entry.name in skip else [path]
                else:
                    yield path
            waiting += reversed(below)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as found:
                return sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._report.refuse(f"the folder cannot be read ({error.strerror})", folder or str(self.root))
            return []

    def has(self, path: str) -> bool:
        """Whether a plain file lies here, inside the folder."""
        return isinstance(self._facts(path), os.stat_result)

    def mtime(self, path: str) -> float:
        """When the file was last written, in seconds; 0 when there is none."""
        facts = self._facts(path)
        return facts.st_mtime if isinstance(facts, os.stat_result) else 0.0

    def read(self, path: str, limit: int = MAX_BODY) -> bytes | None:
        """The bytes of a file; None, and a word in the report, when it is refused."""
        facts = self._facts(path)
        if isinstance(facts, str):
            self._report.refuse(facts, path)
            return None
        if facts.st_size > limit:
            self._report.refuse(f"larger than {limit // 1024**2} MiB", path)
            return None
        try:
            with (self._real / path).open("rb") as file:
                return file.read(limit)
        except OSError as error:
            self._report.refuse(f"it cannot be read ({error.strerror})", path)
            return None

    def _facts(self, path: str) -> os.stat_result | str:
        """Facts of a plain file inside the folder, or why it is not one. A pipe would be waited for for ever."""
        try:
            real = Path(os.path.realpath(self._real / path, strict=True))
            facts = real.stat()
        except (OSError, ValueError) as error:
            return f"it cannot be read ({getattr(error, 'strerror', None) or error})"
        if not real.is_relative_to(self._real):
            return _OUT
        return facts if stat.S_ISREG(facts.st_mode) else _SPECIAL
