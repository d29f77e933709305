"""Work on pieces of an archive, here or on the workers of a Dask cluster; compaction that many machines share.

A caller that can divide its work writes one function that processes a piece, and gets the results in the order of the
pieces. A worker opens the archive itself, so only pieces and results are transferred. One machine leads a compaction:
it takes the lease for upkeep, passes its fence with the pieces, and increases the fence before it removes empty packs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import islice
from typing import Any, Literal, Protocol, TypeVar

from letopis.archive.archive import Archive
from letopis.archive.compaction import (
    Compaction,
    CompactionCounts,
    CompactReport,
    DocumentRange,
    documents_with_versions,
    site_of,
)
from letopis.archive.write_gates import is_shared, require_shared
from letopis.catalog import Catalog
from letopis.config import Settings
from letopis.errors import MissingExtra, NotReady
from letopis.model import to_millis
from letopis.tuples import NamedTuple

P = TypeVar("P")
R = TypeVar("R")
_TASKS_AHEAD = 2
"""Pieces that are given out for each task the cluster works on at once: one to do, one to follow."""
_WORKER_WAIT_SECONDS = 10.0
_CONNECT_TIMEOUT = "10s"


class PieceRunner(Protocol):
    """Processes pieces."""

    def each(self, work: Callable[[Archive, P], R], pieces: Iterable[P]) -> Iterator[R]:
        """The answers in the order of the pieces, which are requested a little ahead of the answers."""


class LocalRunner:
    """Processes one piece after another, in this process."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def each(self, work: Callable[[Archive, P], R], pieces: Iterable[P]) -> Iterator[R]:
        """See `PieceRunner.each`."""
        return (work(self._archive, piece) for piece in pieces)


class ClusterRunner:
    """Runs pieces as tasks of a Dask cluster; other workers repeat those of a worker that dies.

    A piece may therefore run twice, even at the same time; its work must allow that. Settings are sent along, so
    workers access database and object store with the rights of the caller.
    """

    def __init__(self, connect: Callable[[], Any], settings: Settings) -> None:
        """`connect` returns a `distributed.Client` and is called at the first piece."""
        require_shared(settings)
        self._connect = connect
        self._settings = settings

    def each(self, work: Callable[[Archive, P], R], pieces: Iterable[P]) -> Iterator[R]:
        """See `PieceRunner.each`; NotReady if the cluster stops or a piece kills every worker that takes it."""
        waiting = iter(pieces)
        first = next(waiting, None)
        if first is None:
            return
        client = self._connect()
        _wait_for_workers(client)
        tasks: deque[Any] = deque([self._given(client, work, first)])
        try:
            while tasks:
                room = _TASKS_AHEAD * tasks_at_once(client) - len(tasks)
                tasks.extend(self._given(client, work, piece) for piece in islice(waiting, max(0, room)))
                yield _task_result(tasks.popleft())
        finally:
            client.cancel(list(tasks))

    def _given(self, client: Any, work: Callable[[Archive, P], R], piece: P) -> Any:
        return client.submit(_on_worker, work, self._settings, piece, pure=False)


def _wait_for_workers(client: Any) -> None:
    """Workers may start a moment after their scheduler."""
    try:
        client.wait_for_workers(1, timeout=_WORKER_WAIT_SECONDS)
    except TimeoutError:
        raise NotReady("the cluster has no workers; start some with 'dask worker tcp://...', then try again") from None


def tasks_at_once(client: Any) -> int:
    """How many tasks the cluster works on at once."""
    return max(1, int(sum(client.nthreads().values())))


def pieces_of(items: Iterable[P], size: int) -> Iterator[tuple[P, ...]]:
    """Groups of this size in order, the last with the rest."""
    waiting = iter(items)
    while piece := tuple(islice(waiting, size)):
        yield piece


def _on_worker(work: Callable[[Archive, P], R], settings: Settings, piece: P) -> R:
    with Archive.open(settings) as archive:
        return work(archive, piece)


