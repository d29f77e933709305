"""Archives on media that cannot be written to are read like others, and say so to whoever wants to write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import pytest

from letopis.archive import Archive

pytestmark = pytest.mark.files
URL = "http://example.org/"
_MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


@contextmanager
def read_only(folder: Path, *words: str) -> Iterator[list[str]]:
    """A verb on an archive that cannot be written to; the superuser, whom modes do not stop, mounts it so."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    command = [sys.executable, "-m", "letopis.cli", "--archive", str(folder), *words]
    if os.geteuid() == 0:
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
            pytest.skip("MOUNTS ARE NOT ALLOWED HERE: archives on read-only media were not tried")
        command = ["unshare", "--mount", "sh", "-c", _MOUNTED, str(folder), *command]
    try:
        yield command
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def on_read_only_medium(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    with read_only(folder, *words) as command:
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def archived(folder: Path) -> Path:
    with Archive(folder) as archive:
        for day, word in ((1, "river"), (2, "stone")):
            archive.put(URL, f"<title>t</title><p>{word}".encode(), at=datetime(2026, 1, day, tzinfo=UTC))
    return folder


def test_everything_that_reads_works(tmp_path: Path) -> None:
    folder = archived(tmp_path / "a")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert json.loads(on_read_only_medium(folder, "--json", "stats").stdout)["versions"] == 2
    assert "stone" in on_read_only_medium(folder, "get", URL).stdout
    assert "river" in on_read_only_medium(folder, "get", URL, "--at", "2026-01-01").stdout
    assert URL in on_read_only_medium(folder, "search", "stone").stdout
    assert on_read_only_medium(folder, "verify").returncode == 0
    sound = on_read_only_medium(folder, "doctor")
    assert (sound.returncode, f"{folder} is read-only" in sound.stdout) == (0, True), sound
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_it_is_served(tmp_path: Path) -> None:
    with (
        read_only(archived(tmp_path / "a"), "serve", "--port", "0") as command,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving,
    ):
        assert serving.stdout is not None
        address = serving.stdout.readline().removeprefix("listening on ").strip()
        try:
            with urlopen(f"{address}api/v1/search?q=stone", timeout=300) as answer:
                assert json.load(answer)["results"][0]["url"] == URL
        finally:
            serving.terminate()
        assert serving.stderr is not None
        assert serving.stderr.read() == "", "an account could not be kept, so nobody is asked to make one"


def test_whoever_wants_to_write_is_refused_with_a_sentence(tmp_path: Path) -> None:
    folder = archived(tmp_path / "a")
    (tmp_path / "page").write_bytes(b"<p>new")
    for words in (("put", URL, str(tmp_path / "page")), ("watch", "add", URL), ("check", URL), ("compact",)):
        done = on_read_only_medium(folder, *words)
        assert (done.returncode, "is on a read-only medium" in done.stderr) == (7, True), (words, done.stderr)
