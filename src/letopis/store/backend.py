"""Storage of packs: what the store requires of a backend, packs in a folder, and copying packs between two backends.

In a folder every write is followed by the fsync that makes it durable. One conformance suite tests every backend.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from letopis.binary import make_private_folder
from letopis.errors import Busy, NotReady
from letopis.tuples import NamedTuple


class PackDraft(Protocol):
    """An object that is being written; it is invisible before `commit`."""

    def write(self, data: bytes) -> None:
        """Adds bytes at the end."""

    def commit(self) -> None:
        """Makes the whole object durable and visible; fails if the name is taken."""

    def discard(self) -> None:
        """Discards it; harmless after commit."""


class WriteLease(Protocol):
    """The right to write, held until it is released or the process ends."""

    def release(self) -> None:
        """Releases the right."""


class Backend(Protocol):
    """A flat set of named objects.

    Objects are of two sorts: finished ones, which appear whole by `create(...).commit()` and never change, and logs,
    which one writer extends by `append`. An object store keeps a log as a series of create-only segments named by their
    offset; readers do not see the difference.

    Failures of the machine are NotReady, a second writer is Busy, and a name that does not exist is FileNotFoundError.
    """

    @property
    def where(self) -> str:
        """The place as shown in messages."""

    @property
    def torn_appends(self) -> bool:
        """Whether a crash during `append` may leave a part of the data."""

    @property
    def shared(self) -> bool:
        """Whether several writers work at once, each with logs that no other writer extends."""

    def lease(self) -> WriteLease:
        """Takes the right to write; Busy if another process has it."""

    def number(self, last: int) -> int:
        """A pack number above `last` that no pack ever had."""

    def list(self, above: int = 0) -> Mapping[str, int]:
        """Names and sizes of all finished objects and logs whose numbers are above one."""

    def find(self, pack: int) -> str | None:
        """The name of the finished object or log of a number, without reading others."""

    def size(self, name: str) -> int:
        """Bytes of a finished object or log; FileNotFoundError when it is gone."""

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer only at the end of the object."""

    def append(self, name: str, offset: int, data: bytes) -> None:
        """Adds bytes to a log whose size is `offset`; creates it at 0. Durable only after `sync`."""

    def sync(self, name: str) -> None:
        """Returns when everything appended to the log, and its name, would survive a power cut."""

    def cut(self, name: str, length: int) -> None:
        """Truncates a log durably, and makes its name durable; used only to undo what was never acknowledged."""

    def create(self, name: str) -> PackDraft:
        """Begins a finished object."""

    def remove(self, name: str) -> None:
        """Removes an object permanently before it returns; a missing one is no error."""

    def remark(self, name: str, data: bytes) -> None:
        """Replaces a small object that is not listed. A crash may lose or tear it: it has its own checksum."""

    def recall(self, name: str) -> bytes:
        """The bytes of `remark`, empty when there are none."""

    def sweep(self) -> None:
        """Removes the remains of killed drafts; only the holder of the lease calls it."""

    def forget(self, name: str) -> None:
        """Drops whatever is cached about an object."""

    def close(self) -> None:
        """Closes files and connections."""


_FINISHED = ".pack"
_LISTED = (".log", _FINISHED)
_PART = ".part"
_LOCK = "lock"
_OPEN_FILES = 64
_UNKNOWN = 1 << 62


def behind(pack: int) -> str:
    """Sorts after all names of a pack and before those of the next."""
    return f"{pack:08d}.~"


class Disk:
    """The calls that change a folder, one method each, so that faults can be injected at every one of them."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Writes some of the bytes at the file's position."""
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        """Makes a file or folder durable."""
        os.fsync(fd)

    def truncate(self, fd: int, length: int) -> None:
        """Cuts a file."""
        os.ftruncate(fd, length)

    def link(self, source: Path, target: Path) -> None:
        """Gives a file a second name; fails when the name is taken."""
        os.link(source, target)

    def unlink(self, path: Path) -> None:
        """Removes a name."""
        os.unlink(path)


