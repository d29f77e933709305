"""The verbs with `--cluster`: what they print and write is what they print and write without it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dask_workers import OF_THE_LIBRARY, Workers
from services import variables

from letopis.archive import Archive, cluster
from letopis.cli.main import main
from letopis.config import ArchiveSettings, Settings
from letopis.exchange import selection
from letopis.index import link_index, near_duplicates
from letopis.index import word_index as words_follower
from letopis.model import Put

pytestmark = OF_THE_LIBRARY
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXT = " ".join(f"word{place} of many" for place in range(60))
Run = Callable[..., str]


def page(number: int) -> bytes:
    links = "".join(f'<a href="/{child or ""}">to {child}</a>' for child in range(number, number + 4))
    return f"<title>Page {number}</title><p>{TEXT} number {number % 3}</p>{links}".encode()


@pytest.fixture
def run(
    scaled_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Verbs on an archive of twenty pages, on machines that are told apart by the folder of their indexes."""
    for module, name, value in (
        (link_index, "PIECE", 5), (words_follower, "PIECE", 5), (near_duplicates, "_PIECE", 5), (selection, "_URLS", 5),
        (cluster, "MIN_RANGE_DOCUMENTS", 5),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    for variable, text in variables(scaled_settings.database.url, scaled_settings.store).items():
        monkeypatch.setenv(variable, text)
    with Archive(tmp_path / "first", settings=scaled_settings) as archive:
        urls = [f"http://a.example/{number or ''}" for number in range(20)]
        list(archive.put_many(Put(url, page(number), NOON) for number, url in enumerate(urls)))

    def run(machine: str, *words: str) -> str:
        status = main([*words, "--archive", str(tmp_path / machine)])
        told = capsys.readouterr()
        assert status == 0, told.err
        return told.out

    return run


@pytest.fixture
def address(workers: Workers, client: object) -> str:
    """Of a cluster whose workers are there."""
    return workers.address


@pytest.mark.parametrize(
    "words",
    [
        ("map", "a.example", "--format", "json"),
        ("rank", "a.example", "--json"),
        ("search", "number", "--rebuild", "--facets", "--json"),
        ("duplicates", "a.example", "--json"),
        ("duplicates", "http://a.example/3", "--json"),
        ("export", "cdxj"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_verb_answers_the_same_with_a_cluster(run: Run, address: str, words: tuple[str, ...]) -> None:
    alone = run("here", *words)
    assert alone
    assert run("there", *words, "--cluster", address) == alone


def test_export_and_compact_work_on_a_cluster(run: Run, address: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("before.warc.gz", "there.warc.gz", "after.warc.gz")]
    run("here", "export", "warc", "-o", str(files[0]))
    run("there", "export", "warc", "-o", str(files[1]), "--cluster", address)
    assert '"moved": 20' in run("there", "compact", "--json", "--cluster", address)
    run("here", "export", "warc", "-o", str(files[2]))
    assert len({file.read_bytes() for file in files}) == 1
    assert run("here", "verify") == ""


def test_a_cluster_that_does_not_answer_or_cannot_see_the_archive_is_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Archive(settings=Settings(archive=ArchiveSettings(path=str(tmp_path / "files")))) as archive:
        archive.put("http://a.example/", page(0), NOON)
    for name in ("LETOPIS_DATABASE_URL", "LETOPIS_STORE_URL"):
        monkeypatch.delenv(name)
    for verb in (("map", "a.example"), ("compact",), ("export", "warc"), ("duplicates", "a.example"), ("search", "x")):
        assert main([*verb, "--archive", str(tmp_path / "files"), "--cluster", "tcp://127.0.0.1:9"]) == 2
        assert "set database.url and store.url" in capsys.readouterr().err
