"""Compaction of whole sites: one known text each, space given back, and everything rebuilt from packs alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from letopis.archive import Archive
from letopis.config import Settings, StoreSettings
from letopis.model import Put
from letopis.store.pack_format import RecordKind

# Texts of sites are for packs in files; what is shared by many machines has none.
pytestmark = pytest.mark.files

START = datetime(2026, 1, 1, tzinfo=UTC)
DOCUMENTS, VERSIONS = 4, 3


def body(host: int, document: int, version: int) -> bytes:
    common, own = Random(host), Random(1000 * host + document)
    navigation = "".join(f"<a href='/{common.randrange(10**12)}'>{common.randrange(10**9)}</a>\n" for _ in range(60))
    text = "".join(f"<p>{own.randrange(10**15)}</p>\n" for _ in range(12))
    return f"<nav>{navigation}</nav>{text}<p>{version}</p>".encode()


def puts() -> list[Put]:
    return [
        Put(f"https://host{host}.example/{document}", body(host, document, version), START + timedelta(days=version))
        for version in range(VERSIONS)
        for document in range(DOCUMENTS)
        for host in range(2)
    ]


def filled(folder: Path) -> Archive:
    archive = Archive(folder)
    assert all(result.stored for result in archive.put_many(puts()))
    return archive


def exact(archive: Archive) -> bool:
    return all(
        archive.get(f"https://host{host}.example/{document}", version=version).body == body(host, document, version)
        for version in range(VERSIONS)
        for document in range(DOCUMENTS)
        for host in range(2)
    )


def texts(archive: Archive) -> int:
    store = archive._store
    records = (record for pack, size in store.sizes().items() for record in store._facts.records(pack, size))
    return sum(record.kind == RecordKind.TEXT for record in records)


def test_each_site_gets_one_text_and_every_version_reads_back(tmp_path: Path) -> None:
    with filled(tmp_path / "a") as archive:
        archive.compact()
        assert texts(archive) == 2
        assert exact(archive)
        assert list(archive.verify()) == []
        assert archive.compact().moved == 0


def test_an_archive_with_texts_is_rebuilt_from_its_packs(tmp_path: Path) -> None:
    with filled(tmp_path / "a") as archive:
        archive.compact()
        settings = archive.settings
    for file in tmp_path.glob("a/catalogue.sqlite*"):
        file.write_bytes(b"rubbish")
    report = Archive.repair(settings)
    assert (report.rebuilt, report.versions, report.lost) == (True, 2 * DOCUMENTS * VERSIONS, ())
    with Archive(tmp_path / "a") as archive:
        assert exact(archive)


def test_space_of_dropped_versions_is_given_back(tmp_path: Path) -> None:
    chance = Random(1)
    with Archive(tmp_path / "a") as archive:
        for number in range(6):
            archive.put("https://one.example/", chance.randbytes(20_000), START + timedelta(days=number))
        archive.put("https://other.example/", b"stays", START)
        archive.compact()
        before = archive.stats().pack_bytes
        kept = replace(archive.settings, store=StoreSettings(keep_versions=1))
    with Archive(settings=kept) as archive:
        first = archive.compact()
        second = archive.compact()
        assert first.dropped_versions == 5
        assert min(first.bytes_after, second.bytes_after) < before / 4
        assert archive.get("https://other.example/").body == b"stays"
        assert archive.compact().moved == 0
        assert list(archive.verify()) == []
    assert isinstance(kept, Settings)
