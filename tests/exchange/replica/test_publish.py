"""Publishing: only what is new, never what is private, safe beside writers and compactions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from replica_world import Replica, assert_equal

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.errors import Damaged
from letopis.exchange.replica import CloneSelection, clone, publish
from letopis.exchange.replica.publication import GRACE_SECONDS
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.zrec import ZrecReader, verify

CHILD = Path(__file__).parents[2] / "crash" / "archive_child.py"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_publishing_the_same_again_changes_nothing(replica: Replica) -> None:
    before = files(replica.published)
    report = replica.publish()
    assert (report.new, report.serial, report.packs_added) == (False, 1, 0)
    assert files(replica.published) == before


def test_a_second_publish_writes_only_what_is_new(replica: Replica) -> None:
    before = files(replica.published)
    replica.add(5)
    report = replica.publish()
    after = files(replica.published)
    assert (report.serial, report.packs_added) == (2, 1)
    assert report.records - report.records_kept <= 5 + 1 + 1
    assert {name: data for name, data in after.items() if name in before and name != "release.json"} == {
        name: data for name, data in before.items() if name != "release.json"
    }
    assert sorted(set(after) - set(before)) == [
        "index-00000002.zrec",
        f"packs/00000001.log.{len(before['packs/00000001.log.0'])}",
    ]
    assert verify(replica.published / "index-00000002.zrec").sound
    with ZrecReader(replica.published / "index-00000002.zrec") as reader:
        assert reader.header.ordered
        assert list(reader.records()) == sorted(reader.records())


def test_finished_packs_are_links_and_cost_no_space(replica: Replica) -> None:
    replica.archive.compact(effort="quick")
    replica.publish()
    packs = list((replica.published / "packs").glob("*.pack"))
    assert packs
    for path in packs:
        assert path.samefile(replica.folder / "origin" / "packs" / path.name)


def test_files_of_older_releases_stay_for_the_grace_period(replica: Replica) -> None:
    replica.archive.compact(effort="quick")
    replica.publish()
    replica.add(1)
    assert replica.publish(grace=GRACE_SECONDS).files_removed == 0
    assert (replica.published / "packs" / "00000001.log.0").exists()
    replica.add(1, start=1)
    assert replica.publish(grace=0).files_removed >= 2
    assert not (replica.published / "packs" / "00000001.log.0").exists()
    assert sorted(path.name for path in replica.published.glob("index-*")) == [
        "index-00000003.zrec",
        "index-00000004.zrec",
    ]
    replica.clone()
    replica.assert_equal()


def test_nothing_private_is_published(replica: Replica) -> None:
    secrets = plant_secrets(replica.archive)
    replica.archive.put("http://public.example/", b"public words")
    replica.publish()
    found = files(replica.published)
    with ZrecReader(max(replica.published.glob("index-*"))) as reader:
        found["index, unpacked"] = b"\n".join(reader.records())
    assert b"public.example" in found["index, unpacked"]
    for name, data in found.items():
        assert not [secret for secret in secrets if secret.encode() in data], name
    replica.clone()
    whole = files(replica.copy)
    assert not [secret for secret in secrets for data in whole.values() if secret.encode() in data]


def plant_secrets(archive: Archive) -> list[str]:
    """An account, its token and password, a watch with a tag and a notify target, an observer, a plan, a cookie."""
    accounts = Accounts(archive.catalog.database)
    user = accounts.add("secretname", "owner", "secretpassword", 0, email="secret@mail.example")
    token = accounts.create_token("secrettoken", user, "write", 0)
    spec = WatchSpec(every=60.0, notify=("https://notify.secret/hook",))
    WatchList(archive).add(["http://watched.secret/"], spec, "secrettag")
    with archive.catalog.transaction() as cursor:
        archive.catalog.resources.ensure(cursor, "http://planned.secret/")
    (archive.folder / "cookies.txt").write_text("secretcookie")
    named = ["secretname", "secretpassword", "secret@mail", "secrettoken", "watched.secret", "secrettag"]
    return [*named, token, "notify.secret", "planned.secret", "secretcookie"]


def test_a_lost_index_is_noticed(replica: Replica) -> None:
    (replica.published / "index-00000001.zrec").unlink()
    with pytest.raises(Damaged, match="empty folder"):
        replica.publish()


def test_an_archive_put_back_from_an_older_copy_is_noticed(replica: Replica) -> None:
    path = replica.published / "packs" / "00000001.log.0"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.unlink()
    path.write_bytes(data)
    replica.add(1)
    with pytest.raises(Damaged, match="empty folder"):
        replica.publish()


@pytest.mark.parametrize("mode", ["put", "compact"])
def test_an_archive_is_published_while_another_process_writes(tmp_path: Path, replica: Replica, mode: str) -> None:
    """Each release is whole, whatever the writer was doing; the last one equals the archive."""
    folder, out = tmp_path / "busy", tmp_path / "out"
    child = subprocess.Popen([sys.executable, CHILD, folder, mode], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(12):
        child.stdout.readline()
    try:
        with Archive(folder) as archive:
            for number in range(2):
                for _ in range(12):
                    child.stdout.readline()
                publish(archive, out, grace=0)
                report = clone(str(out), tmp_path / f"copy{number}", CloneSelection(), replica.settings)
                assert report.versions >= 12 * (number + 1)
                with Archive(tmp_path / f"copy{number}") as copy:
                    assert list(copy.verify()) == []
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
    with Archive(folder) as archive:
        publish(archive, out)
        clone(str(out), tmp_path / "last", CloneSelection(), replica.settings)
        assert_equal(archive, tmp_path / "last")
