"""`letopis serve` runs what it takes: watches and crawls, each by one process however many serve the archive."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import until
from scripted_site import ScriptedSite

from letopis import Archive
from letopis.cli import main
from letopis.errors import UnknownUrl


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[None]:
    """A process that answers; it has ended in order when the block is left."""
    command = [sys.executable, "-m", "letopis.cli", "--archive", str(folder), "serve", "--port", "0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("listening on http://")
        yield
        process.terminate()
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def recorded(folder: Path, url: str) -> int:
    with Archive(folder) as archive:
        try:
            return len(archive.history(url))
        except UnknownUrl:
            return 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_watches_and_crawls_are_run_once_by_all_who_serve(
    tmp_path: Path, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("LETOPIS_CRAWL_DELAY", "0")
    folder = tmp_path / "a"
    watched = scripted_site.set("/watched", b"<p>Watched</p>")
    seed = scripted_site.set("/seed", b"<a href='/linked'>on</a>")
    linked = scripted_site.set("/linked", b"<p>Linked</p>")
    assert main(["--archive", str(folder), "init"]) == 0
    with serving(folder, "--workers", workers), serving(folder):
        assert main(["--archive", str(folder), "watch", "add", watched, "--every", "1h"]) == 0
        assert main(["--archive", str(folder), "crawls", "add", seed]) == 0
        until(lambda: all(recorded(folder, url) for url in (watched, seed, linked)))
    asked = [path for _, path, _ in scripted_site.log if path != "/robots.txt"]
    assert sorted(asked) == ["/linked", "/seed", "/watched"]


def test_whoever_only_answers_leaves_the_work_to_others(
    tmp_path: Path, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETOPIS_SERVE_WORK", "false")
    watched = scripted_site.set("/watched", b"<p>Watched</p>")
    assert main(["--archive", str(tmp_path / "a"), "watch", "add", watched]) == 0
    with serving(tmp_path / "a"):
        pass
    assert scripted_site.log == []
