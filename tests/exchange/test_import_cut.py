"""A file that breaks off, or that is none of ours, is told as such; what could be read stays."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from written_warc import response

from letopis.archive import Archive
from letopis.cli import main
from letopis.zstandard import zstd

WHOLE = response("http://example.org/", "2024-01-01T00:00:00Z", b"<p>one</p>")
PACKED = gzip.compress(WHOLE)
SECOND = response("http://example.org/two", "2024-01-01T00:00:00Z", b"<p>two</p>" * 50)


@pytest.mark.parametrize(
    ("data", "status", "pages"),
    [
        (WHOLE + SECOND, 0, 2), (WHOLE + SECOND[:-300], 6, 1), (b"no", 2, 0), (PACKED + bytes(9) + PACKED, 0, 1),
        # The record is whole, its compressed part is not; and the first byte of a further part.
        (PACKED[:-3], 6, 1), (PACKED + b"\x1f", 6, 1), (zstd.compress(WHOLE) + zstd.compress(SECOND)[:-2], 6, 1),
    ],
)  # fmt: skip
def test_the_status_tells_whether_all_of_it_came_in(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], data: bytes, status: int, pages: int
) -> None:
    file = tmp_path / "given.warc"
    file.write_bytes(data)
    assert main(["--archive", str(tmp_path / "a"), "import", str(file)]) == status
    assert ("breaks off" in capfd.readouterr().err) is (status == 6)
    with Archive(tmp_path / "a") as archive:
        assert archive.stats().documents == pages
