"""Kills a writer at every sort of write and at random times; nothing acknowledged may be lost, and no hands are needed.

LETOPIS_LONG=1 makes it a thousand rounds, LETOPIS_LONG=200 two hundred.
"""

import os
import random
import select
import signal
import traceback

import pytest
from deadlydisk import KillingDisk, PowerlessDisk
from ledger import Ledger
from pagemaker import site_history

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.store import Disk, LocalBackend, SiteTexts, Store
from letopis.store.pack_format import RecordKind

ROUNDS = {"": 40, "1": 1000}.get(LONG := os.environ.get("LETOPIS_LONG", "")) or int(LONG)
SETTINGS = StoreSettings(pack_bytes=20_000)
_STEPS = 25
_FRESH_EVERY = 8
_PAGES = [site_history(seed % 2, seed, 60) for seed in range(6)]


class SiteLedger(Ledger):
    """All documents are of one site, so that a full compaction writes a known text which later packs lean on."""

    def chains(self):
        return (chain._replace(site=b"site") for chain in super().chains())

    def siblings(self, site):
        return (chain.entries[0] for chain in super().chains() if chain.entries)


def test_the_rounds_have_known_texts_to_lose(tmp_path):
    work(tmp_path / "store", tmp_path / "journal", "with texts", Disk())
    with Store.open(LocalBackend(tmp_path / "store"), SETTINGS, write=False) as store:
        kinds = [record.kind for pack, size in store.sizes().items() for record in store._facts.records(pack, size)]
    assert RecordKind.TEXT in kinds


def work(folder, journal, seed, disk):
    """Puts, compacts and releases until it is killed or done."""
    rng = random.Random(seed)
    ledger = SiteLedger(journal)
    sites = SiteTexts(ledger.siblings)
    store = Store.open(LocalBackend(folder, disk=disk), SETTINGS, write=True)
    for _ in range(_STEPS):
        if rng.random() < 0.8:
            ledger.put(store, [_version(rng, ledger) for _ in range(rng.randrange(1, 4))])
        else:
            effort = "full" if rng.random() < 0.3 else "quick"
            rewrite = list(store.sizes())[:1] if rng.random() < 0.3 else ()
            for batch in store.compact(
                ledger.chains(), effort=effort, rewrite=rewrite, batch_seconds=rng.choice([0, 60]), sites=sites
            ):
                ledger.move(batch)
            store.release(ledger.live(), ledger.keep)
    store.close()


def _version(rng, ledger):
    seed = rng.randrange(len(_PAGES))
    time = sum(map(len, ledger.versions.values())) * 1000 + rng.randrange(1000)
    return (
        b"doc %d" % seed,
        time,
        b"note %d" % rng.randrange(2),
        _PAGES[rng.randrange(len(_PAGES))][rng.randrange(60)],
    )


def run_child(folder, journal, seed, disk, kill_after=None):
    """The exit status of a forked writer; with `kill_after` it is killed from outside after that many seconds."""
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(folder, journal, seed, disk)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(held)
    if kill_after is not None and not select.select([alive], [], [], kill_after)[0]:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(alive)
    return status


def check(folder, journal):
    """Opens as the next process would, and asks for everything that was acknowledged."""
    ledger = SiteLedger(journal)
    with Store.open(LocalBackend(folder), SETTINGS, write=True) as store:
        for _, _, _, digest in ledger.facts():
            assert sha1_digest(store.read(ledger.places[digest]).body) == digest
        assert not list(store.verify(ledger.live()))
        told = {(fact.key, fact.time, fact.note, fact.digest) for fact in store.scan()}
        assert ledger.facts() <= told
        assert not list(folder.glob("*.part"))


@pytest.mark.parametrize("part", range(4))
def test_nothing_acknowledged_is_lost_when_a_writer_is_killed(tmp_path, part):
    rng = random.Random(f"{ROUNDS} {part}")
    killed = 0
    for number in range(ROUNDS // 4):
        folder, journal = tmp_path / f"s{number // _FRESH_EVERY}", tmp_path / f"j{number // _FRESH_EVERY}"
        if number % 5 == 4:
            status = run_child(folder, journal, rng.random(), Disk(), kill_after=rng.uniform(0, 0.25))
        else:
            kill_at, manner = rng.randrange(1, 90), rng.choice(["before", "middle", "after"])
            disk = KillingDisk(kill_at, manner) if number % 2 else PowerlessDisk(kill_at, manner, folder)
            status = run_child(folder, journal, rng.random(), disk)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        killed += os.WIFSIGNALED(status)
        check(folder, journal)
    assert killed > ROUNDS // 8


@pytest.mark.parametrize("power", ["stays", "goes"])
@pytest.mark.parametrize("manner", ["before", "middle", "after"])
def test_a_kill_at_each_single_call_of_a_put_and_a_compaction_is_survived(tmp_path, manner, power):
    """Walks through the calls of one fixed run, one after the other, from the first to the last."""
    count = KillingDisk(0, manner)
    work(tmp_path / "whole", tmp_path / "whole.journal", "fixed", count)
    assert count.calls > 60
    step = 1 if os.environ.get("LETOPIS_LONG") else 9
    for kill_at in range(1, count.calls + 1, step):
        folder, journal = tmp_path / f"s{kill_at}", tmp_path / f"j{kill_at}"
        disk = KillingDisk(kill_at, manner) if power == "stays" else PowerlessDisk(kill_at, manner, folder)
        status = run_child(folder, journal, "fixed", disk)
        assert os.WIFSIGNALED(status)
        check(folder, journal)
