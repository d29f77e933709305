"""Random histories with everything that harms an archive: kills, older catalogues put back, clones that follow it.

The promise: every acknowledged version that retention has not dropped reads byte-exact after each step, a repair leaves
nothing to complain of, and every clone of the published archive equals it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from fault_points import Kill, Say, run_killed
from random_histories import RandomHistory, quick_coding
from replica_world import assert_equal

from letopis.archive import Archive
from letopis.config import Settings
from letopis.errors import UnknownUrl
from letopis.exchange.replica import CloneSelection, PullOptions, clone, publish, pull
from letopis.model import Put, to_millis

_CALLS = 60
"""About as many calls as a round of puts or a compaction makes."""


@dataclass(repr=False)
class FaultHistory(RandomHistory):
    """A random history in `folder / "origin"`; copies of its catalogue, its publication and clones lie beside it."""

    kills: int = 0
    clones: list[Path] = field(default_factory=list)
    copies: list[Path] = field(default_factory=list)
    repaired: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.root, self.folder = self.folder, self.folder / "origin"

    def live(self, steps: int) -> None:
        """So many steps of any kind, then the whole promise."""
        self._told(self.put)
        ways: list[tuple[Callable[[], None], int]] = [
            (self.put, 5), (self.look, 2), (self.compact, 2), (self.compact_full, 3), (self.retain, 1),
            (self.repair, 1), (self.rebuild, 1), (self.copy_catalogue, 3), (self.put_back, 3), (self.follow, 2),
            (self.killed_put, 2), (self.killed_compaction, 2),
        ]  # fmt: skip
        for way in self.chance.choices([way for way, _ in ways], [often for _, often in ways], k=steps):
            self._told(way)
        self._told(self.check_acknowledged)
        self._told(self.repair)
        self.check()
        self._told(self.follow)

    def copy_catalogue(self) -> None:
        """As a backup of the disk has it."""
        with self.open() as archive:
            archive.catalog.tidy()
        self.copies.append(self.root / f"copy-{len(self.copies)}")
        shutil.copy(self.folder / "catalogue.sqlite", self.copies[-1])

    def put_back(self) -> None:
        """An older catalogue beside newer packs, and what the timer does next."""
        if not self.copies:
            return
        for file in self.folder.glob("catalogue.sqlite*"):
            file.unlink()
        shutil.copy(self.chance.choice(self.copies), self.folder / "catalogue.sqlite")
        self.repaired = False  # it may name versions that retention has dropped since, bytes and all
        if self.chance.random() < 0.5:
            self.compact()

    def repair(self) -> None:
        report = Archive.repair(self.settings)
        assert report.lost == () or not self.repaired, (self, report)
        self.repaired = True

    def rebuild(self) -> None:
        super().rebuild()
        self.repaired = True

    def follow(self) -> None:
        """Publishes; a clone of an earlier step is pulled, and a new one made."""
        if not self.repaired:
            self.repair()
        with self.open() as origin:
            publish(origin, self.root / "published", grace=0.0)
            for older in self.clones[-1:]:
                pull(older, PullOptions(repack=self.chance.random() < 0.3), Settings())
            self.clones.append(self.root / f"clone-{len(self.clones)}")
            clone(str(self.root / "published"), self.clones[-1], CloneSelection(), Settings())
            for copy in self.clones[-2:]:
                assert_equal(origin, copy)

    def killed_put(self) -> None:
        """A writer that is killed: what it had said is there; what it had not said may be."""
        puts = self.new_puts()

        def work(say: Say) -> None:
            with self.open() as archive:
                for number, put in enumerate(puts):
                    if archive.put(put.url, put.body, put.at).stored:
                        say(str(number))

        said = set(map(int, self._killed(work)))
        with self.open() as archive:
            for number, put in enumerate(puts):
                if number in said or self._is_there(archive, put):
                    self.acknowledged[put.url, _millis(put)] = put.body

    def killed_compaction(self) -> None:
        full = self.chance.random() < 0.5

        def work(say: Say) -> None:
            with self.open() as archive:
                archive.compact(effort="full" if full else "quick")

        self._killed(work)

    def _killed(self, work: Callable[[Say], None]) -> list[str]:
        kill = Kill(self.chance.randrange(1, _CALLS), after=self.chance.random() < 0.5)
        if self.chance.random() < 0.2:
            kill = Kill(seconds=self.chance.uniform(0.001, 0.05))
        outcome = run_killed(work, kill)
        self.kills += outcome.killed
        return outcome.said

    def _is_there(self, archive: Archive, put: Put) -> bool:
        try:
            return any(to_millis(version.time) == _millis(put) for version in archive.versions(put.url))
        except UnknownUrl:
            return False


def _millis(put: Put) -> int:
    assert isinstance(put.at, datetime)
    return to_millis(put.at)


def live_through(folder: Path, number: int) -> FaultHistory:
    """The history of that number; every fiftieth is coded in full."""
    history = FaultHistory(folder, number)
    try:
        if number % 50:
            with quick_coding():
                history.live(6)
        else:
            history.live(6)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return history
