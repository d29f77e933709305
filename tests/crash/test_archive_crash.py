"""kill -9 under load: no acknowledged version is lost, and the next open needs no hands."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.model import to_millis

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


def test_no_acknowledged_set_is_lost_and_none_lacks_a_member(tmp_path: Path) -> None:
    chance = random.Random(5)
    acknowledged: set[int] = set()
    for _ in range(ROUNDS):
        lines = killed_after(tmp_path / "a", "sets", chance.randrange(1, 30))
        acknowledged |= {int(line.split()[1]) for line in lines}
        with Archive(tmp_path / "a") as archive:
            assert list(archive.verify()) == []
            sets = archive.sets.of("http://h.example/")
            assert acknowledged <= {to_millis(found.time) for found in sets}
            for found in sets:
                members = archive.sets.members(found)
                assert len(members) == 3
                # The first resource changes at each look: what is valid at a member's time came with its own look.
                # Of a look that was killed before its commit the packs may know the resource already, then the look
                # is made again a moment later.
                style = next(one for one in members if one.url == "http://h.example/1")
                look = (style.time - datetime(2026, 1, 1, tzinfo=UTC)) // timedelta(minutes=1)
                assert archive.answers.at(style.url, style.time).body.startswith(
                    b"<p>document 1 line 0 of version %d</p>" % look
                )
                assert archive.sets.text(found).startswith("text ")
    assert acknowledged
