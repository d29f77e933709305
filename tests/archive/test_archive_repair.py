"""Damage, full disks and later releases: right bytes or a named error, and repair keeps what can be read."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from random_damage import damage_file, damage_puts, disorder_page, overwrite_page, page_of, sound_archive, wrong_reads
from random_histories import quick_coding

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.cli.main import main
from letopis.config import ArchiveSettings, Settings
from letopis.errors import Damaged, LetopisError, NewerFormat, NotReady
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList

pytestmark = pytest.mark.files
START = datetime(2026, 1, 1, tzinfo=UTC)


def placed(folder: Path) -> Settings:
    return Settings(archive=ArchiveSettings(path=str(folder)))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions in a pack and in a log, an account with a token."""
    folder = tmp_path_factory.mktemp("sound") / "a"
    sound_archive(folder)
    return folder


@pytest.mark.parametrize("name", ["version_number", "resource_url", "content_identity"])
def test_repair_of_a_damaged_index_loses_nothing(tmp_path: Path, sound: Path, name: str) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    overwrite_page(folder / "catalogue.sqlite", page_of(folder / "catalogue.sqlite", name))
    assert main(["--archive", str(folder), "verify", "--repair"]) == 0
    with Archive(folder) as archive:
        assert [archive.get(put.url, at=put.at).body for put in damage_puts()] == [put.body for put in damage_puts()]
        accounts = accounts_of(archive)
        assert accounts.sign_in("ada", "a long password") is not None
        assert [token.name for token in accounts.tokens()] == ["laptop"]
        assert list(archive.verify()) == []


@pytest.mark.parametrize("name", ["version", "content", "resource", "head", "capture", "surt"])
def test_repair_saves_what_only_the_catalogue_has_when_a_table_is_damaged(
    tmp_path: Path, sound: Path, name: str
) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    overwrite_page(folder / "catalogue.sqlite", page_of(folder / "catalogue.sqlite", name))
    report = Archive.repair(placed(folder))
    assert report.rebuilt
    assert report.lost == ()
    assert all(sentence.startswith(name) for sentence in report.unread)
    with Archive(folder) as archive:
        assert [archive.get(put.url, at=put.at).body for put in damage_puts()] == [put.body for put in damage_puts()]
        assert accounts_of(archive).sign_in("ada", "a long password") is not None
        assert list(archive.verify()) == []
    assert (folder / "catalogue.sqlite.damaged-1").exists()


@pytest.mark.parametrize("damage", [b"\xe4", b"#"], ids=["no text", "no statement"])
@pytest.mark.parametrize("table", [b"host", b"account_token", b"account_user"])
def test_a_damaged_definition_of_a_table_hides_no_other_table(
    tmp_path: Path, sound: Path, table: bytes, damage: bytes
) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    file = folder / "catalogue.sqlite"
    file.write_bytes(file.read_bytes().replace(b"CREATE TABLE " + table, b"CREATE" + damage + b"TABLE " + table, 1))
    with pytest.raises(Damaged):
        Archive(folder)
    assert Archive.repair(placed(folder)).lost == ()
    with Archive(folder) as archive:
        assert [archive.get(put.url, at=put.at).body for put in damage_puts()] == [put.body for put in damage_puts()]
        assert accounts_of(archive).sign_in("ada", "a long password") is not None
        assert [token.name for token in accounts_of(archive).tokens()] == ["laptop"]
        assert list(archive.verify()) == []


