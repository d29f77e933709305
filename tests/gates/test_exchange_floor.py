"""Import of WARC keeps its pace beside a reader that stores nothing."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from pacing import cpu, lowest
from warcio.indexer import Indexer
from written_warc import response

from letopis.archive import Archive
from letopis.exchange.imports import import_sources

MOST = 3.5
"""Times the CPU of `warcio index`, which stores nothing: 2.7 measured here, with each record kept as it stands."""


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    words = [f"word{number % 97} of line {number}" for number in range(400)]
    with (tmp_path / "pages.warc").open("wb") as out:
        for number in range(1500):
            body = " ".join(words[number % 100 :]).encode() + b"%d" % number
            out.write(response(f"http://example.org/{number}", "2024-01-31T12:00:00Z", b"<p>" + body))
    return tmp_path / "pages.warc"


@pytest.mark.timed
def test_import_with_everything_stored_keeps_its_pace(warc: Path, tmp_path: Path) -> None:
    indexer = Indexer(["offset", "warc-type", "warc-target-uri"], [str(warc)], str(tmp_path / "index.json"))
    folders = (tmp_path / f"archive {number}" for number in count())

    def ours() -> None:
        with Archive(next(folders)) as archive:
            assert import_sources(archive, [str(warc)]).versions == 1500

    assert lowest(lambda: cpu(ours, 1) / cpu(indexer.process_all, 1), MOST) <= MOST
