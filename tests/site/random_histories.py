"""Random histories of one archive: rounds of puts and looks, compaction, retention, repair."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from letopis.archive import Archive
from letopis.archive.records import NewCapture
from letopis.config import ArchiveSettings, Settings, StoreSettings
from letopis.model import Outcome, Put, to_millis
from letopis.store.solid import stream

_START = datetime(2026, 1, 1, tzinfo=UTC)
_SITES = 2
_PAGES = 5


@dataclass
class RandomHistory:
    """An archive in a folder, and every version that was acknowledged and not dropped by retention since."""

    folder: Path
    seed: int
    acknowledged: dict[tuple[str, int], bytes] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.moment = _START
        self.bodies: dict[str, list[str]] = {}
        self.frames = [_lines(self.chance, 40) for _ in range(_SITES)]

    @property
    def settings(self) -> Settings:
        return Settings(archive=ArchiveSettings(path=str(self.folder)), store=StoreSettings())

    def open(self, keep: int = 0) -> Archive:
        settings = replace(self.settings, store=StoreSettings(keep_versions=keep))
        return Archive(settings=settings, clock=lambda: self.moment)

    def steps(self, count: int) -> None:
        """Some steps, a round of puts first of all."""
        self._told(self.put)
        ways: list[Callable[[], None]] = [self.put, self.put, self.look, self.compact, self.compact_full, self.retain]
        for way in self.chance.choices([*ways, self.repair, self.rebuild], [4, 4, 2, 2, 4, 1, 1, 1], k=count - 1):
            self._told(way)

    def _told(self, way: Callable[[], None]) -> None:
        self.told.append(way.__name__)
        way()

    def new_puts(self) -> list[Put]:
        """New versions of some pages; most of a page is what its whole site shows."""
        puts = []
        for _ in range(self.chance.randrange(1, 8)):
            self.moment += timedelta(hours=1)
            site, page = self.chance.randrange(_SITES), self.chance.randrange(_PAGES)
            url = f"http://s{site}.example/{page}"
            lines = self.bodies.setdefault(url, _lines(self.chance, 6))
            lines[self.chance.randrange(len(lines))] = _lines(self.chance, 1)[0]
            text = "\n".join([*self.frames[site], *lines])
            older = [body for (known, _), body in self.acknowledged.items() if known == url]
            body = self.chance.choice(older) if older and self.chance.random() < 0.2 else text.encode()
            puts.append(Put(url, body, self.moment))
        return puts

    def put(self) -> None:
        puts = self.new_puts()
        with self.open() as archive:
            for put, done in zip(puts, list(archive.put_many(puts)), strict=True):
                if done.stored:
                    self.acknowledged[put.url, to_millis(done.time)] = put.body

    def look(self) -> None:
        """Checks that find an error with a body, a redirect, and nothing new."""
        self.moment += timedelta(hours=1)
        url, time = f"http://s0.example/{self.chance.randrange(_PAGES)}", to_millis(self.moment)
        error = b"<h1>gone %d</h1>" % self.chance.randrange(3)
        looks = [
            NewCapture(url, time, 404, (("Content-Type", "text/html"),), error, Outcome.UNAVAILABLE, versioned=False),
            NewCapture(url, time + 1, 301, (("Location", "/x"),), b"moved", Outcome.UNAVAILABLE, versioned=False),
            NewCapture(url, time + 2, 0, (), None, Outcome.UNAVAILABLE, versioned=False),
        ]
        with self.open() as archive:
            archive.commit(looks)

    def compact(self) -> None:
        with self.open() as archive:
            archive.compact(effort="quick")

    def compact_full(self) -> None:
        with self.open() as archive:
            archive.compact()

    def retain(self) -> None:
        """Keeps the newest few versions of each page."""
        keep = self.chance.randrange(1, 4)
        with self.open(keep) as archive:
            archive.compact(effort=self.chance.choice(["quick", "full"]))
        for url in {url for url, _ in self.acknowledged}:
            times = sorted(time for known, time in self.acknowledged if known == url)
            for time in times[:-keep]:
                del self.acknowledged[url, time]

    def repair(self) -> None:
        report = Archive.repair(self.settings)
        assert report.lost == ()

    def rebuild(self) -> None:
        """The catalogue is lost and made anew of the packs; retention drops once more what it had dropped."""
        for file in self.folder.glob("catalogue.sqlite*"):
            file.unlink()
        report = Archive.repair(self.settings)
        assert report.lost == ()

    def check(self) -> None:
        """Every acknowledged version reads as it was put, and every byte is sound."""
        with self.open() as archive:
            assert list(archive.verify()) == [], self
        self.check_acknowledged()

    def check_acknowledged(self) -> None:
        with self.open() as archive:
            for (url, time), body in self.acknowledged.items():
                moment = _START.fromtimestamp(time / 1000, UTC)
                found = archive.get(url, at=moment)
                assert (to_millis(found.time), found.body) == (time, body), (self, url, time)

    def __repr__(self) -> str:
        return f"history {self.seed}: {' '.join(self.told)}"


@contextmanager
def quick_coding() -> Iterator[None]:
    """Compaction searches less for the shortest form; packs are built the same."""
    coded = stream._brotli_parts
    with patch.object(stream, "_brotli_parts", lambda texts, quality, window: coded(texts, min(quality, 5), window)):
        yield


def _lines(chance: random.Random, count: int) -> list[str]:
    return [f"<p><a href='/{chance.randrange(10**9)}'>{chance.randrange(10**12)}</a></p>" for _ in range(count)]