class _File:
    """An open file that is closed when the last user releases it."""

    __slots__ = ("fd", "size")

    def __init__(self, path: Path, flags: int) -> None:
        self.fd = -1
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o666)
        self.size = _UNKNOWN
        """Where it ends, if it never changes: nothing has to be read after that."""

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class LocalBackend:
    """A folder of packs. Reading from many threads is safe; writing is for one."""

    torn_appends = True
    shared = False

    def __init__(self, folder: Path, *, disk: Disk | None = None) -> None:
        self._folder = folder
        self._disk = disk or Disk()
        self._readers: OrderedDict[str, _File] = OrderedDict()
        self._logs: dict[str, _File] = {}
        self._unnamed: set[str] = set()
        self._guard = threading.Lock()

    @property
    def where(self) -> str:
        """The folder."""
        return str(self._folder)

    def lease(self) -> FolderLease:
        """Makes the folder when it is missing and takes its lock."""
        with _disk_errors(self.where, "write to"):
            if not self._folder.is_dir():
                make_private_folder(self._folder)
                _sync_folder(self._disk, self._folder.parent)
            return FolderLease(_File(self._folder / _LOCK, os.O_RDWR | os.O_CREAT), self.where)

    def number(self, last: int) -> int:
        """The next number: there is one writer, and it has seen all packs."""
        return last + 1

    def list(self, above: int = 0) -> Mapping[str, int]:
        """Names and sizes of packs; empty when there is no folder yet."""
        found: dict[str, int] = {}
        last = behind(above)
        with _disk_errors(self.where, "read"), suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(_LISTED) and entry.name > last and not entry.is_dir():
                    with suppress(FileNotFoundError):
                        found[entry.name] = entry.stat().st_size
        return found

    def find(self, pack: int) -> str | None:
        """One of the two names that a pack may have."""
        names = [f"{pack:08d}{suffix}" for suffix in _LISTED]
        return next((name for name in names if (self._folder / name).is_file()), None)

    def size(self, name: str) -> int:
        """The size of the file now."""
        with _disk_errors(self.where, "read"):
            return (self._folder / name).stat().st_size

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Bytes of a pack, by one pread in nearly all cases."""
        file = self._reader(name)
        if offset + length > file.size:
            length = max(0, file.size - offset)
        try:
            data = os.pread(file.fd, length, offset)
            while 0 < len(data) < length and (more := os.pread(file.fd, length - len(data), offset + len(data))):
                data += more
        except OSError as error:
            raise _refusal(self.where, "read", error) from error
        return data

    def append(self, name: str, offset: int, data: bytes) -> None:
        """Writes at the end of a log, after checking that the end is where the caller believes it is."""
        with _disk_errors(self.where, "write to"):
            file = self._log(name)
            if os.lseek(file.fd, 0, os.SEEK_END) != offset:
                raise Busy(f"{name} in {self.where} was changed by somebody else; close the other writer and try again")
            _write_all(self._disk, file.fd, data)

    def sync(self, name: str) -> None:
        """Fsync of the log, and of the folder when the log is new."""
        with _disk_errors(self.where, "write to"):
            self._disk.fsync(self._log(name).fd)
            if name in self._unnamed:
                _sync_folder(self._disk, self._folder)
                self._unnamed.discard(name)

    def cut(self, name: str, length: int) -> None:
        """Truncates a log and makes that and its name durable."""
        with _disk_errors(self.where, "write to"):
            file = self._log(name)
            self._disk.truncate(file.fd, length)
            self._disk.fsync(file.fd)
            _sync_folder(self._disk, self._folder)
            self._unnamed.discard(name)

    def create(self, name: str) -> FolderDraft:
        """Begins a pack under a name that the next sweep would remove."""
        return FolderDraft(self._disk, self._folder / (name + _PART), self._folder / name)

    def remove(self, name: str) -> None:
        """Removes a pack permanently before anything else happens; readers that have it open keep it."""
        self.forget(name)
        with _disk_errors(self.where, "write to"), suppress(FileNotFoundError):
            self._disk.unlink(self._folder / name)
            _sync_folder(self._disk, self._folder)

    def remark(self, name: str, data: bytes) -> None:
        """Writes over a small file: renaming over it would make ext4 flush it, which takes as long as a put."""
        with _disk_errors(self.where, "write to"):
            file = _File(self._folder / name, os.O_WRONLY | os.O_CREAT)
            _write_all(self._disk, file.fd, data)
            self._disk.truncate(file.fd, len(data))

    def recall(self, name: str) -> bytes:
        """The small file's bytes."""
        with _disk_errors(self.where, "read"), suppress(FileNotFoundError):
            return (self._folder / name).read_bytes()
        return b""

    def sweep(self) -> None:
        """Removes the part files of killed compactions."""
        with _disk_errors(self.where, "write to"):
            for part in self._folder.glob("*" + _PART):
                self._disk.unlink(part)

    def forget(self, name: str) -> None:
        """Closes the files of one pack."""
        with self._guard:
            self._readers.pop(name, None)
            self._logs.pop(name, None)

    def close(self) -> None:
        """Closes all files."""
        with self._guard:
            self._readers.clear()
            self._logs.clear()

    def _reader(self, name: str) -> _File:
        with self._guard:
            file = self._readers.get(name)
            if file is not None:
                self._readers.move_to_end(name)
                return file
        with _disk_errors(self.where, "read"):
            file = _File(self._folder / name, os.O_RDONLY)
            found = os.fstat(file.fd)
            if stat.S_ISDIR(found.st_mode):
                raise FileNotFoundError(errno.ENOENT, "a folder stands in the place of the file", name)
            if name.endswith(_FINISHED):
                file.size = found.st_size
        with self._guard:
            self._readers[name] = file
            while len(self._readers) > _OPEN_FILES:
                self._readers.popitem(last=False)
        return file

    def _log(self, name: str) -> _File:
        file = self._logs.get(name)
        if file is None:
            if not (self._folder / name).exists():
                self._unnamed.add(name)
            file = self._logs[name] = _File(self._folder / name, os.O_RDWR | os.O_CREAT)
        return file


