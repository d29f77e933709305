"""Readers never wait, never see half a state, and find what moved."""

import os
import random
import select
import threading

from ledger import Ledger
from pagemaker import history

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.store import LocalBackend, PackGone, Store

SETTINGS = StoreSettings(pack_bytes=30_000)
_ROUNDS = 12


def read_until_told(folder, journal, stop):
    """Reads what the journal names, over and over; a pack that is gone must have moved by the next look."""
    rng = random.Random(os.getpid())
    store = Store.open(LocalBackend(folder), SETTINGS, write=False)
    reads = 0
    while not select.select([stop], [], [], 0)[0] or not reads:
        places = list(Ledger(journal).places.items())
        for digest, place in rng.sample(places, min(5, len(places))):
            try:
                found = store.read(place)
            except PackGone:
                found = store.read(Ledger(journal).places[digest])
            assert sha1_digest(found.body) == digest
            reads += 1
    return reads


def fork_reader(folder, journal, stop):
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        status = 0 if read_until_told(folder, journal, stop) else 2
    finally:
        os._exit(status)


def test_processes_read_while_another_writes_compacts_and_releases(tmp_path):
    folder, journal = tmp_path / "store", tmp_path / "journal"
    ledger = Ledger(journal)
    pages = [history(seed, 2 * _ROUNDS, 1500) for seed in range(4)]
    stop, tell = os.pipe()
    with Store.open(LocalBackend(folder), SETTINGS, write=True) as store:
        ledger.put(store, [(b"doc", 0, b"", b"first")])
        readers = [fork_reader(folder, journal, stop) for _ in range(2)]
        for number in range(2 * _ROUNDS):
            ledger.put(store, [(b"doc %d" % seed, number, b"", pages[seed][number]) for seed in range(4)])
            if number % 2:
                for batch in store.compact(ledger.chains(), effort="quick"):
                    ledger.move(batch)
                old = ledger.live()
                # Readers learn places from the journal before packs go, as they would from the catalogue.
                store.release(old, ledger.keep)
    os.write(tell, b"!")
    assert [os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) for reader in readers] == [0, 0]
    os.close(stop)
    os.close(tell)


def test_threads_share_a_store(opened):
    ledger, store = Ledger(), opened(pack_bytes=20_000)
    for number, page in enumerate(history(1, 40, 2000)):
        ledger.put(store, [(b"doc", number, b"", page)])
    for batch in store.compact(ledger.chains(), effort="quick"):
        ledger.move(batch)
    reader, wrong = opened(write=False, pack_bytes=20_000), []

    def read(seed):
        rng = random.Random(seed)
        for digest, place in rng.choices(list(ledger.places.items()), k=150):
            if sha1_digest(reader.read(place).body) != digest:
                wrong.append(place)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_was_read_is_not_kept_in_memory(opened):
    store, ledger = opened(), Ledger()
    for number, body in enumerate(history(1, 3, 1500)):
        ledger.put(store, [(b"doc", number, b"", body)])
    for batch in store.compact(ledger.chains()):
        ledger.move(batch)
    for place in ledger.places.values():
        assert store.read(place).body is not store.read(place).body
