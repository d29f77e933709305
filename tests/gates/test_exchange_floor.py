"""Import of WARC keeps its pace beside a reader that stores nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from warcio.indexer import Indexer
from written_warc import response

from letopis.archive import Archive
from letopis.exchange import import_sources

FLOOR = 0.15
"""Of the records a CPU second of `warcio index`; the bench on real pages measures far more."""


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    words = [f"word{number % 97} of line {number}" for number in range(400)]
    with (tmp_path / "pages.warc").open("wb") as out:
        for number in range(1500):
            body = " ".join(words[number % 100 :]).encode() + b"%d" % number
            out.write(response(f"http://example.org/{number}", "2024-01-31T12:00:00Z", b"<p>" + body))
    return tmp_path / "pages.warc"


def test_import_with_everything_stored_keeps_its_pace(warc: Path, tmp_path: Path) -> None:
    start = time.process_time()
    Indexer(["offset", "warc-type", "warc-target-uri"], [str(warc)], str(tmp_path / "index.json")).process_all()
    theirs = time.process_time() - start
    with Archive(tmp_path / "archive") as archive:
        start = time.process_time()
        report = import_sources(archive, [str(warc)])
        ours = time.process_time() - start
    assert report.versions == 1500
    assert theirs / ours >= FLOOR
