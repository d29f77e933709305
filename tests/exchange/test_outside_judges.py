"""Programs of others judge our exports. They live in environments of their own, made when LETOPIS_LONG=1."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import time
import venv
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest
from exchanged_archives import told
from free_port import free_port
from served_archive import running
from walked_world import walked_world
from written_warc import export_warc

from letopis.archive import Archive
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz

BENCH = Path(__file__).parents[2] / ".bench"
HOMES = {"judges": ("wacz", "cdxj-indexer", "setuptools<81"), "serve": ("pywb==2.10.0", "setuptools<81")}


def program(home: str, name: str) -> Path:
    """A program of an environment, which is made at the first long run."""
    found = BENCH / home / "bin" / name
    if not found.exists():
        if not os.environ.get("LETOPIS_LONG"):
            pytest.skip(f"{name} is not here; LETOPIS_LONG=1 installs it under .bench")
        venv.create(BENCH / home, with_pip=True)
        subprocess.run([BENCH / home / "bin" / "pip", "install", "-q", *HOMES[home]], check=True, timeout=600)
    return found


@pytest.fixture(scope="module")
def warc(walked: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("judged") / "world.warc.gz"
    with file.open("wb") as out:
        export_warc(walked, out, ExportSelection())
    return file


def run(*words: str | Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_warcio_check_is_clean(warc: Path) -> None:
    assert "digest fail" not in run(program("judges", "warcio"), "check", "-v", warc)


def test_wacz_validate_is_clean(walked: Archive, tmp_path: Path) -> None:
    export_wacz(walked, tmp_path / "world.wacz", ExportSelection())
    assert "Validation succeeded" in run(program("judges", "wacz"), "validate", "-f", tmp_path / "world.wacz")


def test_a_wacz_of_others_comes_in(walked: Archive, warc: Path, tmp_path: Path) -> None:
    run(program("judges", "wacz"), "create", "--detect-pages", "-o", tmp_path / "theirs.wacz", warc)
    with Archive(tmp_path / "again") as second:
        report = import_sources(second, [str(tmp_path / "theirs.wacz")])
        assert dict(report.refused) == {}
        assert told(second) == told(walked)


def test_our_index_is_the_one_that_cdxj_indexer_makes(walked: Archive, warc: Path, tmp_path: Path) -> None:
    theirs = run(program("judges", "cdxj-indexer"), "--sort", warc).splitlines()
    export_wacz(walked, tmp_path / "world.wacz", ExportSelection())
    with zipfile.ZipFile(tmp_path / "world.wacz") as package:
        ours = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
    assert ours == [line.replace('"world.warc.gz"', '"data-00000.warc.gz"') for line in theirs]


@contextmanager
def wayback(folder: Path) -> Iterator[int]:
    """The port of a pywb over the collections of a folder."""
    port = free_port()
    command = [program("serve", "wayback"), "-p", str(port), "-b", "127.0.0.1"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield _ready(port)
    finally:
        process.terminate()
        process.wait(300)


@pytest.fixture(scope="module")
def pywb(warc: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """With the exported file as its only collection."""
    folder = tmp_path_factory.mktemp("pywb")
    manager = program("serve", "wb-manager")
    for words in (["init", "coll"], ["add", "coll", str(warc)]):
        subprocess.run([manager, *words], cwd=folder, check=True, capture_output=True, timeout=300)
    with wayback(folder) as port:
        yield port


def _ready(port: int) -> int:
    for _ in range(1500):
        try:
            ask(port, "/")
            return port
        except (OSError, HTTPException):
            time.sleep(0.2)
    raise AssertionError("pywb did not start")


def ask(port: int, path: str) -> tuple[int, bytes]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_pywb_replays_every_version(walked: Archive, pywb: int) -> None:
    for row in walked.catalog.resources.all():
        for version in walked.versions(row.url):
            status, body = ask(pywb, f"/coll/{version.time:%Y%m%d%H%M%S}id_/{row.url}")
            assert (status, body) == (200, walked.get(row.url, version=version.number).body)


def test_pywb_replays_revisits_with_the_page_they_found(walked: Archive, pywb: int) -> None:
    url = walked_world().url(1, 0)
    revisit = walked.history(url)[-1]
    status, body = ask(pywb, f"/coll/{revisit.checked_at:%Y%m%d%H%M%S}id_/{url}")
    assert (status, body) == (200, walked.get(url, version=0).body)


def test_pywb_lists_all_captures(walked: Archive, pywb: int) -> None:
    url = walked_world().url(0, 0)
    _, body = ask(pywb, f"/coll/cdx?url={url}&output=json")
    stamps = [json.loads(line)["timestamp"] for line in body.splitlines()]
    assert stamps == [f"{check.checked_at:%Y%m%d%H%M%S}" for check in walked.history(url)]


def test_pywb_shows_an_archive_that_we_serve(walked: Archive, tmp_path: Path) -> None:
    url = walked_world().url(0, 0)
    program("serve", "wayback")
    with running(walked) as client:
        (tmp_path / "config.yaml").write_text(f"collections:\n  letopis: memento+{client.address}/web/\n")
        with wayback(tmp_path) as port:
            for version in walked.versions(url):
                status, body = ask(port, f"/letopis/{version.time:%Y%m%d%H%M%S}id_/{url}")
                assert (status, body) == (200, walked.get(url, version=version.number).body)
