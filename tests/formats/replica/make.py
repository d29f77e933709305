"""Makes the golden published archive of this folder; run it only when the format changes on purpose."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from letopis.archive import Archive
from letopis.exchange.replica import publish

FOLDER = Path(__file__).parent / "published"
START = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Two releases: a finished pack, a log in two segments, a link and an error among the checks."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work, Archive(Path(work) / "origin", clock=lambda: START) as archive:
        for number in range(3):
            archive.put("http://golden.example/", b"golden version %d\n" % number * 20, START + timedelta(days=number))
        archive.compact(effort="quick")
        archive.put("http://golden.example/second", b"one", START)
        publish(archive, FOLDER)
        archive.put("http://golden.example/second", b"two", START + timedelta(days=1))
        archive.put("http://golden.example/second", b"two", START + timedelta(days=2))
        publish(archive, FOLDER)
    (FOLDER / ".lock").unlink()


if __name__ == "__main__":
    main()
