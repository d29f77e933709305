"""The database of an archive is lost, its packs in the object store are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.config import ArchiveSettings, DatabaseSettings, Settings
from letopis.errors import Damaged
from letopis.model import Put
from letopis.store.bucket import Bucket

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PUTS = [
    Put(f"http://h.example/{page}", b"<p>page %d version %d" % (page, version), NOON + timedelta(days=version))
    for page in range(3)
    for version in range(3)
]


class Killed(BaseException):
    """Nobody catches it."""


@pytest.fixture
def emptied(scaled_settings: Settings, tmp_path: Path, new_database: Callable[[], str]) -> Callable[[], Settings]:
    """An archive was recorded; each call names its packs with another, empty database."""
    settings = replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))
    with Archive.open(settings) as archive:
        list(archive.put_many(PUTS))
        archive.compact()
    return lambda: replace(settings, database=DatabaseSettings(url=new_database()))


def assert_whole(settings: Settings) -> None:
    with Archive.open(settings) as archive:
        assert [archive.get(put.url, at=put.at).body for put in PUTS] == [put.body for put in PUTS]
        assert list(archive.verify()) == []


def test_packs_without_their_database_are_no_new_archive_and_build_it_anew(emptied: Callable[[], Settings]) -> None:
    settings = emptied()
    with pytest.raises(Damaged, match=r"Archive\.repair"), Archive.open(settings):
        pass
    assert Archive.repair(settings).versions == len(PUTS)
    assert_whole(settings)


def test_a_database_that_is_half_rebuilt_asks_for_an_empty_one(emptied: Callable[[], Settings]) -> None:
    settings = emptied()
    with pytest.raises(Killed), Archive(settings=settings, rebuilding=True) as archive, archive.catalog.rebuilding():
        raise Killed
    with pytest.raises(Damaged, match="empty one"):
        Archive.repair(settings)
    another = emptied()
    assert Archive.repair(another).versions == len(PUTS)
    assert_whole(another)


def test_a_pack_that_is_back_in_the_bucket_after_a_repair_brings_its_versions(scaled_settings: Settings) -> None:
    with Archive.open(scaled_settings) as archive:
        list(archive.put_many(PUTS))
        archive.compact()
    packs = Bucket(scaled_settings.store)
    [name] = [name for name in packs.sizes() if name.endswith(".pack")]
    held = packs.whole(name)
    packs.delete([name])
    assert len(Archive.repair(scaled_settings).lost) == len(PUTS)
    packs.replace(name, held)
    with Archive.open(scaled_settings) as archive:
        archive.put("http://h.example/new", b"<p>new", NOON)
        archive.compact()
    assert_whole(scaled_settings)
