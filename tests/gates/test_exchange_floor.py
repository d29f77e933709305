"""Import of WARC keeps its pace beside a reader that stores nothing, and what storing cannot do without."""

from __future__ import annotations

from hashlib import sha1
from itertools import count
from pathlib import Path

import pytest
from blake3 import blake3
from pacing import cpu, lowest
from warcio.indexer import Indexer
from written_warc import response

from letopis.archive import Archive
from letopis.exchange.imports import import_sources
from letopis.zstandard import zstd

MOST = 2.2
"""Times the CPU of `warcio index` and of digests and compression of all bodies: 1.7 measured, with each record kept.

Beside the index alone 2.7 on one machine and 4.5 on another: processors differ in what compression costs beside Python.
"""


WORDS = [f"word{number % 97} of line {number}" for number in range(400)]
BODIES = [b"<p>%s%d" % (" ".join(WORDS[number % 100 :]).encode(), number) for number in range(1500)]


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    with (tmp_path / "pages.warc").open("wb") as out:
        for number, body in enumerate(BODIES):
            out.write(response(f"http://example.org/{number}", "2024-01-31T12:00:00Z", body))
    return tmp_path / "pages.warc"


def digest_and_compress() -> None:
    for body in BODIES:
        sha1(body).digest()
        blake3(body).digest()
        zstd.compress(body)


@pytest.mark.timed
def test_import_with_everything_stored_keeps_its_pace(warc: Path, tmp_path: Path) -> None:
    indexer = Indexer(["offset", "warc-type", "warc-target-uri"], [str(warc)], str(tmp_path / "index.json"))
    folders = (tmp_path / f"archive {number}" for number in count())

    def ours() -> None:
        with Archive(next(folders)) as archive:
            assert import_sources(archive, [str(warc)]).versions == len(BODIES)

    def bare() -> None:
        indexer.process_all()
        digest_and_compress()

    assert lowest(lambda: cpu(ours, 1) / cpu(bare, 3), MOST) <= MOST
