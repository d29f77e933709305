"""Known texts of sites: written once, leaned on from other packs, and never removed while anything needs them."""

import shutil

import pytest
from ledger import Ledger
from pagemaker import site_history

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.errors import Damaged
from letopis.store import LocalBackend, SiteTexts, Store, VersionChain
from letopis.store.content_reader import GENERIC_TEXT
from letopis.store.pack_format import RecordKind, parse_frame_head


class SiteLedger(Ledger):
    """Documents of `site/name`."""

    def chains(self):
        return (chain._replace(site=chain.key.partition(b"/")[0]) for chain in super().chains())

    def siblings(self, site):
        return (chain.entries[0] for chain in self.chains() if chain.site == site)


def fill(store, ledger, sites=(1,), documents=4, versions=3, start=0):
    for site in sites:
        for document in range(documents):
            pages = site_history(site, document, start + versions)
            key = b"%d/%d" % (site, document)
            ledger.put(store, [(key, number, b"", pages[number]) for number in range(start, start + versions)])


def compact(store, ledger, sites=None, **options):
    for batch in store.compact(ledger.chains(), sites=sites or SiteTexts(ledger.siblings), **options):
        ledger.move(batch)
    return store.release(ledger.live(), ledger.keep)


def texts(store):
    """Places of the known texts, and of those that frames lean on."""
    held, used = set(), set()
    for pack, size in store.sizes().items():
        for record in store._facts.records(pack, size):
            if record.kind == RecordKind.TEXT:
                held.add((pack, record.offset))
            if record.kind == RecordKind.FRAME and (at := parse_frame_head(record.head).text) not in (
                None,
                GENERIC_TEXT,
            ):
                used.add(tuple(at))
    return held, used


def leans(store, chain):
    """The text that the newest version of a document needs."""
    place = chain.entries[0].place
    return parse_frame_head(store._packs.record(place.pack, place.offset).head).text


def sound(store, ledger):
    for _, _, _, digest in ledger.facts():
        found = store.read(ledger.places[digest])
        assert sha1_digest(found.body) == digest
        assert found.decoded_bytes <= max(2_000_000, 8 * len(found.body))
    assert not list(store.verify(ledger.live()))
    assert ledger.facts() <= {(fact.key, fact.time, fact.note, fact.digest) for fact in store.scan()}
    held, used = texts(store)
    assert used <= held
    return True


def test_the_text_of_a_site_is_written_once_and_makes_its_documents_smaller(opened):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger)
    compact(store, ledger)
    assert len(texts(store)[0]) == 1
    assert sound(store, ledger)
    other, lonely = opened(folder="other"), Ledger()
    fill(other, lonely)
    for batch in other.compact(lonely.chains()):
        lonely.move(batch)
    other.release(lonely.live(), lonely.keep)
    assert store.stats().pack_bytes < 0.8 * other.stats().pack_bytes


def test_one_text_serves_many_packs_and_later_compactions(opened):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger)
    compact(store, ledger, batch_seconds=0)
    fill(store, ledger, documents=1, versions=1, start=3)
    compact(store, ledger)
    held, used = texts(store)
    assert len(held) == 1
    assert used == held
    assert len(ledger.live()) > 1
    assert sound(store, ledger)


def test_a_single_document_gets_no_text(opened):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger, sites=(1, 2), documents=1)
    compact(store, ledger)
    assert texts(store) == (set(), set())
    assert sound(store, ledger)


def test_a_pack_stays_while_a_text_in_it_is_needed(opened):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger)
    compact(store, ledger, batch_seconds=0)
    ((pack, _),) = texts(store)[0]
    inside = {chain.key for chain in ledger.chains() if chain.entries[0].place.pack == pack}
    for key in inside:
        ledger.forget(key, [0, 1, 2])
    assert pack not in ledger.live()
    store.release(ledger.live(), ledger.keep)
    assert pack in store.sizes()
    assert sound(store, ledger)


def test_a_sparse_pack_with_a_text_is_emptied_and_the_site_moves_to_a_new_text(opened):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger)
    compact(store, ledger, batch_seconds=0)
    ((pack, _),) = texts(store)[0]
    compact(store, ledger, rewrite={pack})
    assert pack not in store.sizes()
    assert len(texts(store)[0]) == 1
    assert sound(store, ledger)


def test_texts_and_facts_are_no_waste(opened):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger, documents=3, versions=1)
    moves = []
    for batch in store.compact(ledger.chains(), sites=SiteTexts(ledger.siblings)):
        ledger.move(batch)
        moves += batch.moves
    used = {}
    for move in moves:
        used[move.new.pack] = used.get(move.new.pack, 0) + move.stored_bytes
    assert store.sparse(used) == set()


def test_a_damaged_text_is_named_and_costs_only_its_site(opened, tmp_path):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger, sites=(1, 2))
    compact(store, ledger)
    held = sorted(texts(store)[0])
    assert len(held) == 2
    pack, offset = held[0]
    store.close()
    folder = tmp_path / "broken"
    shutil.copytree(tmp_path / "store", folder)
    file = folder / f"{pack:08d}.pack"
    data = bytearray(file.read_bytes())
    data[offset + 40] ^= 1
    file.write_bytes(data)
    with Store.open(LocalBackend(folder), StoreSettings(), write=False) as store:
        findings = list(store.verify())
        assert any(finding.offset == offset for finding in findings)
        leaning = [chain for chain in ledger.chains() if leans(store, chain) == (pack, offset)]
        others = [chain for chain in ledger.chains() if chain not in leaning]
        assert len(leaning) > 1
        for chain in leaning:
            with pytest.raises(Damaged, match=f"offset {offset}"):
                store.read(chain.entries[0].place)
        for chain in others:
            assert sha1_digest(store.read(chain.entries[0].place).body) == chain.entries[0].digest


def test_a_text_that_was_never_finished_is_not_leaned_on(opened):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger)
    sites = SiteTexts(ledger.siblings)

    def failing():
        for number, chain in enumerate(ledger.chains()):
            if number == 2:
                raise KeyboardInterrupt
            yield chain

    with pytest.raises(KeyboardInterrupt):
        list(store.compact(failing(), sites=sites))
    compact(store, ledger, sites=sites)
    assert sound(store, ledger)


def test_a_text_whose_pack_was_removed_is_not_leaned_on(opened):
    ledger, store = SiteLedger(), opened()
    fill(store, ledger)
    sites = SiteTexts(ledger.siblings)
    compact(store, ledger, sites=sites)
    for key in [b"1/%d" % document for document in range(4)]:
        ledger.forget(key, [0, 1, 2])
    fill(store, ledger, documents=4, versions=1, start=5)
    store.release(ledger.live(), ledger.keep)
    compact(store, ledger, sites=sites)
    assert sound(store, ledger)


def test_chains_without_a_site_need_no_sites(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2)
    for batch in store.compact([VersionChain(chain.key, chain.entries) for chain in ledger.chains()]):
        ledger.move(batch)
    assert texts(store) == (set(), set())
