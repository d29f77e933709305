"""Archives to exchange: one with every kind of check, one of a walked world."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from exchanged_archives import START, URL, looked
from walked_world import walk_twice, walked_world

from letopis.archive import Archive, Details
from letopis.model import Hop, Outcome, Put


@pytest.fixture
def every_kind(tmp_path: Path) -> Iterator[Archive]:
    """Every kind of check that there is."""
    hop = Hop(URL, 301, "http://example.org/new", "127.0.0.1", (("Location", "http://example.org/new"),))
    with Archive(tmp_path / "every-kind") as archive:
        archive.commit(
            [
                looked(0, 200, b"<title>One</title><p>first", Outcome.NEW),
                looked(1, 200, b"<title>One</title><p>first", Outcome.UNCHANGED),
                looked(2, 304, None, Outcome.UNCHANGED, versioned=False),
                looked(3, 404, b"gone", Outcome.UNAVAILABLE, versioned=False),
                looked(4, 301, b"", Outcome.UNCHANGED, versioned=False),
                looked(5, 0, None, Outcome.UNAVAILABLE, versioned=False, details=Details(error="no connection")),
                looked(6, 200, b"<p>second", Outcome.CHANGED, details=Details("http://example.org/new", (hop,))),
                looked(7, 200, b"<title>One</title><p>first", Outcome.CHANGED),
            ]
        )
        list(archive.put_many([Put("http://other.example/", b"\x00\xff binary", START, "application/octet-stream")]))
        yield archive


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Read-only: all tests share it."""
    with Archive(tmp_path_factory.mktemp("walked") / "archive") as archive:
        walk_twice(archive, walked_world())
        yield archive
