"""What commit 39e925d recorded wrongly: an archive that it made of a WARC file, and what heals it."""

from __future__ import annotations

import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from judged_records import exported, judged
from served_archive import running

from letopis import Archive
from letopis.cli.main import main
from letopis.exchange.imports import import_sources

SAMPLE = Path(__file__).parent.parent / "formats" / "mistaken-39e925d.tar.xz"
PAGE, THIRD = "http://a.test/", datetime(2024, 1, 3, 13, tzinfo=UTC)
pytestmark = pytest.mark.files


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The archive, and beside it the file that was imported."""
    with tarfile.open(SAMPLE) as packed:
        # Early releases of Python 3.11 know no filter.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(tmp_path)
    return tmp_path / "archive"


@pytest.fixture
def healed(old: Path) -> Path:
    """After the same file was imported once more."""
    with Archive(old) as archive:
        report = import_sources(archive, [old.parent / "mistaken.warc"])
        assert dict(report.refused) == {}
        assert list(archive.verify()) == []
    return old


def test_links_that_were_given_to_another_site_are_read_anew(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--archive", str(old), "links", "siteb.test"]) == 0
    told = capsys.readouterr().out
    assert "http://siteb.test/logo.png" in told
    assert "sitea" not in told


def test_a_revisit_that_was_taken_for_one_of_another_body_is_put_right_by_its_file(healed: Path) -> None:
    with Archive(healed) as archive:
        assert archive.get(PAGE, at=THIRD).body == b"<title>A</title><p>state A"
        assert [check.version for check in archive.history(PAGE)] == [0, 1, 2]


def test_the_answer_to_a_post_leaves_the_history_of_the_page(healed: Path) -> None:
    with Archive(healed) as archive:
        assert [version.number for version in archive.versions(f"{PAGE}form")] == [0]
        assert archive.get(f"{PAGE}form").body == b"<p>the form"
        assert archive.get(f"{PAGE}form?__wb_method=POST&q=1").body == b"<p>the answer to a post"


def test_redirects_that_looped_lead_to_the_page_without_an_import(old: Path) -> None:
    with Archive(old) as archive, running(archive) as web:
        answer: Any = web.get("/web/20240107120000/http://bare.test/")
        assert answer.status in (301, 302)
        assert b"here" in web.get(answer.headers["location"]).body


def test_headers_large_errors_and_records_come_back_from_their_file(healed: Path) -> None:
    with Archive(healed) as archive:
        cookies = [dict(check.headers).get("Set-Cookie") for check in archive.history(PAGE)]
        assert cookies[:2] == ["n=1", "n=2"]
        (gone,) = archive.history(f"{PAGE}gone")
        assert len(archive.answers.error_body(gone.url, gone.checked_at)) > 70_000
        came = set(judged((healed.parent / "mistaken.warc").read_bytes()))
        assert came <= set(judged(exported(archive)))