def _task_result(task: Any) -> Any:
    try:
        return task.result()
    except (CancelledError, OSError) as error:
        raise NotReady(f"the connection to the cluster was lost ({error}); start again when it is back") from error
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise NotReady(f"workers died one after the other ({error}); check their logs and memory") from error


MIN_RANGE_DOCUMENTS = 500
"""The minimum of a range, unless it is the last."""
_MAX_RANGE_DOCUMENTS = 8 * MIN_RANGE_DOCUMENTS
"""A site stays in one range unless it has more documents than this."""


class CompactionTask(NamedTuple):
    """A range of documents, and how to compact it."""

    stretch: DocumentRange
    sparse: frozenset[int]
    effort: Literal["quick", "full"]
    now: int
    fence: int


def compact_jointly(
    archive: Archive,
    spread: PieceRunner,
    effort: Literal["quick", "full"] = "full",
    progress: Callable[[int], None] = lambda done: None,
    stop: Callable[[], bool] = lambda: False,
) -> CompactReport:
    """As `Archive.compact`, with the ranges processed by the workers of `spread`; Busy if others compact."""
    archive.require_writable()
    now, gate = to_millis(archive.clock()), archive.joint_upkeep_gate()
    try:
        run = Compaction(archive.catalog, gate, archive.settings.store, now)
        before, sparse = run.survey()
        orders = (CompactionTask(one, sparse, effort, now, gate.number) for one in document_ranges(archive.catalog))
        total = CompactionCounts(0, 0, 0)
        for done in spread.each(compact_range, _until_stopped(stop, orders)):
            total = CompactionCounts(*(a + b for a, b in zip(total, done, strict=True)))
            progress(total.documents)
        gate.raise_fence()
        return run.end(before, total, not stop())
    finally:
        gate.give_back()


def _until_stopped(stop: Callable[[], bool], orders: Iterator[CompactionTask]) -> Iterator[CompactionTask]:
    for order in orders:
        if stop():
            return
        yield order


def compact_range(archive: Archive, order: CompactionTask) -> CompactionCounts:
    """One range, under the lease of the leading machine; Busy if that has ended."""
    gate = archive.joint_upkeep_gate(order.fence)
    run = Compaction(archive.catalog, gate, archive.settings.store, order.now)
    run.work(order.stretch, order.sparse, order.effort)
    return run.done


def document_ranges(catalog: Catalog) -> Iterator[DocumentRange]:
    """All documents, cut where a site ends."""
    start = last = ("", 0)
    count, site = 0, b""
    for name, row in documents_with_versions(catalog):
        if count >= _MAX_RANGE_DOCUMENTS or (count >= MIN_RANGE_DOCUMENTS and site_of(name) != site):
            yield DocumentRange(start, last)
            start, count = last, 0
        last, site = (name, row.id), site_of(name)
        count += 1
    yield DocumentRange(start, None)


@contextmanager
def cluster_client(address: str) -> Iterator[Any]:
    """A client of the cluster; NotReady when its scheduler does not answer."""
    try:
        library: Any = import_module("distributed")
    except ImportError:
        raise MissingExtra("a cluster needs 'pip install letopis[cluster]'") from None
    try:
        client = library.Client(address, timeout=_CONNECT_TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        raise NotReady(f"no Dask scheduler answers at {address} ({error}); check cluster.address") from error
    with client:
        yield client


@contextmanager
def spread_over(settings: Settings, *, where_shared: bool = False) -> Iterator[PieceRunner | None]:
    """The runner for pieces of the archive: the configured cluster, connected to when needed; otherwise None.

    Workers must see the archive; if they cannot, the result is None with `where_shared`, otherwise this is refused.
    """
    if not settings.cluster.address or (where_shared and not is_shared(settings)):
        yield None
        return
    with ExitStack() as stack:
        client: list[Any] = []

        def connected() -> Any:
            if not client:
                client.append(stack.enter_context(cluster_client(settings.cluster.address)))
            return client[0]

        yield ClusterRunner(connected, settings)
