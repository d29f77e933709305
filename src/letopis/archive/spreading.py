"""Work on pieces of an archive: in this process, or on the workers of a Dask cluster.

Whoever can cut its work into pieces writes one function that does a piece,
and gets the answers in the order of the pieces, wherever they were worked
out. A worker opens the archive itself, so what travels are pieces and answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from itertools import islice
from typing import Any, Protocol, TypeVar

from letopis.archive.archive import Archive
from letopis.config import Settings
from letopis.errors import NotReady, UsageError

P = TypeVar("P")
R = TypeVar("R")
_AHEAD = 2
"""Pieces that are given out for each task the cluster works on at once: one to do, one to follow."""
_PATIENCE_SECONDS = 10.0


class Spread(Protocol):
    """Who does the pieces."""

    def each(self, work: Callable[[Archive, P], R], pieces: Iterable[P]) -> Iterator[R]:
        """The answers in the order of the pieces, which are asked for a little ahead of the answers."""


class Here:
    """One piece after the other, in this process."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def each(self, work: Callable[[Archive, P], R], pieces: Iterable[P]) -> Iterator[R]:
        """See `Spread.each`."""
        return (work(self._archive, piece) for piece in pieces)


class OnCluster:
    """Pieces as tasks of a Dask cluster; those of a worker that dies are done by others.

    A piece may so be done twice, and twice at once: its work must bear that.
    Settings travel with it, so workers reach database and object store with
    the rights of whoever asked.
    """

    def __init__(self, connect: Callable[[], Any], settings: Settings) -> None:
        """`connect` answers with a `distributed.Client` and is called when there is a first piece."""
        require_shared(settings)
        self._connect = connect
        self._settings = settings

    def each(self, work: Callable[[Archive, P], R], pieces: Iterable[P]) -> Iterator[R]:
        """See `Spread.each`; NotReady when the cluster goes away or a piece kills whoever takes it."""
        waiting = iter(pieces)
        first = next(waiting, None)
        if first is None:
            return
        client = self._connect()
        _wait_for_workers(client)
        tasks: deque[Any] = deque([self._given(client, work, first)])
        try:
            while tasks:
                room = _AHEAD * tasks_at_once(client) - len(tasks)
                tasks.extend(self._given(client, work, piece) for piece in islice(waiting, max(0, room)))
                yield _answer(tasks.popleft())
        finally:
            client.cancel(list(tasks))

    def _given(self, client: Any, work: Callable[[Archive, P], R], piece: P) -> Any:
        return client.submit(_on_worker, work, self._settings, piece, pure=False)


def _wait_for_workers(client: Any) -> None:
    """They may come up a moment after their scheduler."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
    except TimeoutError:
        raise NotReady("the cluster has no workers; start some with 'dask worker tcp://...', then try again") from None


def tasks_at_once(client: Any) -> int:
    """How many tasks the cluster works on at once."""
    return max(1, int(sum(client.nthreads().values())))


def is_shared(settings: Settings) -> bool:
    """Whether the archive can be seen from other machines."""
    return bool(settings.database.url and settings.store.url)


def require_shared(settings: Settings) -> None:
    """UsageError for an archive that workers elsewhere cannot see."""
    if not is_shared(settings):
        raise UsageError("a cluster works on PostgreSQL and an object store; set database.url and store.url")


def pieces_of(items: Iterable[P], size: int) -> Iterator[tuple[P, ...]]:
    """So many in a row, the last piece what is left."""
    waiting = iter(items)
    while piece := tuple(islice(waiting, size)):
        yield piece


def _on_worker(work: Callable[[Archive, P], R], settings: Settings, piece: P) -> R:
    with Archive.open(settings) as archive:
        return work(archive, piece)


def _answer(task: Any) -> Any:
    try:
        return task.result()
    except (CancelledError, OSError) as error:
        raise NotReady(f"the cluster went away ({error}); start again when it is back") from error
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise NotReady(f"workers died one after the other ({error}); look at their logs and their memory") from error
