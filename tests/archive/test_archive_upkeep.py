from __future__ import annotations

import random
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.archive.index_facts import VersionLog
from letopis.config import ArchiveSettings, Settings, StoreSettings
from letopis.errors import Damaged
from letopis.model import Put

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def pages(documents: int, versions: int, seed: int = 1) -> list[Put]:
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnop", k=6)) for _ in range(400)]
    puts = []
    for document in range(documents):
        lines = ["<p>" + " ".join(chance.choices(words, k=20)) + "</p>" for _ in range(40)]
        for version in range(versions):
            lines[chance.randrange(len(lines))] = "<p>" + " ".join(chance.choices(words, k=20)) + "</p>"
            body = "\n".join(lines).encode()
            puts.append(Put(f"http://h{document % 3}.example/{document}", body, START + version * DAY))
    return puts


def placed(folder: Path) -> Settings:
    return Settings(archive=ArchiveSettings(path=str(folder)))


def contents(archive: Archive, puts: list[Put]) -> list[bytes]:
    return [archive.get(put.url, at=put.at).body for put in puts]


@pytest.mark.parametrize("effort", ["quick", "full"])
def test_compaction_shrinks_and_every_version_stays_readable(tmp_path: Path, effort: str) -> None:
    puts = pages(4, 12)
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts))
        report = archive.compact(effort=effort)  # type: ignore[arg-type]
        assert report.finished
        assert report.bytes_after < 0.6 * report.bytes_before
        assert archive.stats().pack_bytes == report.bytes_after
        assert contents(archive, puts) == [put.body for put in puts]
        assert list(archive.verify()) == []


def test_reader_that_was_open_before_compaction_goes_on(tmp_path: Path) -> None:
    puts = pages(2, 6)
    with Archive(tmp_path / "a") as writer, Archive(tmp_path / "a") as reader:
        list(writer.put_many(puts))
        assert contents(reader, puts[:3]) == [put.body for put in puts[:3]]
        writer.compact()
        assert contents(reader, puts) == [put.body for put in puts]


def test_compaction_can_be_stopped_and_begun_again(tmp_path: Path) -> None:
    puts = pages(6, 5)
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts))
        asked = iter([False, False, True])
        assert not archive.compact(stop=lambda: next(asked, True)).finished
        assert list(archive.verify()) == []
        assert archive.compact().finished
        assert contents(archive, puts) == [put.body for put in puts]


def test_versions_after_compaction_continue_the_count(tmp_path: Path) -> None:
    puts = pages(1, 6)
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts))
        archive.compact()
        assert archive.put(puts[0].url, b"new", START + 30 * DAY).number == 6
        archive.compact()
        assert archive.get(puts[0].url).body == b"new"
        assert contents(archive, puts) == [put.body for put in puts]


def test_retention_by_count_keeps_the_newest(tmp_path: Path) -> None:
    puts = pages(1, 6)
    with Archive(tmp_path / "a", settings=Settings(store=StoreSettings(keep_versions=2))) as archive:
        list(archive.put_many(puts))
        assert archive.compact().dropped_versions == 4
        assert [version.number for version in archive.versions(puts[0].url)] == [0, 1]
        assert archive.get(puts[0].url).body == puts[-1].body
        assert list(archive.verify()) == []


def test_followers_of_the_log_see_what_is_recorded_after_retention_dropped_its_last_row(tmp_path: Path) -> None:
    url = "http://example.org/"
    with Archive(tmp_path / "a", settings=Settings(store=StoreSettings(keep_versions=1))) as archive:
        log = VersionLog(archive)
        for days in (2, 1):  # the later one is imported first
            archive.put(url, b"<p>%d</p>" % days, at=START + days * DAY)
        for number in range(3):
            known = max(row.id for row in log.since(0, 99))
            assert archive.compact().dropped_versions == 1
            archive.put(f"{url}{number}", b"<p>new %d</p>" % number)
            assert [one.url for one in log.since(known, 9)] == [f"{url}{number}"]
            archive.put(url, b"<p>old %d</p>" % number, at=START)


@pytest.mark.files
def test_catalogue_is_rebuilt_from_packs_alone(tmp_path: Path) -> None:
    puts = [*pages(3, 5), Put("http://h0.example/0", pages(3, 5)[0].body, START + 40 * DAY)]
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts[:8]))
        archive.compact()
        list(archive.put_many(puts[8:]))
        before = {put.url: [(v.number, v.time, v.digest) for v in archive.versions(put.url)] for put in puts}
    catalogue = tmp_path / "a" / "catalogue.sqlite"
    damaged = bytearray(catalogue.read_bytes())
    damaged[1500:9000] = bytes(7500)
    catalogue.write_bytes(damaged)
    with pytest.raises(Damaged, match=r"Archive\.repair"), Archive(tmp_path / "a") as archive:
        list(archive.verify())
    report = Archive.repair(placed(tmp_path / "a"))
    assert report.rebuilt
    assert report.lost == ()
    with Archive(tmp_path / "a") as archive:
        assert {url: [(v.number, v.time, v.digest) for v in archive.versions(url)] for url in before} == before
        assert contents(archive, puts) == [put.body for put in puts]
        assert list(archive.verify()) == []


