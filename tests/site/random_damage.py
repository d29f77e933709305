"""Damage of every kind in every file of an archive: right bytes or a named error, and repaired once and for all."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.config import ArchiveSettings, Settings
from letopis.errors import LetopisError
from letopis.exchange.replica import CloneSelection, clone, publish
from letopis.model import Put

_START = datetime(2026, 1, 1, tzinfo=UTC)


def damage_puts() -> list[Put]:
    """Versions of pages that share text."""
    return [
        Put(
            f"http://h{n % 2}.example/{n % 5}",
            b"<p>page %d " % n + b"word %d " % (n * n) * 40,
            _START + n * timedelta(hours=1),
        )
        for n in range(20)
    ]


def sound_archive(folder: Path) -> None:
    """Versions in a pack and in a log, an account with a token."""
    with Archive(folder) as archive:
        list(archive.put_many(damage_puts()[:12]))
        archive.compact()
        list(archive.put_many(damage_puts()[12:]))
        accounts = accounts_of(archive)
        accounts.create_token("laptop", accounts.add("ada", "owner", "a long password", 1), "read", 1)
        archive.catalog.tidy()


def wrong_reads(folder: Path, *, errors: bool = True) -> list[Put]:
    """The puts that read as something else; an error with a name is none of them where `errors` may come."""
    wrong = []
    with Archive(folder) as archive:
        for put in damage_puts():
            try:
                found = archive.get(put.url, at=put.at)
                wrong += [put] if found.time == put.at and found.body != put.body else []
                wrong += [put] if not errors and found.time != put.at else []
            except LetopisError:
                wrong += [] if errors else [put]
    return wrong


def _flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(1, len(data)) :]


def _blank(data: bytearray, chance: random.Random) -> None:
    """A block that the disk gives back as zeros."""
    start = chance.randrange(len(data))
    end = min(len(data), start + 512)
    data[start:end] = bytes(end - start)


def _swap(data: bytearray, chance: random.Random) -> None:
    """Bytes of one place at another."""
    size = min(64, len(data) // 3)
    here, there = (chance.randrange(len(data) - size) for _ in range(2))
    data[here : here + size] = data[there : there + size]


def _grow(data: bytearray, chance: random.Random) -> None:
    data += chance.randbytes(100)


WAYS: tuple[Callable[[bytearray, random.Random], None], ...] = (_flip, _flip, _flip, _cut, _blank, _swap, _grow)


def damage_file(file: Path, chance: random.Random) -> None:
    """Damages a file in one of the ways."""
    data = bytearray(file.read_bytes())
    chance.choice(WAYS)(data, chance)
    file.write_bytes(data)


@dataclass
class RandomDamage:
    """One sound archive and its publication, damaged anew for each number."""

    root: Path

    def __post_init__(self) -> None:
        sound_archive(self.root / "sound")
        with Archive(self.root / "sound") as archive:
            publish(archive, self.root / "published")

    def damage_one(self, number: int) -> None:
        """AssertionError when something was read wrongly, or complains after its repair."""
        chance = random.Random(number)
        if number % 4 == 3:
            self._damage_publication(chance)
            return
        folder = shutil.copytree(self.root / "sound", self.root / str(number))
        damage_file(chance.choice([folder / "catalogue.sqlite", *sorted((folder / "packs").glob("0*"))]), chance)
        try:
            self._look(folder)
            Archive.repair(Settings(archive=ArchiveSettings(path=str(folder))))
            with Archive(folder) as archive:
                assert list(map(str, archive.verify())) == [], "it complains after its repair"
            assert wrong_reads(folder) == []
        finally:
            shutil.rmtree(folder)

    def _look(self, folder: Path) -> None:
        try:
            Archive(folder).close()
        except LetopisError:
            return
        assert wrong_reads(folder) == []

    def _damage_publication(self, chance: random.Random) -> None:
        """What is cloned from damaged files is refused by name, or equals the origin."""
        published = shutil.copytree(self.root / "published", self.root / "damaged")
        files = sorted(file for file in published.rglob("*") if file.is_file() and file.stat().st_size)
        damage_file(chance.choice(files), chance)
        try:
            clone(str(published), self.root / "copy", CloneSelection(), Settings())
        except LetopisError:
            pass
        else:
            assert wrong_reads(self.root / "copy") == []
        finally:
            shutil.rmtree(published)
            shutil.rmtree(self.root / "copy", ignore_errors=True)


def page_of(file: Path, name: str) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0])


def overwrite_page(file: Path, page: int) -> None:
    data = bytearray(file.read_bytes())
    data[(page - 1) * 1024 : page * 1024] = b"\xa5" * 1024
    file.write_bytes(data)


def disorder_page(file: Path, page: int) -> None:
    """Gives the last row of a leaf the number 0, which belongs before the first."""
    data = bytearray(file.read_bytes())
    start = (page - 1) * 1024
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    assert (data[start], cells > 1) == (0x0D, True), "a leaf with rows"
    last = start + int.from_bytes(data[start + 6 + 2 * cells : start + 8 + 2 * cells], "big")
    while data[last] & 0x80:  # the length of the row
        last += 1
    data[last + 1] = 0
    file.write_bytes(data)
