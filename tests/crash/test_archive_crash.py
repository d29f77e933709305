"""kill -9 under load: no acknowledged version is lost, and the next open needs no hands."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from letopis.archive import Archive

ROUNDS = 150 if os.environ.get("LETOPIS_LONG") else 6
CHILD = Path(__file__).with_name("archive_child.py")


def killed_after(folder: Path, mode: str, lines: int) -> list[str]:
    """What a child had acknowledged when it was killed, some lines later than asked."""
    child = subprocess.Popen([sys.executable, CHILD, folder, mode], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    seen = []
    for line in child.stdout:
        seen.append(line)
        if len(seen) == lines:
            child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return [line for line in seen if line.endswith("\n")]


@pytest.mark.parametrize("mode", ["put", "compact"])
def test_no_acknowledged_version_is_lost(tmp_path: Path, mode: str) -> None:
    chance = random.Random(mode)
    acknowledged: dict[tuple[str, int], str] = {}
    for _ in range(ROUNDS):
        for line in killed_after(tmp_path / "a", mode, chance.randrange(1, 60)):
            url, number, digest = line.split()
            acknowledged[url, int(number)] = digest
        with Archive(tmp_path / "a") as archive:
            assert list(archive.verify()) == []
            for (url, version), digest in acknowledged.items():
                assert archive.get(url, version=version).digest == digest
    assert acknowledged
