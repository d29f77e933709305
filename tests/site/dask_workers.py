"""A Dask cluster on loopback: a scheduler in this process, workers that tests can kill."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import distributed
import pytest

OF_THE_LIBRARY = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""Warnings that Dask itself causes when it ends."""


class Workers:
    """A scheduler in this process and workers in processes of their own, all on loopback."""

    def __init__(self, count: int) -> None:
        self._cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", scheduler_port=0, silence_logs=50
        )
        self.address: str = self._cluster.scheduler_address
        self._count = count
        self.processes: list[subprocess.Popen[bytes]] = []

    def complete(self) -> None:
        """Starts as many as are missing."""
        self.processes = [process for process in self.processes if process.poll() is None]
        self.processes += [self._start() for _ in range(self._count - len(self.processes))]

    def kill_one(self) -> None:
        """As a machine dies: without a word."""
        self.processes[0].kill()
        self.processes[0].wait()

    def _start(self) -> subprocess.Popen[bytes]:
        words = [
            sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--host", "127.0.0.1", "--no-nanny",
            "--no-dashboard", "--nthreads", "1",
        ]  # fmt: skip
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self._cluster.close()


@pytest.fixture(scope="module")
def cluster_of_two() -> Iterator[Workers]:
    made = Workers(2)
    yield made
    made.close()


@pytest.fixture
def workers(cluster_of_two: Workers) -> Workers:
    """Two of them, whatever became of those that a test before had."""
    cluster_of_two.complete()
    return cluster_of_two


@pytest.fixture
def client(workers: Workers) -> Iterator[Any]:
    with distributed.Client(workers.address) as made:  # type: ignore[no-untyped-call]
        made.wait_for_workers(2, timeout=300)
        yield made