@pytest.mark.files
def test_packs_without_their_catalogue_are_no_new_archive(tmp_path: Path) -> None:
    """One made beside them would know none of their versions, and compaction would drop these."""
    puts = pages(3, 3)
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts))
        archive.compact()
    for file in (tmp_path / "a").glob("catalogue.sqlite*"):
        file.unlink()
    for _ in range(2):
        with pytest.raises(Damaged, match=r"Archive\.repair"), Archive(tmp_path / "a"):
            pass
    assert not list((tmp_path / "a").glob("catalogue*"))
    made_of_old_numbers = tmp_path / "a" / "index" / "links"
    made_of_old_numbers.mkdir(parents=True)
    report = Archive.repair(placed(tmp_path / "a"))
    assert (report.rebuilt, report.versions, report.lost) == (True, len(puts), ())
    assert not made_of_old_numbers.exists()
    assert [file.name for file in (tmp_path / "a").glob("catalogue*")] == ["catalogue.sqlite"]
    with Archive(tmp_path / "a") as archive:
        assert contents(archive, puts) == [put.body for put in puts]
        assert list(archive.verify()) == []


@pytest.mark.files
@pytest.mark.parametrize("lost", ["all packs", "the end of the log", "the newest pack"])
def test_a_place_that_held_a_content_never_holds_another(tmp_path: Path, lost: str) -> None:
    """Packs that are lost, or put back from an older copy, must not make old versions read as new ones."""
    folder = tmp_path / "a" / "packs"
    first, second, later = (Put(f"http://h.example/{n}", b"<p>number %d" % n, START + n * DAY) for n in range(3))
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many([first]))
        if lost == "the newest pack":
            archive.compact()
        before = {file: file.read_bytes() for file in folder.iterdir()}
        list(archive.put_many([second]))
    for file in list(folder.iterdir()):
        file.unlink()
    for file, data in before.items() if lost == "the end of the log" else ():
        file.write_bytes(data)
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many([later]))
        assert archive.get(later.url).body == later.body
        with pytest.raises(Damaged):
            archive.get(second.url)
        assert len(list(archive.verify())) >= 1
    Archive.repair(placed(tmp_path / "a"))
    with Archive(tmp_path / "a") as archive:
        assert archive.get(later.url).body == later.body
        assert archive.stats().versions == (2 if lost == "the end of the log" else 1)


@pytest.mark.files
def test_a_rebuilding_that_was_interrupted_is_no_archive(tmp_path: Path) -> None:
    puts = pages(2, 3)
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts))
    (tmp_path / "a" / "catalogue.sqlite").unlink()

    class _Killed(BaseException):
        """Nobody catches it."""

    with pytest.raises(_Killed), Archive(tmp_path / "a", rebuilding=True) as archive, archive.catalog.rebuilding():
        raise _Killed
    with pytest.raises(Damaged, match=r"Archive\.repair"), Archive(tmp_path / "a"):
        pass
    assert Archive.repair(placed(tmp_path / "a")).versions == len(puts)
    with Archive(tmp_path / "a") as archive:
        assert contents(archive, puts) == [put.body for put in puts]


@pytest.mark.files
def test_damaged_pack_is_named_and_the_rest_stays_readable(tmp_path: Path) -> None:
    puts = pages(3, 3)
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts))
    log = next((tmp_path / "a" / "packs").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    with Archive(tmp_path / "a") as archive:
        found = list(archive.verify())
        assert any("pack" in str(problem) for problem in found)
    assert len(Archive.repair(placed(tmp_path / "a")).lost) == 1
    with Archive(tmp_path / "a") as archive:
        assert archive.stats().versions == len(puts) - 1
        assert archive.get(puts[-1].url).body == puts[-1].body


@pytest.mark.files
def test_compaction_leaves_no_half_filled_pages_in_the_catalogue(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(pages(60, 4)))
        archive.compact(effort="quick")
        after = archive.stats().catalog_bytes
        archive.catalog.database.all("VACUUM")
        archive.catalog.tidy()
        assert after == archive.stats().catalog_bytes


def test_compaction_makes_a_page_that_returned_fast_again_and_takes_no_more_space(tmp_path: Path) -> None:
    chance = random.Random(4)
    texts = [b"<p>" + chance.randbytes(4000).hex().encode() for _ in range(12)]
    with Archive(tmp_path / "a") as archive:
        for number, text in enumerate([*texts, texts[0]]):
            archive.put("http://example.org/", text, at=datetime(2026, 1, 1 + number, tzinfo=UTC))
            archive.put(f"http://example.org/{number}", text + b"own", at=datetime(2026, 1, 1 + number, tzinfo=UTC))
            if number == len(texts) - 1:
                archive.compact()
        before = archive.get("http://example.org/")
        assert before.decoded_bytes > 2 * len(before.body)
        report = archive.compact()
        assert report.bytes_after <= report.bytes_before
        after = archive.get("http://example.org/")
        assert (after.body, after.decoded_bytes <= 2 * len(after.body)) == (texts[0], True)
        assert list(archive.verify()) == []


def test_whoever_waits_to_write_comes_before_one_that_writes_again_and_again(tmp_path: Path) -> None:
    slices, most = [0], 500
    begun = threading.Event()

    def compact_on_and_on() -> None:
        with Archive(tmp_path / "a") as other:
            while slices[0] < most:
                with other.hold_writer():
                    slices[0] += 1
                    begun.set()
                    time.sleep(0.01)

    with Archive(tmp_path / "a") as archive:
        thread = threading.Thread(target=compact_on_and_on)
        thread.start()
        begun.wait()
        archive.put("http://example.org/", b"A")
        assert slices[0] < most
        slices[0] = most
        thread.join()
