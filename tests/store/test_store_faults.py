import errno
import os

import pytest
from faultydisk import FaultyDisk
from ledger import Ledger
from pagemaker import history

from letopis.binary import sha1_digest
from letopis.errors import Busy, NotReady
from letopis.store import LocalBackend


def row(number, body):
    return (b"key", number, b"note", body)


def intact(store, ledger):
    for _, _, _, digest in ledger.facts():
        assert sha1_digest(store.read(ledger.places[digest]).body) == digest
    assert not list(store.verify())
    return True


@pytest.mark.parametrize("room", [0, 1, 7, 300, 5000])
def test_a_full_disk_is_told_and_work_goes_on_when_there_is_space(opened, room):
    disk, ledger = FaultyDisk(), Ledger()
    store = opened(disk=disk)
    ledger.put(store, [row(0, b"before")])
    disk.room = room
    with pytest.raises(NotReady, match="disk is full; free some space"):
        ledger.put(store, [row(1, os.urandom(9000))])
    assert intact(store, ledger)
    disk.room = None
    ledger.put(store, [row(2, b"after")])
    assert intact(store, ledger)
    assert {fact.time for fact in store.scan()} == {0, 2}


def test_a_disk_that_is_full_from_the_start_leaves_nothing_behind(opened):
    disk, ledger = FaultyDisk(), Ledger()
    disk.room = 5
    store = opened(disk=disk)
    with pytest.raises(NotReady, match="disk is full"):
        ledger.put(store, [row(1, b"x")])
    disk.room = None
    ledger.put(store, [row(2, b"after")])
    assert intact(store, ledger)


@pytest.mark.parametrize("operation", ["write", "fsync"])
@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EIO, "check the disk"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "read-only"),
        (errno.EDQUOT, "full"),
    ],
)
def test_a_failing_call_takes_back_what_was_not_synced(opened, operation, number, advice):
    disk, ledger = FaultyDisk(), Ledger()
    store = opened(disk=disk)
    ledger.put(store, [row(0, b"before")])
    disk.fails = {operation: number}
    with pytest.raises(NotReady, match=advice):
        ledger.put(store, [row(1, b"lost")])
    disk.fails = {}
    ledger.put(store, [row(2, b"after")])
    assert intact(store, ledger)
    assert {fact.time for fact in store.scan()} == {0, 2}


def test_a_disk_that_cannot_even_be_cut_is_asked_again_before_the_next_put(opened):
    disk, ledger = FaultyDisk(), Ledger()
    store = opened(disk=disk)
    ledger.put(store, [row(0, b"before")])
    disk.fails = {"fsync": errno.EIO, "truncate": errno.EIO}
    for number in (1, 2):
        with pytest.raises(NotReady):
            ledger.put(store, [row(number, b"lost")])
    disk.fails = {}
    ledger.put(store, [row(3, b"after")])
    assert intact(store, ledger)
    assert {fact.time for fact in store.scan()} == {0, 3}


@pytest.mark.parametrize("operation", ["write", "fsync", "link"])
def test_a_compaction_without_space_changes_nothing_and_can_be_repeated(opened, operation):
    disk, ledger = FaultyDisk(), Ledger()
    store = opened(disk=disk)
    for number, page in enumerate(history(5, 6)):
        ledger.put(store, [row(number, page)])
    disk.fails = {operation: errno.ENOSPC}
    with pytest.raises(NotReady, match="full"):
        list(store.compact(ledger.chains(), effort="quick"))
    disk.fails = {}
    assert intact(store, ledger)
    for batch in store.compact(ledger.chains(), effort="quick"):
        ledger.move(batch)
    store.release(ledger.live(), ledger.keep)
    assert intact(store, ledger)
    assert store.stats().log_bytes == 0


def test_a_log_that_somebody_else_extended_is_left_to_them(opened, tmp_path):
    ledger, store = Ledger(), opened()
    ledger.put(store, [row(0, b"before")])
    log = tmp_path / "store" / "00000001.log"
    with log.open("ab") as file:
        file.write(b"theirs")
    with pytest.raises(Busy, match="changed by somebody else"):
        ledger.put(store, [row(1, b"mine")])
    assert log.read_bytes().endswith(b"theirs")
    ledger.put(store, [row(2, b"after")])
    assert [ledger.places[sha1_digest(body)].pack for body in (b"before", b"after")] == [1, 2]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_told_and_can_still_be_read(opened, tmp_path):
    ledger, store = Ledger(), opened()
    ledger.put(store, [row(0, b"before")])
    store.close()
    (tmp_path / "store").chmod(0o555)
    try:
        with pytest.raises(NotReady, match="permission denied"):
            opened()
        assert intact(opened(write=False), ledger)
    finally:
        (tmp_path / "store").chmod(0o755)


def test_a_folder_that_is_a_file_is_told(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(NotReady, match=r"cannot (write to|read) .*taken"):
        LocalBackend(tmp_path / "taken" / "store").lease()
