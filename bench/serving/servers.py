"""Both servers as processes of their own, and what CPU time they have used."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPConnection, HTTPException, RemoteDisconnected
from pathlib import Path

from bench.serving.captures import Scene

HOME = Path(__file__).parent.parent.parent / ".bench" / "serve"
PEERS = ("pywb==2.10.0", "setuptools<81")
_TICKS = os.sysconf("SC_CLK_TCK")


def stamp_at(moment: datetime) -> str:
    """14 digits."""
    return moment.strftime("%Y%m%d%H%M%S")


class Served:
    """A running server and a kept connection to it."""

    def __init__(self, name: str, process: subprocess.Popen[str], port: int) -> None:
        self.name = name
        self.port = port
        self._process = process
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self._connection.request("GET", path, headers=fields)
            answer = self._connection.getresponse()
        except RemoteDisconnected:
            # An idle connection was closed while the other server was measured.
            self.hang_up()
            self._connection.request("GET", path, headers=fields)
            answer = self._connection.getresponse()
        body = answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body

    def cpu(self) -> float:
        """Seconds of user and system time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> float:
        """Mebibytes that it holds: its own, and its part of what it shares with other processes."""
        lines = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024

    def hang_up(self) -> None:
        """Drops the connection; the next question opens another."""
        self._connection.close()

    def close(self) -> None:
        """Ends the process that was started here."""
        self._connection.close()
        self._process.terminate()
        self._process.wait(20)


def peer(name: str) -> Path:
    """A program of the peers' own environment, made at the first use."""
    if not (HOME / "bin" / name).exists():
        venv.create(HOME, with_pip=True)
        subprocess.run([HOME / "bin" / "pip", "install", "-q", *PEERS], check=True)
    return HOME / "bin" / name


def ours(archive: Path) -> Served:
    """Our server on a free port."""
    command = [sys.executable, "-m", "letopis.cli", "serve", "--port", "0", "--archive", str(archive)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    found = re.search(r":(\d+)/", process.stdout.readline())
    assert found is not None, "the server did not start"
    return Served("letopis", process, int(found[1]))


def pywb(scene: Scene, port: int = 0) -> Served:
    """Starts pywb over the WARC file, indexed by itself."""
    folder = scene.folder / "pywb"
    folder.mkdir()
    (folder / "config.yaml").write_text("framed_replay: false\nredirect_to_exact: true\n")
    manager = peer("wb-manager")
    for words in (["init", "coll"], ["add", "coll", str(scene.warc)]):
        subprocess.run([manager, *words], cwd=folder, check=True, capture_output=True)
    port = port or _free_port()
    process = subprocess.Popen(
        [peer("wayback"), "-p", str(port), "-b", "127.0.0.1"], cwd=folder, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    served = Served("pywb", process, port)
    _wait(served)
    return served


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(served: Served) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            served.ask("/")
            return
        except (OSError, HTTPException):
            served.hang_up()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@contextmanager
def both(scene: Scene) -> Iterator[tuple[Served, Served]]:
    """Ours and pywb, over the same captures."""
    mine = ours(scene.archive)
    try:
        theirs = pywb(scene)
        try:
            yield mine, theirs
        finally:
            theirs.close()
    finally:
        mine.close()
