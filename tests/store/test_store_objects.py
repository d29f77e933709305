"""Packs in an object store, beyond what every backend must do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from services import ObjectServer

from letopis.config import StoreSettings
from letopis.errors import Busy, MissingExtra, SettingError
from letopis.store.bucket import BlockCache, Bucket
from letopis.store.object_backend import ObjectBackend, WriterCoordination

NAME = "00000001.pack"


def backend(server: ObjectServer, folder: Path, url: str = "", limit: int = 1 << 30) -> ObjectBackend:
    settings = server.settings()
    given = StoreSettings(url=url or settings.url, endpoint=settings.endpoint, access_key="k", secret_key="s")
    sharing = WriterCoordination(lambda: pytest.fail("nobody asked for a lease"), lambda last: last + 1)
    return ObjectBackend(Bucket(given), BlockCache(folder / "cache", limit), sharing)


def test_a_large_pack_travels_in_parts_and_is_never_replaced(object_server: ObjectServer, tmp_path: Path) -> None:
    place = backend(object_server, tmp_path)
    body = bytes(range(256)) * 40_000
    for last in (False, True):
        draft = place.create(NAME)
        draft.write(body)
        if last:
            with pytest.raises(Busy):
                draft.commit()
            draft.discard()
        else:
            draft.commit()
    fresh = backend(object_server, tmp_path / "other", place.where)
    assert dict(fresh.list()) == {NAME: len(body)}
    assert fresh.read(NAME, 8_388_600, 20) == body[8_388_600:8_388_620]
    assert fresh.read(NAME, len(body) - 5, 99) == body[-5:]


def test_the_cache_answers_without_the_store_and_stays_small(object_server: ObjectServer, tmp_path: Path) -> None:
    place = backend(object_server, tmp_path, limit=1 << 20)
    draft = place.create(NAME)
    draft.write(bytes(4 << 20))
    draft.commit()
    place.read(NAME, 0, 4 << 20)
    kept = sum(file.stat().st_size for file in (tmp_path / "cache").iterdir())
    assert 0 < kept <= 1 << 20
    place._bucket.delete([NAME])
    assert place.read(NAME, (4 << 20) - 100, 100) == bytes(100)


def test_a_damaged_block_of_the_cache_is_fetched_again(object_server: ObjectServer, tmp_path: Path) -> None:
    place = backend(object_server, tmp_path)
    draft = place.create(NAME)
    draft.write(b"what was written")
    draft.commit()
    place.read(NAME, 0, 16)
    (block,) = (tmp_path / "cache").iterdir()
    block.write_bytes(b"what was not written at all")
    assert place.read(NAME, 0, 16) == b"what was written"


def test_a_put_whose_answer_was_lost_meets_its_own_bytes(object_server: ObjectServer, tmp_path: Path) -> None:
    bucket = backend(object_server, tmp_path)._bucket
    bucket.create("x", b"mine")
    bucket.create("x", b"mine")
    with pytest.raises(Busy):
        bucket.create("x", b"yours")


def test_segments_behind_a_gap_were_never_acknowledged(object_server: ObjectServer, tmp_path: Path) -> None:
    place = backend(object_server, tmp_path)
    place.append("00000001.log", 0, b"sound")
    place.sync("00000001.log")
    place._bucket.create("00000001.log/000000000099", b"behind a gap")
    other = backend(object_server, tmp_path / "other", place.where)
    assert dict(other.list()) == {"00000001.log": 5}
    assert other.read("00000001.log", 0, 200) == b"sound"


@pytest.mark.parametrize("url", ["http://bucket/prefix", "s3:///prefix", "bucket"])
def test_an_address_that_names_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="s3://bucket/prefix"):
        Bucket(StoreSettings(url=url))


def test_without_the_library_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtra, match=r"letopis\[s3\]"):
        Bucket(StoreSettings(url="s3://bucket/prefix"))
