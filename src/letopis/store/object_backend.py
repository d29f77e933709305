"""Packs in an object store, which has neither append nor locks.

A finished pack is one object, `00000002.pack`. A log is a series of create-only segments named by their offset,
`00000001.log/000000000000`; each holds whole records and appears whole. Appended data waits in memory until `sync`
stores it as one segment, so one request makes a batch durable.

Several processes write at once: each extends only logs whose numbers it got from the shared counter, so writers never
conflict. Whether a log is still referred to is decided in the catalogue (docs/internals/write-order.md).
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO
from uuid import uuid4

from letopis.errors import Busy
from letopis.store.backend import WriteLease, behind
from letopis.store.bucket import BLOCK_BYTES, UPLOAD_PART_BYTES, BlockCache, Bucket
from letopis.tuples import NamedTuple

_LOG, _PACK = ".log", ".pack"
_CLAIM = ".claim"
_SEGMENT_BYTES = 8 << 20


class WriterCoordination(NamedTuple):
    """What writers of one place share: the exclusive lease, and numbers that are given out only once."""

    lease: Callable[[], WriteLease]
    number: Callable[[int], int]


class _SegmentedLog:
    """The segments of a log as last seen, and what waits to become the next one."""

    __slots__ = ("ends", "starts", "waiting")

    def __init__(self, segments: Mapping[int, int]) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.waiting = bytearray()
        for start in sorted(segments):
            # A gap means that what follows it was never acknowledged.
            if start == self.stored:
                self.add(segments[start])

    @property
    def stored(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def end(self) -> int:
        return self.stored + len(self.waiting)

    def add(self, size: int) -> None:
        self.starts.append(self.stored)
        self.ends.append(self.stored + size)


class ObjectBackend:
    """A bucket of packs. Reading from many threads is safe; writing through one instance is for one thread."""

    torn_appends = False
    shared = True

    def __init__(self, bucket: Bucket, cache: BlockCache, sharing: WriterCoordination) -> None:
        self._bucket = bucket
        self._cache = cache
        self._sharing = sharing
        self._guard = threading.RLock()
        self._logs: dict[str, _SegmentedLog] = {}
        self._sizes: dict[str, int] = {}

    @property
    def where(self) -> str:
        """The address of the bucket and prefix."""
        return self._bucket.where

    def lease(self) -> WriteLease:
        """The right to do what only one process may do at a time; Busy if another process has it."""
        return self._sharing.lease()

    def number(self, last: int) -> int:
        """A pack number above `last` that was never given out."""
        return self._sharing.number(last)

    def list(self, above: int = 0) -> Mapping[str, int]:
        """Names and sizes of packs and logs, from one listing of the bucket that begins after a number."""
        segments: dict[str, dict[int, int]] = {}
        found: dict[str, int] = {}
        for path, size in self._bucket.sizes(after=behind(above)).items():
            name, _, offset = path.partition("/")
            if name.endswith(_LOG) and offset.isdecimal():
                segments.setdefault(name, {})[int(offset)] = size
            elif name.endswith(_PACK) and not offset:
                found[name] = size
        with self._guard:
            self._sizes = self._sizes | found if above else dict(found)
            for name, parts in segments.items():
                log = self._refreshed(name, parts)
                found[name] = log.end
        return found

    def find(self, pack: int) -> str | None:
        """By the segments of a log, which reading it needs anyway, or by one request for a finished pack."""
        for name in (f"{pack:08d}{_LOG}", f"{pack:08d}{_PACK}"):
            with suppress(FileNotFoundError):
                self.size(name)
                return name
        return None

    def size(self, name: str) -> int:
        """A log is listed again, since others may have extended it."""
        return self._seen(name, self._logs.get(name)).end if name.endswith(_LOG) else self._size(name)

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Bytes of a pack or log, by as few range requests as blocks are missing in the cache."""
        if name.endswith(_LOG):
            return self._read_log(name, offset, length)
        size = self._size(name)
        return self._blocks(name, name, size, offset, min(size, offset + length))

    def append(self, name: str, offset: int, data: bytes) -> None:
        """Adds to what waits for `sync`, after checking that the end is where the caller believes it is."""
        log = self._log(name, offset)
        if log.end != offset:
            raise Busy(f"{name} in {self.where} was changed by somebody else; close the other writer and try again")
        log.waiting += data
        if len(log.waiting) >= _SEGMENT_BYTES:
            self._put(name, log)

    def sync(self, name: str) -> None:
        """Stores what waits as one segment; returns when the store has acknowledged it."""
        log = self._logs.get(name)
        if log is not None and log.waiting:
            self._put(name, log)

    def cut(self, name: str, length: int) -> None:
        """Removes segments from the end; a segment that is cut inside is replaced in one step."""
        log = self._refreshed(name, self._segments(name))
        log.waiting.clear()
        keep = bisect_right(log.ends, length)
        if keep < len(log.starts) and log.starts[keep] < length:
            start = log.starts[keep]
            self._bucket.replace(
                _segment_path(name, start), self._bucket.span(_segment_path(name, start), 0, length - start)
            )
        gone = [start for start in self._segments(name) if start >= length]
        self._bucket.delete([_segment_path(name, start) for start in sorted(gone, reverse=True)])
        self._cache.drop(name)
        with self._guard:
            self._logs[name] = _SegmentedLog(self._segments(name))

    def create(self, name: str) -> ObjectDraft:
        """Begins a pack in a local file; it is uploaded when it is complete."""
        return ObjectDraft(self, self._bucket, name)

    def remove(self, name: str) -> None:
        """Removes a pack, or all segments of a log, the last one first."""
        self.forget(name)
        if name.endswith(_LOG):
            paths = [_segment_path(name, start) for start in sorted(self._segments(name), reverse=True)]
            self._bucket.delete(paths)
        else:
            self._bucket.delete([name])
            self._bucket.delete([name + _CLAIM])

    def remark(self, name: str, data: bytes) -> None:
        """Replaces a small object."""
        self._bucket.replace(name, data)

    def recall(self, name: str) -> bytes:
        """The small object's bytes."""
        with suppress(FileNotFoundError):
            return self._bucket.whole(name)
        return b""

    def sweep(self) -> None:
        """Drafts are local files that end with their process; the bucket removes parts of killed uploads."""

    def forget(self, name: str) -> None:
        """Drops what is cached about one pack."""
        with self._guard:
            self._logs.pop(name, None)
            self._sizes.pop(name, None)
        self._cache.drop(name)

    def close(self) -> None:
        """Discards what was not synced."""
        with self._guard:
            self._logs.clear()
            self._sizes.clear()

    def known(self, name: str, size: int) -> None:
        """Notes the size of a pack that was just finished."""
        with self._guard:
            self._sizes[name] = size

    def _put(self, name: str, log: _SegmentedLog) -> None:
        data = bytes(log.waiting)
        log.waiting.clear()
        self._bucket.create(_segment_path(name, log.stored), data)
        with self._guard:
            log.add(len(data))

    def _log(self, name: str, offset: int) -> _SegmentedLog:
        log = self._logs.get(name)
        if log is None:
            # A log that begins now has a new number: there are no segments to list.
            log = self._refreshed(name, self._segments(name) if offset else {})
        return log

    def _refreshed(self, name: str, segments: Mapping[int, int]) -> _SegmentedLog:
        with self._guard:
            log = _SegmentedLog(segments)
            before = self._logs.get(name)
            if before is not None and before.stored >= log.stored:
                return before
            self._logs[name] = log
            return log

    def _segments(self, name: str) -> dict[int, int]:
        found = self._bucket.sizes(name)
        return {int(path.rpartition("/")[2]): size for path, size in found.items() if path.startswith(name + "/")}

    def _size(self, name: str) -> int:
        size = self._sizes.get(name)
        if size is None:
            size = self._bucket.size(name)
            self.known(name, size)
        return size

    def _read_log(self, name: str, offset: int, length: int) -> bytes:
        log = self._logs.get(name)
        if log is None or offset + length > log.end:
            log = self._seen(name, log)
        data = bytearray()
        place = bisect_right(log.ends, offset)
        while place < len(log.starts) and length > len(data):
            start, end = log.starts[place], log.ends[place]
            low, high = max(offset - start, 0), min(end - start, offset + length - start)
            data += self._blocks(f"{name}-{start}", _segment_path(name, start), end - start, low, high)
            place += 1
        rest = offset + len(data) - log.stored
        return bytes(data) if rest < 0 else bytes(data + log.waiting[rest : rest + length - len(data)])

    def _seen(self, name: str, log: _SegmentedLog | None) -> _SegmentedLog:
        """Lists segments that others have added; only this process extends its own log."""
        if log is not None and log.waiting:
            return log
        segments = self._segments(name)
        if not segments and log is None:
            raise FileNotFoundError(name)
        return self._refreshed(name, segments)

    def _blocks(self, mark: str, path: str, size: int, start: int, end: int) -> bytes:
        """A range of one object, put together from cached blocks."""
        parts: list[bytes] = []
        for number in range(start // BLOCK_BYTES, -(-end // BLOCK_BYTES)):
            low, high = number * BLOCK_BYTES, min(size, (number + 1) * BLOCK_BYTES)
            block = self._block(mark, path, low, high)
            parts.append(block[max(0, start - low) : end - low])
        return b"".join(parts)

    def _block(self, mark: str, path: str, low: int, high: int) -> bytes:
        return self._cache.get(f"{mark}-{low}-{high}", lambda: self._bucket.span(path, low, high))


class ObjectDraft:
    """A pack that is being written, in a temporary file."""

    def __init__(self, backend: ObjectBackend, bucket: Bucket, name: str) -> None:
        self._backend = backend
        self._bucket = bucket
        self._name = name
        self._file: IO[bytes] | None = NamedTemporaryFile(prefix="letopis-")  # noqa: SIM115 - closed by discard

    def write(self, data: bytes) -> None:
        """Adds bytes at the end."""
        self._open().write(data)

    def commit(self) -> None:
        """One create-only request; beyond 8 MiB a create-only claim of the name, then an upload in parts."""
        file = self._open()
        size = file.tell()
        file.flush()
        if size <= UPLOAD_PART_BYTES:
            file.seek(0)
            self._bucket.create(self._name, file.read())
        else:
            self._claim()
            self._bucket.upload(self._name, Path(file.name))
        self._backend.known(self._name, size)
        self.discard()

    def discard(self) -> None:
        """Removes the temporary file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _claim(self) -> None:
        """Uploads in parts have no create-only mode, so the name is claimed first."""
        self._bucket.create(self._name + _CLAIM, uuid4().bytes)
        with suppress(FileNotFoundError):
            self._bucket.size(self._name)
            raise Busy(f"{self._name} exists already in {self._bucket.where}; stop the other writer, then try again")

    def _open(self) -> IO[bytes]:
        if self._file is None:
            raise ValueError("this draft is finished")
        return self._file


def _segment_path(name: str, offset: int) -> str:
    return f"{name}/{offset:012d}"