class FolderLease:
    """The flock on a folder; it ends with the process."""

    def __init__(self, file: _File, where: str) -> None:
        try:
            fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another process writes to {where}; wait until it is done or stop it") from None
        self._file: _File | None = file

    def release(self) -> None:
        """Closing the file releases the lock."""
        self._file = None


class FolderDraft:
    """A pack that is being written, in a part file."""

    def __init__(self, disk: Disk, part: Path, final: Path) -> None:
        self._disk = disk
        self._part = part
        self._final = final
        self._where = str(final.parent)
        with _disk_errors(self._where, "write to"):
            self._file: _File | None = _File(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def write(self, data: bytes) -> None:
        """Adds bytes at the end of the part file."""
        if self._file is None:
            raise ValueError("this draft is finished")
        with _disk_errors(self._where, "write to"):
            _write_all(self._disk, self._file.fd, data)

    def commit(self) -> None:
        """Fsync, final name, fsync of the folder; only then the name of the part is removed."""
        if self._file is None:
            raise ValueError("this draft is finished")
        with _disk_errors(self._where, "write to"):
            self._disk.fsync(self._file.fd)
            self._disk.link(self._part, self._final)
            self._disk.unlink(self._part)
            _sync_folder(self._disk, self._final.parent)
        self._file = None

    def discard(self) -> None:
        """Removes the part file."""
        if self._file is not None:
            self._file = None
            with _disk_errors(self._where, "write to"), suppress(FileNotFoundError):
                self._disk.unlink(self._part)


def _advice(error: OSError) -> str:
    """What is wrong and what to do, by the number of the error."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; free some space, then try again"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "permission denied; give this user the right to the folder, then try again"
    if error.errno == errno.EROFS:
        return "the file system is read-only; mount it writable, then try again"
    if error.errno == errno.EISDIR:
        return "a folder stands in the place of a file; move the folder away, then try again"
    if error.errno == errno.EMFILE:
        return "too many open files; raise the limit (ulimit -n), then try again"
    return f"{error.strerror or error}; check the disk, then try again"


def _write_all(disk: Disk, fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[disk.write(fd, rest) :]


def _sync_folder(disk: Disk, path: Path) -> None:
    folder = _File(path, os.O_RDONLY | os.O_DIRECTORY)
    disk.fsync(folder.fd)


@contextmanager
def _disk_errors(where: str, action: str) -> Iterator[None]:
    """Turns errors of the system into messages; a missing file stays FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except FileExistsError as error:
        raise Busy(
            f"{error.filename2 or error.filename} exists already; stop the other writer, then try again"
        ) from error
    except OSError as error:
        raise _refusal(where, action, error) from error


def _refusal(where: str, action: str, error: OSError) -> NotReady:
    return NotReady(f"cannot {action} {where}: {_advice(error)}")


_COPY_BYTES = 8 << 20
_LOG = ".log"


class CopiedPack(NamedTuple):
    """A pack that is complete at the new place; `fresh` if it was not there before."""

    name: str
    size: int
    fresh: bool


def copy_packs(source: Backend, target: Backend, sizes: Mapping[str, int] | None = None) -> Iterator[CopiedPack]:
    """Copies what is missing; can be killed at any point and restarted.

    A finished pack appears whole or not at all, a log continues where it ended. Neither place may be written to
    meanwhile, unless `sizes` names the packs and how much of each is meant.
    """
    there = target.list()
    for name, size in sorted((source.list() if sizes is None else sizes).items()):
        have = there.get(name, 0)
        if have > size or (0 < have < size and not name.endswith(_LOG)):
            raise Busy(f"{name} in {target.where} is another pack than in {source.where}; choose an empty place")
        if have < size:
            _copy_pack(source, target, name, have, size)
        yield CopiedPack(name, size, have < size)


def _copy_pack(source: Backend, target: Backend, name: str, start: int, size: int) -> None:
    if name.endswith(_LOG):
        for offset in range(start, size, _COPY_BYTES):
            target.append(name, offset, source.read(name, offset, min(_COPY_BYTES, size - offset)))
            target.sync(name)
        return
    draft = target.create(name)
    try:
        for offset in range(0, size, _COPY_BYTES):
            draft.write(source.read(name, offset, min(_COPY_BYTES, size - offset)))
        draft.commit()
    finally:
        draft.discard()
