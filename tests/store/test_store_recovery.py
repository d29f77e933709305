import os
import shutil

import pytest
from ledger import Ledger
from pagemaker import history

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.errors import NewerFormat
from letopis.store import LocalBackend, Store, VersionItem
from letopis.store.pack_format import HEADER_BYTES, PACK_MAGIC
from letopis.store.packs import encode_checkpoint, parse_checkpoint

SETTINGS = StoreSettings()


def filled(folder, count=4):
    ledger = Ledger()
    with Store.open(LocalBackend(folder), SETTINGS, write=True) as store:
        for number, page in enumerate(history(7, count, 500)):
            ledger.put(store, [(b"key", number, b"note", page)])
    return ledger


def reopened(folder, ledger, survivors):
    """Opens for writing, reads what must have survived, and stores one more version."""
    with Store.open(LocalBackend(folder), SETTINGS, write=True) as store:
        for _, _, _, digest in survivors:
            assert sha1_digest(store.read(ledger.places[digest]).body) == digest
        assert not list(store.verify())
        place = store.append([VersionItem(b"new", 9, b"", sha1_digest(b"new"), b"new")])[0].place
        store.sync()
        assert store.read(place).body == b"new"
        assert (b"new", 9) in {(fact.key, fact.time) for fact in store.scan()}


@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_log_torn_at_any_byte_is_cut_after_its_last_whole_record(tmp_path, checkpointed):
    ledger = filled(tmp_path / "made")
    log = tmp_path / "made" / "00000001.log"
    whole = log.read_bytes()
    facts = sorted(ledger.facts(), key=lambda fact: fact[1])
    ends = [ledger.places[fact[3]].offset for fact in facts[1:]] + [len(whole)]
    for length in [
        *range(0, HEADER_BYTES + 2),
        *range(HEADER_BYTES + 2, len(whole), 37),
        *ends,
        *(end - 1 for end in ends),
    ]:
        folder = tmp_path / f"torn{length}"
        folder.mkdir()
        (folder / "00000001.log").write_bytes(whole[:length])
        if checkpointed:
            sound = max((end for end in ends if end <= length), default=0)
            (folder / "checkpoint").write_bytes(encode_checkpoint(1, sound))
        reopened(folder, ledger, [fact for fact, end in zip(facts, ends, strict=True) if end <= length])
        shutil.rmtree(folder)


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\xf5" * 999, os.urandom(3000), PACK_MAGIC])
def test_rubbish_behind_the_last_record_is_cut(tmp_path, tail):
    ledger = filled(tmp_path)
    log = tmp_path / "00000001.log"
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(tail)
    with Store.open(LocalBackend(tmp_path), SETTINGS, write=True):
        assert log.stat().st_size == size
    reopened(tmp_path, ledger, ledger.facts())


def test_damage_in_the_middle_costs_no_version_behind_it(tmp_path):
    ledger = filled(tmp_path)
    (tmp_path / "checkpoint").unlink()
    log = tmp_path / "00000001.log"
    data = bytearray(log.read_bytes())
    data[HEADER_BYTES + 40] ^= 1
    log.write_bytes(data)
    with Store.open(LocalBackend(tmp_path), SETTINGS, write=True) as store:
        assert log.stat().st_size == len(data)
        assert len(list(store.scan())) == 3
        assert [(finding.pack, finding.offset) for finding in store.verify()] == [(1, HEADER_BYTES)]
        for _, time, _, digest in ledger.facts():
            if time > 0:
                assert sha1_digest(store.read(ledger.places[digest]).body) == digest


@pytest.mark.parametrize(
    "broken", [b"", b"nonsense", b"1 99999999 0\n", encode_checkpoint(1, 10**9), encode_checkpoint(7, 20), b"\xff 1 2"]
)
def test_a_broken_checkpoint_only_costs_time(tmp_path, broken):
    ledger = filled(tmp_path)
    (tmp_path / "checkpoint").write_bytes(broken)
    reopened(tmp_path, ledger, ledger.facts())


def test_a_checkpoint_saves_reading_the_log(tmp_path, monkeypatch):
    filled(tmp_path, 30)
    spans = []
    read = LocalBackend.read
    monkeypatch.setattr(LocalBackend, "read", lambda self, *span: spans.append(span) or read(self, *span))
    Store.open(LocalBackend(tmp_path), SETTINGS, write=True).close()
    assert sum(length for _, _, length in spans) == HEADER_BYTES


def test_checkpoints_come_back():
    assert parse_checkpoint(encode_checkpoint(12, 3456)) == (12, 3456)
    assert parse_checkpoint(encode_checkpoint(12, 3456).replace(b"3456", b"3457")) == (0, 0)


def test_leftovers_of_a_killed_compaction_are_removed(tmp_path):
    filled(tmp_path)
    (tmp_path / "00000002.pack.part").write_bytes(b"half a pack")
    Store.open(LocalBackend(tmp_path), SETTINGS, write=True).close()
    assert not list(tmp_path.glob("*.part"))


def test_a_log_with_a_damaged_header_is_left_alone_and_stays_readable(tmp_path):
    ledger = filled(tmp_path)
    log = tmp_path / "00000001.log"
    log.write_bytes(b"\0" * HEADER_BYTES + log.read_bytes()[HEADER_BYTES:])
    with Store.open(LocalBackend(tmp_path), SETTINGS, write=True) as store:
        for _, _, _, digest in ledger.facts():
            assert sha1_digest(store.read(ledger.places[digest]).body) == digest
        assert store.append([VersionItem(b"new", 9, b"", b"", b"new")])[0].place.pack == 2
        assert [(finding.pack, finding.offset) for finding in store.verify()][:1] == [(1, 0)]


def test_a_log_of_a_later_release_is_refused(tmp_path):
    filled(tmp_path)
    log = tmp_path / "00000001.log"
    header = bytearray(log.read_bytes()[:12])
    header[6] += 1
    from xxhash import xxh3_64_intdigest

    check = (xxh3_64_intdigest(bytes(header), 0) & 0xFFFFFFFF).to_bytes(4, "little")
    log.write_bytes(bytes(header) + check + log.read_bytes()[16:])
    with pytest.raises(NewerFormat, match="later release"):
        Store.open(LocalBackend(tmp_path), SETTINGS, write=True)
    Store.open(LocalBackend(tmp_path), SETTINGS, write=False).close()
