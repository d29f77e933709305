"""Archives with a queue, on both engines, and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from still_clock import Clock

from letopis.archive import Archive
from letopis.archive.jobs import JobQueue
from letopis.config import DatabaseSettings, JobsSettings, Settings


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> DatabaseSettings:
    """SQLite in the archive, and a PostgreSQL database of its own for each test."""
    if request.param == "sqlite":
        return DatabaseSettings()
    return DatabaseSettings(url=request.getfixturevalue("new_database")())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_archive(tmp_path: Path) -> Iterator[Callable[..., Archive]]:
    """Archives in one folder, with settings of `[jobs]`."""
    with ExitStack() as stack:

        def make(
            database: DatabaseSettings | None = None, clock: Callable[[], datetime] | None = None, **jobs: Any
        ) -> Archive:
            settings = Settings(jobs=replace(JobsSettings(), **jobs), database=database or DatabaseSettings())
            given = {} if clock is None else {"clock": clock}
            return stack.enter_context(Archive(tmp_path / "archive", settings=settings, **given))

        yield make


@pytest.fixture
def archive(open_archive: Callable[..., Archive], database: DatabaseSettings, clock: Clock) -> Archive:
    return open_archive(database, clock)


@pytest.fixture
def queue(archive: Archive) -> JobQueue:
    return JobQueue(archive)