def test_damage_that_a_long_answer_meets_is_named(tmp_path: Path, sound: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    overwrite_page(folder / "catalogue.sqlite", page_of(folder / "catalogue.sqlite", "head"))
    with Archive(folder) as archive, pytest.raises(Damaged, match="is damaged"):
        list(archive.catalog.database.stream("SELECT * FROM head"))


def test_a_newest_log_of_which_nothing_can_be_read_is_gone_after_its_repair(tmp_path: Path, sound: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    log = max((folder / "packs").glob("*.log"))
    log.write_bytes(random.Random(1).randbytes(log.stat().st_size))
    assert len(Archive.repair(placed(folder)).lost) == 8
    with Archive(folder) as archive:
        assert list(archive.verify()) == []
        archive.put("http://example.org/", b"after")
        assert wrong_reads(folder) == []
    assert not log.exists()


def test_repair_ends_where_rows_are_out_of_their_order(tmp_path: Path, sound: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    disorder_page(folder / "catalogue.sqlite", page_of(folder / "catalogue.sqlite", "host"))
    assert Archive.repair(placed(folder)).lost == ()
    with Archive(folder) as archive:
        assert [archive.get(put.url, at=put.at).body for put in damage_puts()] == [put.body for put in damage_puts()]
        assert list(archive.verify()) == []


def test_repair_that_fails_leaves_the_catalogue_that_was_there(
    tmp_path: Path, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    overwrite_page(folder / "catalogue.sqlite", page_of(folder / "catalogue.sqlite", "version"))
    before = (folder / "catalogue.sqlite").read_bytes()

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("letopis.archive.integrity.take_in_facts", fail)
    with pytest.raises(OSError, match="no space"):
        Archive.repair(placed(folder))
    assert (folder / "catalogue.sqlite").read_bytes() == before
    monkeypatch.undo()
    assert Archive.repair(placed(folder)).versions == len(damage_puts())


@pytest.mark.parametrize(("schema", "words"), [("7", "update Letopis"), ("seven", "not a number")])
def test_a_schema_that_this_release_does_not_know_is_a_sentence(
    tmp_path: Path, sound: Path, schema: str, words: str
) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (schema,))
        connection.commit()
    with pytest.raises(Damaged, match=words):
        Archive(folder)
    before = (folder / "catalogue.sqlite").read_bytes()
    if schema == "7":
        with pytest.raises(NewerFormat):
            Archive.repair(placed(folder))
        assert main(["--archive", str(folder), "verify", "--repair"]) == 6
        assert (folder / "catalogue.sqlite").read_bytes() == before
        assert [path.name for path in folder.glob("catalogue*")] == ["catalogue.sqlite"]
    else:
        assert Archive.repair(placed(folder)).versions == len(damage_puts())


@pytest.mark.parametrize("column", ["pack", "place", "slot", "identity"])
def test_a_wrong_place_in_the_catalogue_never_gives_another_page(tmp_path: Path, sound: Path, column: str) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as connection:
        connection.execute(
            f"UPDATE content SET {column} = (SELECT {column} FROM content WHERE id = 3) + (id = 3) WHERE id < 9"
        )
        connection.commit()
    wrong = wrong_reads(folder)
    assert wrong == []
    Archive.repair(placed(folder))
    assert wrong_reads(folder, errors=False) == []
    with Archive(folder) as archive:
        assert list(archive.verify()) == []


def test_a_version_with_the_content_of_another_is_found_and_put_right(tmp_path: Path, sound: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as connection:
        connection.execute("UPDATE version SET content = 5 WHERE id = 2")
        connection.commit()
    assert main(["--archive", str(folder), "verify"]) == 6
    Archive.repair(placed(folder))
    assert wrong_reads(folder, errors=False) == []
    assert main(["--archive", str(folder), "verify"]) == 0


@pytest.mark.parametrize("column", ["slot", "place", "pack", "stored_bytes"])
def test_a_number_that_became_another_type_is_named_and_put_right(tmp_path: Path, sound: Path, column: str) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as connection:
        connection.execute(f"UPDATE content SET {column} = x'31'")
        connection.commit()
    assert wrong_reads(folder) == []
    with Archive(folder) as archive, pytest.raises(Damaged):
        archive.get(damage_puts()[0].url)
    assert main(["--archive", str(folder), "verify"]) == 6
    with quick_coding():
        Archive.repair(placed(folder))
    assert wrong_reads(folder, errors=False) == []
    assert main(["--archive", str(folder), "verify"]) == 0


@pytest.mark.parametrize("of", ["versions", "accounts"])
def test_who_holds_a_catalogue_that_a_repair_replaces_is_refused(tmp_path: Path, sound: Path, of: str) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    with Archive(folder) as daemon:
        daemon.put("http://h0.example/0", b"before", START + timedelta(days=50))
        daemon.catalog.tidy()
        overwrite_page(folder / "catalogue.sqlite", page_of(folder / "catalogue.sqlite", "version_number"))
        Archive.repair(placed(folder))
        writes: dict[str, Callable[[], object]] = {
            "versions": lambda: daemon.put("http://h0.example/0", b"after", START + timedelta(days=51)),
            "accounts": lambda: accounts_of(daemon).add("eve", "owner", "a long password", 1),
        }
        with pytest.raises(NotReady, match="start the process again"):
            writes[of]()
    with Archive(folder) as archive:
        assert archive.get("http://h0.example/0").body == b"before"
        assert list(archive.verify()) == []


ROUNDS = int(os.environ.get("LETOPIS_DAMAGE_ROUNDS", "15"))


@pytest.mark.parametrize("part", range(3))
def test_after_repair_of_random_damage_everything_is_sound(tmp_path: Path, sound: Path, part: int) -> None:
    for seed in range(part * ROUNDS // 3, (part + 1) * ROUNDS // 3):
        folder = shutil.copytree(sound, tmp_path / str(seed))
        chance = random.Random(seed)
        damage_file(chance.choice([folder / "catalogue.sqlite", *(folder / "packs").glob("0*")]), chance)
        try:
            Archive(folder).close()
        except LetopisError:
            pass
        else:
            assert wrong_reads(folder) == [], seed
        with quick_coding():
            Archive.repair(placed(folder))
        with Archive(folder) as archive:
            assert list(map(str, archive.verify())) == [], seed
        assert wrong_reads(folder) == [], seed
        shutil.rmtree(folder)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


_READ_AS_NOBODY = """
import os, sys
import tempfile  # nobody may not read the files of every interpreter
from letopis.archive import Archive
from letopis.errors import Refused
with Archive(sys.argv[1]) as archive:
    archive.get("http://h0.example/0")
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
with Archive(sys.argv[1]) as archive:
    assert archive.get("http://h0.example/0").body
    assert archive.stats().versions == 20
    try:
        archive.put("http://h0.example/0", b"new")
    except Refused as error:
        print(error)
"""
_WRITE_WITHOUT_ROOM = """
import resource, signal, sys
from letopis.archive import Archive
from letopis.errors import NotReady
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Archive(sys.argv[1]) as archive:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    assert archive.get("http://h0.example/0").body
    try:
        with archive.catalog.transaction() as cursor:
            for number in range(9999):
                cursor.run("INSERT INTO host (name) VALUES (?)", (f"host {number}" * 20,))
    except NotReady as error:
        print(error)
"""


def said_by(script: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_archive_on_a_read_only_disk_can_be_read(open_folder: Path, sound: Path) -> None:
    folder = shutil.copytree(sound, open_folder / "a")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert "is on a read-only medium" in said_by(_READ_AS_NOBODY, folder)


def test_a_full_disk_is_not_called_damage(tmp_path: Path, sound: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    said = said_by(_WRITE_WITHOUT_ROOM, folder)
    assert "disk" in said or "space" in said
    assert "repair" not in said
    with Archive(folder) as archive:
        assert list(archive.verify()) == []


@pytest.mark.parametrize("column", ["spec", "state"])
def test_damaged_json_of_a_watch_is_named_and_costs_that_watch_alone(tmp_path: Path, sound: Path, column: str) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    with Archive(folder) as archive:
        WatchList(archive).add(["http://a.example/", "http://b.example/"], WatchSpec(every=60.0))
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as connection, connection:
        connection.execute(f"UPDATE watch SET {column} = replace({column}, '{{', '[') WHERE url = 'http://a.example/'")
    with Archive(folder) as archive, pytest.raises(Damaged, match="is not JSON"):
        WatchList(archive).entries()
    assert [sentence.split(":")[0] for sentence in Archive.repair(placed(folder)).unread] == ["watch"]
    with Archive(folder) as archive:
        assert list(archive.verify()) == []
        kept = [one.watch.url for one in WatchList(archive).entries()]
        assert kept == ["http://a.example/", "http://b.example/"][1 if column == "spec" else 0 :]
        assert accounts_of(archive).sign_in("ada", "a long password") is not None


def _with_pack_and_log(folder: Path) -> dict[str, bytes]:
    """An archive with packs of both kinds, and what it has at each URL."""
    bodies = {f"http://h.example/{n}": b"<p>page %d" % n * 30 for n in range(6)}
    with Archive(folder) as archive:
        for url in list(bodies)[:3]:
            archive.put(url, bodies[url])
        archive.compact()
        for url in list(bodies)[3:]:
            archive.put(url, bodies[url])
        accounts_of(archive).add("ada", "owner", "a long password", 1)
    return bodies


def _is_whole(folder: Path, bodies: dict[str, bytes]) -> bool:
    with Archive(folder) as archive:
        assert list(map(str, archive.verify())) == []
        assert [user.name for user in accounts_of(archive).users()] == ["ada"]
        return {url: archive.get(url).body for url in bodies} == bodies


@pytest.mark.parametrize("suffix", [".pack", ".log"])
@pytest.mark.parametrize("meanwhile", ["nothing", "a put", "a compaction"])
def test_a_pack_that_comes_back_after_a_repair_gave_it_up_brings_its_versions(
    tmp_path: Path, suffix: str, meanwhile: str
) -> None:
    """A disk that was not mounted, a pack that is copied back from elsewhere."""
    bodies = _with_pack_and_log(tmp_path / "a")
    pack = next((tmp_path / "a" / "packs").glob(f"*{suffix}"))
    pack.rename(tmp_path / pack.name)
    assert len(Archive.repair(placed(tmp_path / "a")).lost) == 3
    with Archive(tmp_path / "a") as archive:
        if meanwhile == "a put":
            archive.put("http://h.example/new", b"<p>new")
        if meanwhile == "a compaction":
            archive.compact()
    (tmp_path / pack.name).rename(pack)
    with Archive(tmp_path / "a") as archive:
        archive.compact()
    assert _is_whole(tmp_path / "a", bodies)


@pytest.mark.parametrize("suffix", [".pack", ".log"])
def test_a_pack_with_the_name_of_another_is_kept_and_named_until_it_has_its_own(tmp_path: Path, suffix: str) -> None:
    bodies = _with_pack_and_log(tmp_path / "a")
    pack = next((tmp_path / "a" / "packs").glob(f"*{suffix}"))
    other = pack.rename(pack.with_name(f"00000041{suffix}"))
    with Archive(tmp_path / "a") as archive:
        archive.put("http://h.example/new", b"<p>new")
        archive.compact()
        assert any("restore the original name" in str(problem) for problem in archive.verify())
    with pytest.raises(Damaged, match=f"{other.name} carries the number"):
        Archive.repair(placed(tmp_path / "a"))
    other.rename(pack)
    Archive.repair(placed(tmp_path / "a"))
    assert _is_whole(tmp_path / "a", bodies)


@pytest.mark.parametrize("value", ["NULL", "x'ff'"])
def test_an_address_that_is_gone_or_no_text_is_named_and_repaired(tmp_path: Path, sound: Path, value: str) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'url TEXT NOT NULL', 'url TEXT') WHERE name = 'resource'"
        )
        connection.execute("PRAGMA writable_schema = RESET")
        connection.execute(f"UPDATE resource SET url = {value} WHERE id = 3")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'url TEXT', 'url TEXT NOT NULL') WHERE name = 'resource'"
        )
        connection.commit()
    with Archive(folder) as archive:
        assert any("resource" in str(problem) for problem in archive.verify())
    assert Archive.repair(placed(folder)).versions == len(damage_puts())
    assert wrong_reads(folder, errors=False) == []


def test_a_repair_that_lost_a_version_says_so_by_its_status_and_the_next_one_is_content(
    tmp_path: Path, sound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    log = next((folder / "packs").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    assert main(["--archive", str(folder), "verify", "--repair"]) == 6
    said = capsys.readouterr()
    assert "1 lost" in said.out
    assert "lost: version 1 of http://h1.example/0" in said.err
    assert "1 part of it could not be saved" in said.err
    assert main(["--archive", str(folder), "verify", "--repair"]) == 0


@pytest.mark.parametrize("suffix", ["log", "pack"])
def test_a_folder_in_the_place_of_a_pack_is_a_pack_that_is_missing(
    tmp_path: Path, sound: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    folder = shutil.copytree(sound, tmp_path / "a")
    pack = next((folder / "packs").glob(f"*.{suffix}"))
    pack.rename(tmp_path / "kept")
    pack.mkdir()
    assert main(["--archive", str(folder), "verify"]) == 6
    assert "the pack is missing" in capsys.readouterr().out
    assert main(["--archive", str(folder), "verify", "--repair"]) == 6
    with Archive(folder) as archive:
        archive.put("http://later.example/", b"later")
        assert archive.get("http://later.example/").body == b"later"
        assert list(archive.verify()) == []
    assert pack.is_dir()
