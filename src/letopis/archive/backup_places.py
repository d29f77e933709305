"""Where a backup is stored: a folder or a prefix of an object store, with packs, a catalogue and a small list of
them.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from letopis.binary import (
    exclusive_lock,
    fsync_file,
    make_private_file,
    make_private_folder,
    rename_durably,
    write_errors,
    write_parts_durably,
)
from letopis.config import Settings
from letopis.lazy import lazy
from letopis.store import Backend, LocalBackend

if TYPE_CHECKING:
    from letopis.archive import shared_gate
    from letopis.store import bucket, object_backend
else:
    shared_gate = lazy("letopis.archive.shared_gate")
    bucket, object_backend = lazy("letopis.store.bucket"), lazy("letopis.store.object_backend")

_PACKS = "packs"
_BUCKET = "s3://"
_STEP = 8 << 20


class BackupFolder:
    """A folder, preferably on another disk; files appear there complete or not at all."""

    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        self._folder = folder
        self.packs: Backend = LocalBackend(folder / _PACKS)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No other process writes to the backup meanwhile."""
        with write_errors(self._folder), exclusive_lock(self._folder / ".lock", f"backs up to {self._folder}"):
            self._folder.chmod(0o700)  # it holds accounts
            make_private_folder(self._folder / _PACKS)
            yield

    def read(self, name: str) -> bytes:
        """A small file; FileNotFoundError when there is none."""
        return (self._folder / name).read_bytes()

    def replace(self, name: str, data: bytes) -> None:
        """A small file over whatever is there, durably."""
        write_parts_durably(self._folder / name, [data])

    def store(self, name: str, file: Path) -> None:
        """A large file, durably."""
        copy_durably(file, self._folder / name)

    def fetch(self, name: str, file: Path) -> None:
        """A large file brought here; FileNotFoundError when there is none."""
        copy_durably(self._folder / name, file)

    def retire(self, packs: Collection[str], catalogue: str) -> None:
        """Removes packs and catalogues that are not named."""
        for name in set(self.packs.list()).difference(packs):
            self.packs.remove(name)
        for path in self._folder.glob("catalogue-*.sqlite*"):
            if path.name != catalogue:
                path.unlink()


class BackupPrefix:
    """A prefix of a bucket that nothing else uses."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.where = url
        self._bucket = bucket.Bucket(replace(settings.store, url=url))
        packs = bucket.Bucket(replace(settings.store, url=f"{url}/{_PACKS}"))
        # Numbers are those of the archive; nothing is read twice, so nothing is cached.
        numbers = object_backend.WriterCoordination(shared_gate.NoLease, lambda last: last + 1)
        self.packs: Backend = object_backend.ObjectBackend(packs, bucket.BlockCache(Path(), 0), numbers)

    def held(self) -> AbstractContextManager[None]:
        """An object store has no locks: of two backups at once one finds the packs of the other and is refused."""
        return nullcontext()

    def read(self, name: str) -> bytes:
        """A small file; FileNotFoundError when there is none."""
        return self._bucket.whole(name)

    def replace(self, name: str, data: bytes) -> None:
        """A small file over whatever is there, durably."""
        self._bucket.replace(name, data)

    def store(self, name: str, file: Path) -> None:
        """A large file, durably."""
        self._bucket.upload(name, file)

    def fetch(self, name: str, file: Path) -> None:
        """A large file brought here; FileNotFoundError when there is none."""
        size = self._bucket.size(name)
        with _private_anew(file).open("wb") as opened:
            for start in range(0, size, _STEP):
                opened.write(self._bucket.span(name, start, min(size, start + _STEP)))
            fsync_file(opened)

    def retire(self, packs: Collection[str], catalogue: str) -> None:
        """Removes packs and catalogues that are not named."""
        for name in set(self.packs.list()).difference(packs):
            self.packs.remove(name)
        names = self._bucket.sizes()
        self._bucket.delete([name for name in names if name.startswith("catalogue-") and name != catalogue])


BackupPlace = BackupFolder | BackupPrefix


def place_of(where: str, settings: Settings) -> BackupPlace:
    """The place of an address: `s3://bucket/prefix`, with the keys of `[store]`, or a folder."""
    return BackupPrefix(where.rstrip("/"), settings) if where.startswith(_BUCKET) else BackupFolder(Path(where))


def _private_anew(file: Path) -> Path:
    """An empty file that nobody else may read, whatever there was: a catalogue has hashes of passwords."""
    file.unlink(missing_ok=True)
    make_private_file(file)
    return file


def copy_durably(source: Path, target: Path) -> None:
    """A copy for its owner alone, under another name until it is on the disk."""
    part = _private_anew(target.with_name(f"{target.name}.part"))
    shutil.copyfile(source, part)
    with part.open("rb+") as file:
        fsync_file(file)
    rename_durably(part, target)
