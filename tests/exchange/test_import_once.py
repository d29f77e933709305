"""The same captures brought twice are there once, also when the first run was killed."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from exchanged_archives import told
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import until
from written_warc import export_warc, response

from letopis.archive import Archive
from letopis.exchange.captures import import_captures
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.sources import ImportedCapture, ImportReport, failed_capture

START = datetime(2024, 1, 31, 12, tzinfo=UTC)


def capture(step: int, status: int, body: bytes) -> ImportedCapture:
    date = (START + timedelta(seconds=step)).isoformat()
    return ImportedCapture("https://example.org/", date, status, (("Content-Type", "text/html"),), body, decoded=True)


looks = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([200, 200, 404, 301]), st.sampled_from([b"a", b"b", b""])), max_size=12
)


@given(looks, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_captures_in_any_order_come_in_once(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[int, int, bytes]], chance: object
) -> None:
    captures = [capture(*one) for one in found]
    with Archive(tmp_path_factory.mktemp("once") / "archive") as archive:
        import_captures(archive, iter(captures), "first", ImportReport())
        before = told(archive)
        again = ImportReport()
        shuffled = list(captures)
        chance.shuffle(shuffled)  # type: ignore[attr-defined]
        import_captures(archive, iter(shuffled), "again", again)
        assert (again.checks, again.same) == (0, len(captures))
        assert told(archive) == before
        assert archive.stats().checks == len(set(found))


def test_what_another_source_has_at_the_same_moment_is_kept_too(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        for body in (b"a", b"b", b"a", b"b"):
            import_captures(archive, iter([capture(0, 200, body)]), "one", ImportReport())
        assert [archive.get("https://example.org/", version=n).body for n in (0, 1)] == [b"a", b"b"]
        assert archive.stats().checks == 2


def test_an_older_look_with_the_same_content_loses_no_check(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        for step in (5, 1, 3):
            import_captures(archive, iter([capture(step, 200, b"a")]), "one", ImportReport())
        assert [check.checked_at for check in archive.history("https://example.org/")] == [
            START + timedelta(seconds=step) for step in (1, 3, 5)
        ]
        assert len(archive.versions("https://example.org/")) == 1


def test_failures_come_in_once(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        report = ImportReport()
        for _ in range(2):
            lost = failed_capture("https://example.org/", START.isoformat(), "no route")
            import_captures(archive, iter([lost]), "one", report)
        assert (report.checks, report.same) == (1, 1)
        assert archive.history("https://example.org/")[0].error == "no route"


def test_our_own_export_comes_in_once(every_kind: Archive, tmp_path: Path) -> None:
    with (tmp_path / "all.warc.gz").open("wb") as out:
        export_warc(every_kind, out, ExportSelection())
    with Archive(tmp_path / "again") as archive:
        first = import_sources(archive, [str(tmp_path / "all.warc.gz")])
        again = import_sources(archive, [str(tmp_path / "all.warc.gz")])
        assert (again.checks, again.same) == (0, first.checks)
        assert told(archive) == told(every_kind)


def big_warc(file: Path, count: int) -> None:
    with file.open("wb") as out:
        for number in range(count):
            date = (START + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
            out.write(response(f"http://example.org/{number}", date, f"<p>{number * 7919}".encode() * 40))


@pytest.mark.files
def test_a_killed_import_goes_on(tmp_path: Path) -> None:
    big_warc(tmp_path / "big.warc", 6000)
    words = [str(Path(sys.executable).parent / "letopis"), "import", str(tmp_path / "big.warc"), "--json"]
    words += ["--archive", str(tmp_path / "archive")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    taken = wait_for_some(tmp_path / "archive", process)
    process.kill()
    process.communicate()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    row = json.loads(done.stdout)
    assert row["same"] >= taken > 0
    assert row["taken"] + row["same"] == 6000
    with Archive(tmp_path / "archive") as archive:
        assert archive.stats().checks == 6000
        assert list(archive.verify()) == []


def wait_for_some(folder: Path, process: subprocess.Popen[bytes]) -> int:
    """Until a first batch is durable; the process may be at any step of the next one."""

    def checks() -> int:
        with Archive(folder) as archive:
            return archive.stats().checks

    until(lambda: process.poll() is not None or ((folder / "catalogue.sqlite").exists() and checks() > 0))
    return checks()
