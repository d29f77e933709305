"""Bringing a copy up to date from a source of byte ranges.

The target is replaced in one step by a file whose SHA-256 is right, or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from letopis.binary import file_sha256, fsync_file, part_path, rename_durably, write_errors, write_file_durably
from letopis.errors import Damaged, LetopisError, RemoteChanged, Unavailable
from letopis.tuples import NamedTuple
from letopis.zrec import part_file, published_file
from letopis.zrec.part_file import Rebuild, ReleaseMismatch
from letopis.zrec.published_file import (
    ByteRange,
    NoRanges,
    RangeCut,
    RangeSource,
    ZrecRelease,
    limit_ranges,
    merge_ranges,
    request_cost,
)
from letopis.zrec.reader import ZrecReader, verify

SyncProgress = Callable[[int, int], None]
"""Called with bytes done and bytes wanted."""

_TRIES = 3
_IN_FLIGHT = 4
"""Ranges that are asked for at once."""
_GRACE_SECONDS = 5.0
"""How long ranges that are under way may take to end after another has failed."""


class SyncReport(NamedTuple):
    """What a sync did. Bytes are those on the wire, headers included."""

    bytes_downloaded: int
    bytes_sent: int
    requests: int
    chunks_reused: int
    chunks_fetched: int
    fallback: bool
    verified: bool


@dataclass(slots=True)
class _Transfer:
    source: RangeSource
    target: Path
    seed: Path | None
    key: bytes | None
    progress: SyncProgress | None
    release: bytes | None
    payload: int = 0
    """Bytes of content fetched so far, for telling headers from content."""

    @property
    def part(self) -> Path:
        return part_path(self.target)


async def sync(
    source: RangeSource,
    out: str | Path,
    *,
    seed: str | Path | None = None,
    key: bytes | None = None,
    progress: SyncProgress | None = None,
    release: bytes | None = None,
) -> SyncReport:
    """Makes `out` the file that the source publishes, reusing the chunks of `seed` or of `out` as it is.

    With a key, only a release signed with it is accepted; where the `release` is known already, it is not asked for.
    `Unavailable` when the source fails (the next call goes on where this one stopped), `Damaged` when what it serves
    does not fit together.
    """
    before = source.traffic
    job = _Transfer(source, Path(out), Path(seed) if seed else None, key, progress, release)
    reused, fetched, fallback = await _until_settled(job)
    used = source.traffic.since(before)
    return SyncReport(used.received, used.sent, used.requests, reused, fetched, fallback, verified=True)


async def _until_settled(job: _Transfer) -> tuple[int, int, bool]:
    """Tries again when the published file changed meanwhile: by its release, or as the server tells."""
    raw, found = await _release(job)
    for _ in range(_TRIES - 1):
        try:
            return await _brought_up_to_date(job, raw, found)
        except (Damaged, RemoteChanged) as error:
            again, newer = await _release(job)
            if again == raw and isinstance(error, Damaged):
                raise
            raw, found = again, newer
    return await _brought_up_to_date(job, raw, found)


async def _release(job: _Transfer) -> tuple[bytes | None, ZrecRelease | None]:
    raw = await job.source.read_release() if job.release is None else job.release
    job.payload += len(raw or b"")
    found = published_file.parse_release(raw) if raw is not None else None
    if job.key is not None:
        if found is None:
            raise Damaged("There is no release to check the signature of; ask the publisher for one.")
        found.check_signature(job.key)
    return raw, found


async def _brought_up_to_date(job: _Transfer, raw: bytes | None, found: ZrecRelease | None) -> tuple[int, int, bool]:
    with write_errors(job.target):
        if found and job.target.exists() and file_sha256(job.target) == found.sha256:
            return _chunk_count(job.target), 0, False
        job.target.parent.mkdir(parents=True, exist_ok=True)
        done = await _by_chunks_or_whole(job, found)
        rename_durably(job.part, job.target)
        if raw is not None:
            write_file_durably(published_file.release_path(job.target), raw)
        return done


async def _by_chunks_or_whole(job: _Transfer, found: ZrecRelease | None) -> tuple[int, int, bool]:
    try:
        return *(await _by_chunks(job, found)), False
    except ReleaseMismatch:
        raise
    except (Damaged, NoRanges):
        await _whole(job, found)
        return 0, _chunk_count(job.part), True


async def _by_chunks(job: _Transfer, found: ZrecRelease | None) -> tuple[int, int]:
    """Prepares the part from old chunks and missing ranges; (reused, fetched)."""
    with _old_copy(job) as old:
        head = await part_file.read_published_head(job.source, found, old)
        job.payload += len(head.known)
        with closing(Rebuild(job.part, head)) as rebuild:
            missing = rebuild.start(old)
            while missing:
                await _fetch(job, missing, rebuild)
                missing = rebuild.arrived()
            if not (rebuild.file_digest() == found.sha256 if found else rebuild.body_fits()):
                raise Damaged("The rebuilt file is not the published one; it is downloaded whole.")
            rebuild.settle()
            reused = int(rebuild.reused.sum())
        if found is None and not _is_right(job.part, None):
            raise Damaged("The rebuilt file is not what its header promises; it is downloaded whole.")
        return reused, len(head.index) - reused


@contextmanager
def _old_copy(job: _Transfer) -> Iterator[ZrecReader | None]:
    """The copy to reuse chunks of. One that cannot be opened is no copy."""
    path = job.seed or job.target
    try:
        reader = ZrecReader(path) if job.seed or path.exists() else None
    except Damaged:
        reader = None
    with reader or nullcontext():
        yield reader


async def _fetch(job: _Transfer, missing: list[ByteRange], rebuild: Rebuild) -> None:
    """Fetches the ranges, several at once; after a failure no further one is begun, and what is under way may end."""
    gap = request_cost(job.source.traffic, job.payload)
    ranges = limit_ranges(merge_ranges(missing, gap))
    if not ranges:
        return
    total = sum(end - start for start, end in ranges)
    left = iter(ranges)
    stopped = asyncio.Event()
    done = 0

    async def worker() -> None:
        nonlocal done
        for start, end in left:
            if stopped.is_set():
                return
            try:
                data = await job.source.read(start, end)
            except RangeCut as cut:
                # Chunks that came whole are found in the part by the next run.
                rebuild.write(start, cut.data[: end - start])
                raise
            if len(data) != end - start:
                raise Damaged("The server sent another number of bytes than requested; try again.")
            rebuild.write(start, data)
            done += len(data)
            job.payload += len(data)
            if job.progress:
                job.progress(done, total)

    workers = [asyncio.ensure_future(worker()) for _ in range(min(_IN_FLIGHT, len(ranges)))]
    try:
        first, going = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        stopped.set()
        ended, _ = await asyncio.wait(going, timeout=_GRACE_SECONDS) if going else (going, going)
        for one in (*first, *ended):
            one.result()
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _whole(job: _Transfer, found: ZrecRelease | None) -> None:
    """The part as one plain download, checked like any other."""
    size = found.size if found else await job.source.size()
    got = 0
    with job.part.open("wb") as file:
        async for data in job.source.stream():
            got += len(data)
            if got > size:
                break
            file.write(data)
            if job.progress:
                job.progress(got, size)
        fsync_file(file)
    if got < size:
        raise Unavailable(f"The download ended after {got} of {size} bytes; try again.")
    if got > size or not _is_right(job.part, found):
        job.part.unlink()
        raise Damaged("The published file is not what its release or header promises; publish it again.")


def _is_right(path: Path, found: ZrecRelease | None) -> bool:
    """By the release, which names one file; without one the file must at least be sound in itself, record by record."""
    if found:
        return file_sha256(path) == found.sha256
    return verify(path).sound and _body_fits(path)


def _body_fits(path: Path) -> bool:
    try:
        with ZrecReader(path) as reader:
            return reader.body_digest() == reader.header.body_digest
    except LetopisError:
        return False


def _chunk_count(path: Path) -> int:
    with ZrecReader(path) as reader:
        return len(reader.index)
