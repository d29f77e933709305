"""Letopis over a WARC file, and pywb over the same one in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

from free_port import free_port
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.exchange.imports import import_sources

_LONGEST_START = 600.0
"""Seconds that a server of somebody else may take to start: how fast it does is no question of ours."""


@contextmanager
def served_warc(folder: Path, file: Path) -> Iterator[WebClient]:
    """A server over an archive into which the file was imported."""
    with Archive(folder / f"archive-{file.stem}") as archive:
        import_sources(archive, [file])
        with running(archive) as web:
            yield web


def answered(web: Any, path: str) -> tuple[int, str, bytes]:
    """Status, Location and body."""
    answer = web.get(path)
    return answer.status, answer.headers.get("location", ""), answer.body


class Peer:
    """A server of somebody else on loopback, until the block ends."""

    def __init__(self, command: Sequence[str], folder: Path, port: int) -> None:
        self._command, self._folder, self._port = list(command), folder, port

    @classmethod
    def pywb(cls, folder: Path, environment: Path, files: Sequence[Path]) -> Self:
        """pywb with one collection, `all`."""
        home = folder / "pywb"
        home.mkdir(parents=True, exist_ok=True)
        tools = environment / "bin"
        say: dict[str, Any] = {"cwd": home, "check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([tools / "wb-manager", "init", "all"], **say)
        subprocess.run([tools / "wb-manager", "add", "all", *map(str, files)], **say)
        port = free_port()
        return cls([str(tools / "wayback"), "-p", str(port), "-b", "127.0.0.1"], home, port)

    def __enter__(self) -> WebClient:
        self._process = subprocess.Popen(
            self._command, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ}
        )
        ends = time.monotonic() + _LONGEST_START
        while True:
            try:
                probe = HTTPConnection("127.0.0.1", self._port, timeout=5)
                probe.request("GET", "/")
                probe.getresponse().read()
                break
            except OSError:
                assert self._process.poll() is None, f"{self._command[0]} does not start"
                assert time.monotonic() < ends, f"{self._command[0]} answers nobody"
                time.sleep(0.1)
        return WebClient(f"http://127.0.0.1:{self._port}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(300)
