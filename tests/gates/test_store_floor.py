"""Floors of the store on small generated data: lowering one needs a reason."""

import lzma
import zlib

import pytest
from ledger import Ledger
from pacing import cpu, lowest
from pagemaker import history, site_history

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.store import LocalBackend, SiteTexts, Store

DOCUMENTS, VERSIONS, SIZE = 6, 12, 30_000
DIGEST = "4ad3f7771020d5837d267a2a"


def pages():
    return [history(seed, VERSIONS, SIZE) for seed in range(DOCUMENTS)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    ledger = Ledger()
    with Store.open(LocalBackend(tmp_path_factory.mktemp("floor")), StoreSettings(), write=True) as store:
        for number in range(VERSIONS):
            for seed, document in enumerate(pages()):
                ledger.put(store, [(b"doc %d" % seed, number * 3_600_000, b"text/html", document[number])])
        yield store, ledger


def test_the_data_is_the_one_the_floors_were_set_on():
    assert sha1_digest(b"".join(body for document in pages() for body in document)).hex()[:24] == DIGEST


@pytest.mark.timed
def test_q6_a_durable_put_costs_less_than_gzip(tmp_path):
    bodies = [body for document in pages()[:3] for body in document]
    with Store.open(LocalBackend(tmp_path), StoreSettings(), write=True) as store:
        ledger = Ledger()

        def put():
            for body in bodies:
                ledger.places.clear()
                ledger.put(store, [(b"key", len(ledger.versions), b"", body)])

        def share():
            return cpu(put, 3) / cpu(lambda: [zlib.compress(body, 9) for body in bodies], 3)

        assert lowest(share, 2.0) <= 2.0


@pytest.mark.timed
def test_q4_the_newest_is_read_faster_than_gunzip(made):
    store, ledger = made
    newest = [(chain.entries[0].place, chain.entries[0].digest) for chain in ledger.chains()]
    zipped = [zlib.compress(store.read(place).body, 9) for place, _ in newest]

    def share():
        ours = cpu(lambda: [store.read(place) for _ in range(20) for place, _ in newest])
        return ours / cpu(lambda: [zlib.decompress(data) for _ in range(20) for data in zipped])

    assert lowest(share, 1.5) <= 1.5


@pytest.mark.parametrize(("effort", "share"), [("quick", 1.36), ("full", 1.04)])
def test_q1_packs_come_near_solid_xz(tmp_path, effort, share):
    ledger = Ledger()
    with Store.open(LocalBackend(tmp_path), StoreSettings(), write=True) as store:
        for number in range(VERSIONS):
            for seed, document in enumerate(pages()[:3]):
                ledger.put(store, [(b"doc %d" % seed, number * 3_600_000, b"text/html", document[number])])
        for batch in store.compact(ledger.chains(), effort=effort):
            ledger.move(batch)
        store.release(ledger.live(), ledger.keep)
        whole = b"".join(body for document in pages()[:3] for body in document)
        assert store.stats().pack_bytes <= share * len(lzma.compress(whole, preset=9 | lzma.PRESET_EXTREME))


@pytest.mark.timed
def test_q5_an_old_version_is_read_in_twenty_times_gunzip(tmp_path):
    ledger = Ledger()
    with Store.open(LocalBackend(tmp_path), StoreSettings(), write=True) as store:
        for number, body in enumerate(pages()[0]):
            ledger.put(store, [(b"doc", number, b"", body)])
        for batch in store.compact(ledger.chains()):
            ledger.move(batch)
        (chain,) = ledger.chains()
        old = [entry.place for entry in chain.entries[1:]]
        zipped = [zlib.compress(store.read(place).body, 9) for place in old]

        def share():
            ours = cpu(lambda: [store.read(place) for place in old])
            return ours / cpu(lambda: [zlib.decompress(data) for data in zipped])

        assert lowest(share, 20.0) <= 20.0


def size_of_five_pages(folder, site):
    ledger = Ledger()
    with Store.open(LocalBackend(folder), StoreSettings(), write=True) as store:
        ledger.put(store, [(b"%d" % number, 1, b"", site_history(1, number, 1)[0]) for number in range(5)])
        chains = [chain._replace(site=site) for chain in ledger.chains()]
        for batch in store.compact(chains, sites=SiteTexts(lambda _: [chain.entries[0] for chain in chains])):
            ledger.move(batch)
        store.release(ledger.live(), ledger.keep)
        return store.stats().pack_bytes


def test_q1_the_text_of_a_site_makes_its_documents_smaller(tmp_path):
    together = size_of_five_pages(tmp_path / "site", b"site")
    assert together <= 0.4 * size_of_five_pages(tmp_path / "alone", b"")


def test_q5_no_version_takes_more_than_the_bound(made):
    store, ledger = made
    for batch in store.compact(ledger.chains(), effort="quick"):
        ledger.move(batch)
    for _, _, _, digest in ledger.facts():
        found = store.read(ledger.places[digest])
        assert found.decoded_bytes <= max(2_000_000, 8 * len(found.body))
