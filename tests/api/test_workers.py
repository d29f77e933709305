"""Several processes on one socket: all answer, the dead are replaced, a stop leaves nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

import pytest
from patience import until

from letopis import Archive

_PATIENCE = 300


def children(process: int) -> set[int]:
    """Processes that a process has started and that still run."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == process and fields[0] != "Z":
                found.add(int(entry.name))
    return found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://example.org/", b"<title>Here</title>")
    words = ["--archive", str(tmp_path / "a"), "serve", "--port", "0", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "letopis.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    address = process.stdout.readline().split()[-1]
    yield process, address
    if process.poll() is None:
        process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()


def both_of(process: subprocess.Popen[str]) -> set[int]:
    """The workers, once both are there."""
    until(lambda: len(children(process.pid)) == 2)
    return children(process.pid)


def status(address: str) -> int:
    with urlopen(f"{address}web/http://example.org/", timeout=_PATIENCE) as answer:
        return int(answer.status)


def test_a_killed_worker_is_replaced_and_nobody_is_refused(service: tuple[subprocess.Popen[str], str]) -> None:
    process, address = service
    first = both_of(process)
    os.kill(min(first), signal.SIGKILL)
    until(lambda: len(children(process.pid) - first) == 1)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(status, [address] * 40)) == {200}


def test_a_stop_ends_all_workers(service: tuple[subprocess.Popen[str], str]) -> None:
    process, address = service
    workers = both_of(process)
    assert status(address) == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(_PATIENCE) == 0
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def test_workers_do_not_outlive_whoever_leads_them(service: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = service
    workers = both_of(process)
    process.kill()
    process.wait()
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def set_up(address: str, code: str) -> int:
    """The status for an owner whose password is too short, which is looked at only after the code."""
    form = urlencode({"name": "anna", "password": "short", "code": code}).encode()
    try:
        with urlopen(Request(f"{address}setup", form), timeout=_PATIENCE) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_all_workers_know_the_code_of_the_first_owner(service: tuple[subprocess.Popen[str], str]) -> None:
    process, address = service
    assert process.stderr is not None
    told = process.stderr.readline()
    assert f"{address}login?setup=" in told
    code = parse_qs(urlsplit(told.split()[-1]).query)["setup"][0]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: set_up(address, code), range(3)))
    assert answers == [422] * 3
