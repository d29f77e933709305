import os
import random
import shutil

import pytest
from ledger import Ledger
from pagemaker import history

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.errors import Damaged, LetopisError
from letopis.store import LocalBackend, Store
from letopis.store.pack_format import HEADER_BYTES

SETTINGS = StoreSettings(pack_bytes=6000)
_TRIES = 400 if os.environ.get("LETOPIS_LONG") else 60


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A store with logs, quick and full packs, pieces and facts; and its ledger."""
    folder, ledger = tmp_path_factory.mktemp("sample"), Ledger()
    with Store.open(LocalBackend(folder), SETTINGS, write=True) as store:
        for effort, start in (("full", 0), ("quick", 4), (None, 8)):
            for number in range(start, start + 4):
                rows = [(b"doc %d" % seed, number, b"n", history(seed, 12, 900)[number]) for seed in range(3)]
                ledger.put(store, [*rows, (b"mirror", number, b"m", rows[0][3])])
            if effort:
                for batch in store.compact(ledger.chains(), effort=effort):
                    ledger.move(batch)
                store.release(ledger.live(), ledger.keep)
        ledger.put(store, [(b"big", 1, b"", random.Random(1).randbytes(5 << 20))])
        assert not list(store.verify())
    return folder, ledger


def readable(store, ledger):
    """Digests of the contents that can be read; whatever is read is right."""
    good = set()
    for digest, place in ledger.places.items():
        try:
            body = store.read(place).body
        except Damaged as error:
            named = f"{place.pack:08d}" in str(error)
        else:
            named = sha1_digest(body) == digest
            good.add(digest)
        assert named
    return good


def broken_copy(sample, tmp_path, change, number):
    folder = tmp_path / f"broken{number}"
    shutil.copytree(sample[0], folder)
    change(folder)
    return folder


def test_a_sound_store_has_no_findings(sample):
    for write in (True, False):
        with Store.open(LocalBackend(sample[0]), SETTINGS, write=write) as store:
            assert not list(store.verify(sample[1].live()))
            assert readable(store, sample[1]) == set(sample[1].places)


def test_a_flipped_byte_anywhere_is_found_named_and_costs_only_its_record(sample, tmp_path):
    ledger = sample[1]
    rng = random.Random(11)
    small = [path for path in sorted(sample[0].glob("0*")) if path.stat().st_size < 1 << 20]
    for number in range(_TRIES):
        victim = rng.choice(small)
        at = rng.randrange(victim.stat().st_size)

        def flip(folder, name=victim.name, at=at):
            data = bytearray((folder / name).read_bytes())
            data[at] ^= 1 << rng.randrange(8)
            (folder / name).write_bytes(data)

        folder = broken_copy(sample, tmp_path, flip, number)
        with Store.open(LocalBackend(folder), SETTINGS, write=True) as store:
            findings = list(store.verify(ledger.live()))
            assert {finding.pack for finding in findings} == {int(victim.name[:8])}
            assert any(finding.offset <= at < finding.offset + finding.length for finding in findings)
            lost = set(ledger.places) - readable(store, ledger)
            assert {ledger.places[digest].pack for digest in lost} <= {int(victim.name[:8])}
            assert len({(ledger.places[digest].pack, ledger.places[digest].offset) for digest in lost}) <= 2
            assert all(isinstance(str(finding), str) for finding in findings)
        shutil.rmtree(folder)


def test_a_flipped_byte_in_a_large_content_is_found(sample, tmp_path):
    place = sample[1].places[sha1_digest(random.Random(1).randbytes(5 << 20))]
    name = f"{place.pack:08d}.log"

    def flip(folder):
        data = bytearray((folder / name).read_bytes())
        data[place.offset - 2_000_000] ^= 4
        (folder / name).write_bytes(data)

    folder = broken_copy(sample, tmp_path, flip, 0)
    with Store.open(LocalBackend(folder), SETTINGS, write=False) as store:
        assert {finding.pack for finding in store.verify()} == {place.pack}
        with pytest.raises(Damaged, match=name):
            list(store.stream(place))


def test_missing_bytes_are_found_and_the_rest_is_readable(sample, tmp_path):
    ledger = sample[1]
    victim = next(path for path in sorted(sample[0].glob("*.pack")))
    middle = victim.stat().st_size // 2

    def lose(folder):
        data = (folder / victim.name).read_bytes()
        (folder / victim.name).write_bytes(data[:middle] + data[middle + 100 :])

    folder = broken_copy(sample, tmp_path, lose, 0)
    with Store.open(LocalBackend(folder), SETTINGS, write=True) as store:
        assert {finding.pack for finding in store.verify()} == {int(victim.name[:8])}
        good = readable(store, ledger)
        assert {digest for digest, place in ledger.places.items() if place.pack != int(victim.name[:8])} <= good


def test_a_missing_pack_is_named(sample, tmp_path):
    ledger = sample[1]
    folder = broken_copy(sample, tmp_path, lambda folder: next(folder.glob("*.pack")).unlink(), 0)
    with Store.open(LocalBackend(folder), SETTINGS, write=True) as store:
        (finding,) = store.verify(ledger.live())
        assert (finding.problem, finding.offset) == ("the pack is missing", 0)


def test_a_content_that_does_not_fit_its_digest_is_found(opened):
    from letopis.store import VersionItem

    store = opened()
    store.append([VersionItem(b"k", 1, b"", b"x" * 20, b"another body")])
    assert "does not match its digest" in next(store.verify()).problem


def test_a_reader_does_not_call_a_growing_log_damaged(opened, tmp_path):
    ledger, store = Ledger(), opened()
    ledger.put(store, [(b"k", 1, b"", b"one")])
    with (tmp_path / "store" / "00000001.log").open("ab") as file:
        file.write(b"\xf5half a record")
    assert not list(opened(write=False).verify())


def test_rubbish_for_a_pack_is_named_and_harmless(sample, tmp_path):
    folder = broken_copy(sample, tmp_path, lambda folder: (folder / "00000099.pack").write_bytes(os.urandom(3000)), 0)
    with Store.open(LocalBackend(folder), SETTINGS, write=False) as store:
        findings = list(store.verify())
        assert {finding.pack for finding in findings} == {99}
        assert readable(store, sample[1]) == set(sample[1].places)


def test_any_bytes_behind_a_header_are_walked_without_a_crash(tmp_path):
    from letopis.store.pack_format import encode_pack_header

    rng = random.Random(3)
    for number in range(_TRIES):
        body = bytes(rng.choice([0xF5, rng.randrange(256), rng.randrange(6)]) for _ in range(rng.randrange(400)))
        (tmp_path / "00000001.pack").write_bytes(encode_pack_header(0, 1) + body)
        with Store.open(LocalBackend(tmp_path), SETTINGS, write=False) as store:
            findings = list(store.verify())
            assert sum(finding.length for finding in findings) >= (1 if body else 0)
            assert list(store.scan()) == []
            assert number >= 0


def test_facts_are_scanned_around_damage(sample, tmp_path):
    ledger = sample[1]
    log = sorted(sample[0].glob("*.log"))[0]

    def flip(folder):
        data = bytearray((folder / log.name).read_bytes())
        data[HEADER_BYTES + 30] ^= 1
        (folder / log.name).write_bytes(data)

    folder = broken_copy(sample, tmp_path, flip, 0)
    try:
        with Store.open(LocalBackend(folder), SETTINGS, write=False) as store:
            told = {(fact.key, fact.time) for fact in store.scan()}
    except LetopisError:
        pytest.fail("a scan must go on with the rest")
    known = {(key, time) for key, time, _, _ in ledger.facts()}
    assert len(known - told) == 1
