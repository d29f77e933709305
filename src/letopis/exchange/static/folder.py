"""The folder of a copy: files appear whole, what did not change is not written, what is gone is removed."""

from __future__ import annotations

import os
from pathlib import Path

from letopis.errors import NotReady, UsageError
from letopis.exchange.static.names import is_file_name

LIST = "letopis-copy.txt"
"""Names of all files of the copy; it also says that the folder is ours to write into."""
_PART = "letopis-copy.part"


class CopyFolder:
    """Takes files of one run. A run that was stopped leaves whole files, and the next one goes on from them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: set[str] = set()
        self._old = self._begin()
        self.written = 0

    def _begin(self) -> frozenset[str]:
        """Names of the run before; a folder with other things in it is not touched."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            listed = self._root / LIST
            if not listed.exists():
                if any(self._root.iterdir()):
                    raise UsageError(f"{self._root} holds other files; name a new or empty folder with -o")
                listed.touch()
            return frozenset(filter(is_file_name, listed.read_text("utf-8").splitlines()))
        except OSError as error:
            raise NotReady(f"cannot write to {self._root}: {error.strerror}; choose another folder with -o") from None

    @property
    def count(self) -> int:
        """Files of the copy so far."""
        return len(self._names)

    def write(self, name: str, data: bytes) -> None:
        """Puts a file there, unless the very same already is."""
        self._names.add(name)
        path = self._root / name
        try:
            if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
                return
            if name not in self._old:
                # Listed before it is there, so that a run which is stopped leaves nothing unknown behind.
                with (self._root / LIST).open("a", encoding="utf-8") as listed:
                    listed.write(name + "\n")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._replace(path, data)
        except OSError as error:
            raise NotReady(f"cannot write {path}: {error.strerror}; the copy can be resumed") from None
        self.written += 1

    def finish(self) -> int:
        """Removes files of earlier runs that are no longer part of the copy; answers how many."""
        gone = sorted(self._old - self._names)
        for name in gone:
            (self._root / name).unlink(missing_ok=True)
        for folder in sorted({str(Path(name).parent) for name in gone}, reverse=True):
            _remove_empty(self._root, self._root / folder)
        text = "".join(f"{name}\n" for name in sorted(self._names)).encode()
        if (self._root / LIST).read_bytes() != text:
            self._replace(self._root / LIST, text)
        return len(gone)

    def _replace(self, path: Path, data: bytes) -> None:
        """Through one file with a fixed name: a run that was killed leaves at most that one, and the next takes it."""
        part = self._root / _PART
        try:
            part.write_bytes(data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _remove_empty(root: Path, folder: Path) -> None:
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        os.rmdir(folder)
        folder = folder.parent
