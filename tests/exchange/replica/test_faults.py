"""kill -9, cut connections and lying servers: the clone is right, or says what is wrong and goes on later."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from replica_world import Replica

from letopis.archive import Archive
from letopis.errors import LetopisError
from letopis.exchange.replica import CloneSelection, PullOptions, clone, pull

LONG = bool(os.environ.get("LETOPIS_LONG"))
ROUNDS = 400 if LONG else 10
CHILD = Path(__file__).with_name("pull_child.py")


def died(origin: str, copy: Path, left: int) -> bool:
    child = subprocess.run([sys.executable, CHILD, origin, str(copy), str(left)], capture_output=True, timeout=300)
    assert child.returncode in (0, -signal.SIGKILL), child.stderr.decode()
    return child.returncode != 0


@pytest.mark.parametrize("first", [True, False])
def test_a_run_killed_at_any_write_point_is_resumed(replica: Replica, first: bool) -> None:
    """Before each kill the clone shows a sound state; the run after it needs no hands."""
    chance = random.Random(str(first))
    replica.add(6)
    if not first:
        replica.clone()
        replica.add(6, start=6)
        replica.archive.compact(effort="quick")
    replica.publish()
    shutil.copytree(replica.copy, replica.folder / "before") if not first else None
    points = range(1, 200) if LONG else sorted(chance.sample(range(1, 44), 3))
    for left in points:
        shutil.rmtree(replica.copy, ignore_errors=True)
        if not first:
            shutil.copytree(replica.folder / "before", replica.copy)
        killed = died(str(replica.published), replica.copy, left)
        if (replica.copy / "replica" / "clone.json").exists():
            with Archive(replica.copy) as copy:
                assert list(copy.verify()) == []
        died(str(replica.published), replica.copy, 0)
        replica.assert_equal()
        if not killed:
            break
    assert list((replica.copy / "replica" / "parts").iterdir()) == []


def test_kills_at_random_moments_over_several_releases(replica: Replica) -> None:
    """The origin goes on meanwhile: a run may be broken off towards one release and finished at another."""
    chance = random.Random(7)
    for step in range(40 if LONG else 4):
        replica.add(5, start=5 * step)
        if step % 3 == 2:
            replica.archive.compact(effort="quick")
        replica.publish(grace=0)
        for _ in range(chance.randrange(1, 3)):
            died(str(replica.published), replica.copy, chance.randrange(2, 50))
    died(str(replica.published), replica.copy, 0)
    replica.assert_equal()


def test_cut_connections_are_resumed_where_they_broke(replica: Replica) -> None:
    replica.add(300)
    replica.publish()
    size = (replica.published / "packs" / "00000001.log.0").stat().st_size
    whole = sum(file.stat().st_size for file in replica.published.rglob("*") if file.is_file())
    budget = [size // 3]

    def cut(path: str, length: int) -> int | None:
        if "packs" not in path:
            return None
        budget[0] -= length
        return max(0, length + budget[0]) if budget[0] < 0 else None

    replica.site.cut = cut
    for _ in range(3):
        with pytest.raises(LetopisError) as caught:
            replica.clone()
        assert caught.value.exit_status == 4
    replica.site.cut = lambda path, length: None
    replica.site.sent = 0
    replica.clone()
    assert replica.site.sent <= whole - size // 4, "what came before the cut is not fetched again"
    replica.assert_equal()


def liar(rng: random.Random) -> Callable[[str, bytes], bytes]:
    def lie(path: str, data: bytes) -> bytes:
        if rng.random() < 0.6 or not data:
            return data
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            return data[:at]
        if kind == 1:
            return data + rng.randbytes(rng.randrange(1, 9))
        if kind == 2:
            return rng.randbytes(len(data))
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]

    return lie


def test_whatever_a_server_says_the_clone_is_right_or_says_what_is_wrong(replica: Replica) -> None:
    replica.clone()
    shutil.copytree(replica.copy, replica.folder / "before")
    with Archive(replica.copy) as copy:
        old = copy.catalog.totals()
    replica.add(12)
    if LONG:
        replica.archive.compact(effort="quick")
    replica.publish()
    new = replica.archive.catalog.totals()
    ended: set[str] = set()
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        shutil.rmtree(replica.copy)
        shutil.copytree(replica.folder / "before", replica.copy)
        replica.site.spoil, replica.site.ranges = liar(rng), rng.random() < 0.8
        replica.site.cut = lambda path, size, rng=rng: rng.randrange(size + 1) if rng.random() < 0.1 else None  # type: ignore[misc]
        try:
            replica.pull()
            ended.add("right")
            replica.assert_equal()
        except LetopisError as wrong:
            ended.add(type(wrong).__name__)
            with Archive(replica.copy) as copy:
                told = copy.catalog.totals()._replace(hosts=0, contents=0)
                assert told in (old._replace(hosts=0, contents=0), new._replace(hosts=0, contents=0))
    replica.site.spoil, replica.site.ranges = lambda path, data: data, True
    replica.site.cut = lambda path, size: None
    replica.pull()
    replica.assert_equal()
    assert {"Damaged", "Unavailable"} & ended


def test_a_lying_server_cannot_spoil_a_site_clone(replica: Replica, tmp_path: Path) -> None:
    ended: set[str] = set()
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        replica.site.spoil = liar(rng)
        target = tmp_path / f"site{seed}"
        try:
            clone(replica.site.address, target, CloneSelection(site="example.org"), replica.settings)
            ended.add("right")
        except LetopisError as wrong:
            ended.add(type(wrong).__name__)
        replica.site.spoil = lambda path, data: data
        if (target / "replica" / "clone.json").exists():
            pull(target, PullOptions(), replica.settings)
            with Archive(target) as copy:
                assert list(copy.verify()) == []
                assert copy.history("http://example.org/page") == replica.archive.history("http://example.org/page")
    assert len(ended) > 1
