"""Archives and servers over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from served_archive import WebClient, at, fill, running

from letopis.archive import Archive
from letopis.config import ServeSettings, Settings


@pytest.fixture
def make_archive(tmp_path: Path) -> Iterator[Callable[..., Archive]]:
    """Archives of one's own, with settings of `[serve]`."""
    with ExitStack() as stack:

        def make(**serve: Any) -> Archive:
            settings = Settings(serve=replace(ServeSettings(), **serve))
            archive = Archive(tmp_path / "archive", settings=settings, clock=lambda: at(100))
            return stack.enter_context(archive)

        yield make


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """A filled archive that a module's tests only read."""
    with Archive(tmp_path_factory.mktemp("serve") / "archive", clock=lambda: at(100)) as filled:
        fill(filled)
        yield filled


@pytest.fixture(scope="module")
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client
