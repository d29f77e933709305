import random

import pytest
from ledger import Ledger
from pagemaker import history

from letopis.binary import sha1_digest
from letopis.errors import Damaged
from letopis.store import ChainEntry, LocalBackend, PackGone, SiteTexts, VersionChain
from letopis.store.content_reader import GENERIC_TEXT, CompactionSource, built_in_text
from letopis.store.frame_groups import solid_frames
from letopis.store.pack_compaction import CompactionPlan, Compactor
from letopis.store.solid import stream
from letopis.store.solid.frame_writer import SolidOptions

EFFORTS = ["quick", "full"]
BUILT_IN = stream.stream_overhead(built_in_text(GENERIC_TEXT))


def fill(store, ledger, documents=5, versions=9, size=3000, start=0):
    pages = [history(seed, start + versions, size) for seed in range(documents)]
    for number in range(start, start + versions):
        ledger.put(store, [(b"doc %d" % seed, number, b"html", pages[seed][number]) for seed in range(documents)])


def compact(store, ledger, **options):
    batches = []
    for batch in store.compact(ledger.chains(), **options):
        ledger.move(batch)
        batches.append(batch)
    return batches


def release(store, ledger):
    return store.release(ledger.live(), ledger.keep)


def sound(store, ledger):
    for _, _, _, digest in ledger.facts():
        found = store.read(ledger.places[digest])
        assert sha1_digest(found.body) == digest
        assert found.decoded_bytes <= max(2_000_000, 8 * len(found.body))
    assert not list(store.verify(ledger.live()))
    assert {(fact.key, fact.time, fact.note, fact.digest) for fact in store.scan()} == ledger.facts()
    return True


@pytest.mark.parametrize("effort", EFFORTS)
def test_every_version_survives_and_the_old_packs_go(opened, effort):
    ledger, store = Ledger(), opened()
    fill(store, ledger)
    before = store.stats().pack_bytes
    compact(store, ledger, effort=effort)
    assert release(store, ledger) == before
    assert sound(store, ledger)
    assert store.stats().pack_bytes < before / 4
    store.close()
    assert sound(opened(write=False), ledger)


@pytest.mark.parametrize("effort", EFFORTS)
def test_the_newest_is_still_decoded_alone(opened, effort):
    ledger, store = Ledger(), opened()
    fill(store, ledger)
    compact(store, ledger, effort=effort)
    for chain in ledger.chains():
        found = store.read(chain.entries[0].place)
        assert found.decoded_bytes <= len(found.body) + BUILT_IN


@pytest.mark.parametrize(("effort", "versions"), [("quick", 9), ("full", 3)])
def test_reading_any_version_takes_bounded_work(opened, effort, versions):
    ledger, store = Ledger(), opened()
    rng = random.Random(5)
    base = [f"<p>{rng.random()}</p>" * 50 for _ in range(500)]
    for number in range(versions):
        for at in rng.sample(range(500), 100):
            base[at] = f"<p>{rng.random()}</p>" * 50
        ledger.put(store, [(b"busy", number, b"", "".join(base).encode())])
    ledger.put(store, [(b"busy", 9, b"", b"moved away"), (b"busy", 10, b"", "".join(base[1:]).encode())])
    compact(store, ledger, effort=effort)
    release(store, ledger)
    assert sound(store, ledger)


@pytest.mark.parametrize("effort", EFFORTS)
def test_growing_chains_are_compacted_again_and_again(opened, effort):
    ledger, store = Ledger(), opened()
    for turn in range(4):
        fill(store, ledger, documents=2, versions=3, start=3 * turn)
        compact(store, ledger, effort=effort)
        release(store, ledger)
        assert sound(store, ledger)
    assert store.stats().log_bytes == 0


def test_a_finished_chain_is_not_written_again(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger)
    compact(store, ledger)
    assert [batch.moves for batch in compact(store, ledger)] == [()]
    fill(store, ledger, documents=1, versions=1, start=9)
    assert sum(len(batch.moves) for batch in compact(store, ledger)) == 1
    fill(store, ledger, documents=1, versions=9, start=10)
    assert sum(len(batch.moves) for batch in compact(store, ledger)) == 19


def test_a_quick_compaction_leaves_what_has_its_final_form(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2, versions=4)
    compact(store, ledger)
    fill(store, ledger, documents=2, versions=4, start=4)
    assert sum(len(batch.moves) for batch in compact(store, ledger, effort="quick")) == 8
    release(store, ledger)
    assert sound(store, ledger)


@pytest.mark.parametrize("effort", EFFORTS)
def test_a_content_of_two_documents_is_stored_once_and_stays_put(opened, effort):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2)
    shared = history(0, 9, 3000)[4]
    ledger.put(store, [(b"mirror", 1, b"", shared), (b"mirror", 2, b"", b"own"), (b"mirror", 3, b"", b"other")])
    for turn in range(3):
        batches = compact(store, ledger, effort=effort)
        assert bool(sum(len(batch.moves) for batch in batches)) == (turn == 0)
        release(store, ledger)
        assert sound(store, ledger)


def test_a_page_that_comes_back_costs_nothing(opened):
    ledger, store = Ledger(), opened()
    pages = history(1, 2)
    for number in range(40):
        ledger.put(store, [(b"swing", number, b"", pages[number % 2])])
    compact(store, ledger)
    release(store, ledger)
    assert sound(store, ledger)
    assert store.stats().pack_bytes < 2500


def test_versions_that_no_chain_names_are_dropped(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2)
    compact(store, ledger)
    release(store, ledger)
    before = store.stats().pack_bytes
    ledger.forget(b"doc 0", list(range(0, 8)))
    compact(store, ledger, rewrite=store.sizes())
    release(store, ledger)
    assert sound(store, ledger)
    assert store.stats().pack_bytes < before


def test_a_document_may_vanish_altogether(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2, versions=3)
    ledger.forget(b"doc 0", [0, 1, 2])
    compact(store, ledger)
    release(store, ledger)
    assert sound(store, ledger)


def test_sparse_packs_are_emptied_on_demand(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=3, versions=3)
    compact(store, ledger)
    release(store, ledger)
    (sparse,) = store.sizes()
    compact(store, ledger, rewrite={sparse})
    release(store, ledger)
    assert sparse not in store.sizes()
    assert sound(store, ledger)


def test_packs_with_less_than_half_in_use_are_named(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2)
    (batch,) = compact(store, ledger)
    pack = batch.moves[0].new.pack
    whole = sum(move.stored_bytes for move in batch.moves)
    assert store.sparse({pack: whole}) == set()
    assert store.sparse({pack: whole // 3}) == {pack}


def test_facts_that_only_a_dying_pack_holds_are_saved(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=1, versions=2)
    compact(store, ledger)
    shared = history(0, 2, 3000)[1]
    ledger.put(store, [(b"mirror", 5, b"kept", shared), (b"mirror", 6, b"dropped", shared)])
    ledger.forget(b"mirror", [6])
    store.close()
    store = opened()
    list(store.compact(()))
    compact(store, ledger, rewrite=ledger.live())
    release(store, ledger)
    assert sound(store, ledger)


def test_stopping_keeps_what_is_done_and_leaves_the_rest(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=6, versions=3)
    asked = iter([False, False, True])
    done = []
    batches = compact(store, ledger, effort="quick", stop=lambda: next(asked), progress=done.append)
    assert [batch.chains for batch in batches] == done == [2]
    release(store, ledger)
    assert sound(store, ledger)
    assert store.stats().log_bytes > 0


def test_leaving_a_compaction_in_the_middle_leaves_no_part(opened, tmp_path):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=3, versions=2)
    work = store.compact(ledger.chains(), effort="quick", batch_seconds=0)
    next(work)
    work.close()
    assert not list(tmp_path.glob("store/*.part"))
    assert sound(store, ledger)


def test_batches_are_handed_out_by_time_and_by_size(opened):
    ledger, store = Ledger(), opened(pack_bytes=3000)
    fill(store, ledger, documents=6, versions=3)
    assert len(compact(store, ledger, effort="quick", batch_seconds=0)) == 6
    ledger, store = Ledger(), opened(folder="other", pack_bytes=3000)
    fill(store, ledger, documents=6, versions=3)
    assert 1 < len(compact(store, ledger, effort="quick")) < 6


def test_versions_can_be_stored_while_a_compaction_goes_on(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=4, versions=3)
    for number, batch in enumerate(store.compact(ledger.chains(), effort="quick", batch_seconds=0)):
        ledger.move(batch)
        ledger.put(store, [(b"doc 0", 100 + number, b"", b"meanwhile %d" % number)])
        assert sha1_digest(store.read(ledger.places[batch.moves[0].digest]).body) if batch.moves else True
    release(store, ledger)
    assert sound(store, ledger)


def test_versions_can_be_stored_even_while_chains_are_asked_for(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=3, versions=3)

    def chains():
        for number, chain in enumerate(ledger.chains()):
            store.stats()
            ledger.put(store, [(b"late", number, b"", b"meanwhile %d" % number)])
            yield chain

    for batch in store.compact(chains(), effort="quick"):
        ledger.move(batch)
    release(store, ledger)
    assert sound(store, ledger)
    names = list(store.sizes())
    assert len(names) == len(set(names)) == store.stats().packs


def test_a_log_that_a_compaction_closed_stays_closed_after_reopening(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2, versions=3)
    next(store.compact(ledger.chains(), effort="quick", batch_seconds=0))
    store.close()
    store = opened()
    assert ledger.put(store, [(b"new", 1, b"", b"new")])[0].place.pack == 3
    compact(store, ledger, effort="quick")
    release(store, ledger)
    assert store.stats().log_bytes == 0
    assert sound(store, ledger)


def test_a_reader_keeps_what_it_has_open_and_is_told_what_moved(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=1, versions=3)
    digest, old = next(iter(ledger.places.items()))
    early, late = opened(write=False), opened(write=False)
    assert sha1_digest(early.read(old).body) == digest
    compact(store, ledger, effort="quick")
    release(store, ledger)
    assert sha1_digest(early.read(old).body) == digest
    with pytest.raises(PackGone, match="look the content up again"):
        late.read(old)
    assert sha1_digest(late.read(ledger.places[digest]).body) == digest


@pytest.mark.parametrize("effort", EFFORTS)
def test_an_unreadable_content_stays_and_the_others_move(opened, tmp_path, effort):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2, versions=3)
    victim = next(iter(ledger.places.values()))
    log = tmp_path / "store" / "00000001.log"
    data = bytearray(log.read_bytes())
    data[victim.offset + 60] ^= 1
    log.write_bytes(data)
    store.close()
    store = opened()
    (batch,) = compact(store, ledger, effort=effort)
    assert (batch.failed, len(batch.moves)) == ((victim,), 5)
    assert release(store, ledger) == 0
    with pytest.raises(Damaged, match=f"offset {victim.offset}"):
        store.read(victim)


def test_a_lost_pack_does_not_keep_the_others_from_moving(opened, tmp_path):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=2, versions=3)
    compact(store, ledger)
    release(store, ledger)
    fill(store, ledger, documents=2, versions=2, start=3)
    store.close()
    next((tmp_path / "store").glob("*.pack")).unlink()
    store = opened()
    moved = [move for batch in compact(store, ledger, effort="quick") for move in batch.moves]
    assert len(moved) == 4
    moved = [move for batch in compact(store, ledger, effort="full") for move in batch.moves]
    assert len(moved) == 4


def test_frames_that_do_not_read_back_are_made_again_by_the_plain_coder(opened):
    def lying(bodies, texts):
        return solid_frames(SolidOptions(), 0.0)([bodies[0], *(b"wrong" for _ in bodies[1:])], texts)

    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=1, versions=3)
    sources = CompactionSource(store._packs, store._reader)
    plan = CompactionPlan(lying, 1, 10**6, 60, frozenset(), lambda: 0.0)
    (batch,) = Compactor(store._packs, sources, plan, SiteTexts()).run(ledger.chains(), lambda: False)
    ledger.move(batch)
    assert {move.method for move in batch.moves} == {"run"}
    assert sound(store, ledger)


def test_large_contents_are_copied_in_pieces(opened):
    ledger, store = Ledger(), opened()
    rng = random.Random(1)
    large = [rng.randbytes(5 << 20) for _ in range(2)]
    ledger.put(store, [(b"big", 1, b"", large[0]), (b"big", 2, b"", b"small"), (b"big", 3, b"", large[1])])
    compact(store, ledger)
    release(store, ledger)
    assert store.stats().log_bytes == 0
    for body in large:
        assert b"".join(store.stream(ledger.places[sha1_digest(body)])) == body
    assert not list(store.verify())


def test_hot_versions_stay_whole(opened):
    ledger, store = Ledger(), opened(hot_min=3)
    fill(store, ledger, documents=1, versions=6)
    compact(store, ledger)
    (chain,) = ledger.chains()
    found = [store.read(entry.place) for entry in chain.entries]
    alone = [one.decoded_bytes - len(one.body) in (0, BUILT_IN) for one in found]
    assert alone == [True] * 3 + [False] * 3


def test_metadata_is_a_few_bytes_a_version(opened):
    ledger, store = Ledger(), opened()
    pages = history(4, 100, 600)
    for number, page in enumerate(pages):
        ledger.put(store, [(b"https://example.org/news", 1_700_000_000_000 + number * 86_399_017, b"text/html", page)])
    (batch,) = compact(store, ledger)
    release(store, ledger)
    frames = sum(move.stored_bytes for move in batch.moves)
    assert (store.stats().pack_bytes - frames) / 100 < 6.5


def test_stored_bytes_add_up_to_the_frames(opened):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=1, versions=7)
    (batch,) = compact(store, ledger)
    facts = {fact.digest: fact.stored_bytes for fact in store.scan() if fact.method == "solid"}
    assert facts == {move.digest: move.stored_bytes for move in batch.moves}


def test_numbers_of_packs_are_never_used_twice(opened, tmp_path):
    ledger, store = Ledger(), opened()
    fill(store, ledger, documents=1, versions=2)
    compact(store, ledger)
    last = max(store.sizes())
    ledger.forget(b"doc 0", [0, 1])
    release(store, ledger)
    store.close()
    store = opened()
    assert ledger.put(store, [(b"new", 1, b"", b"new")])[0].place.pack > last
    assert LocalBackend(tmp_path / "store").list()


def test_a_chain_may_name_a_content_twice_and_out_of_order_times(opened):
    ledger, store = Ledger(), opened()
    ledger.put(store, [(b"k", 5, b"a", b"one"), (b"k", 5, b"b", b"two"), (b"k", -7, b"c", b"one")])
    places = ledger.places
    rows = ((5, b"a", b"one"), (5, b"b", b"two"), (-7, b"c", b"one"))
    entries = tuple(ChainEntry(t, n, sha1_digest(body), places[sha1_digest(body)]) for t, n, body in rows)
    for batch in store.compact([VersionChain(b"k", entries)]):
        ledger.move(batch)
    release(store, ledger)
    assert sound(store, ledger)


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("whose", [b"doc 0", b"doc 1"])
def test_a_newest_version_that_equals_an_old_one_is_read_alone_whoever_holds_it(opened, effort, whose):
    ledger, store = Ledger(), opened()
    pages = [history(seed, 1, 20_000)[0] for seed in range(9)]
    for number, page in enumerate(pages):
        ledger.put(store, [(b"doc 0", number, b"html", page), (b"doc 1", number, b"html", b"other %d" % number)])
    compact(store, ledger, effort=effort)
    release(store, ledger)
    returned = pages[1]
    ledger.put(store, [(whose, 100, b"html", returned)])
    slow = store.read(ledger.places[sha1_digest(returned)])
    assert slow.decoded_bytes > 2 * len(returned)
    compact(store, ledger, effort=effort)
    release(store, ledger)
    assert sound(store, ledger)
    assert store.read(ledger.places[sha1_digest(returned)]).decoded_bytes <= len(returned) + BUILT_IN
    assert [batch.moves for batch in compact(store, ledger, effort=effort)] == [()]


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("kind", ["random", "pages", "tiny"])
def test_compaction_never_enlarges_however_often_it_runs(opened, effort, kind):
    ledger, store, chance = Ledger(), opened(), random.Random(5)
    make = {
        "random": lambda doc, number: chance.randbytes(3000),
        "pages": lambda doc, number: history(doc, number + 1, 3000)[number],
        "tiny": lambda doc, number: b"%d %d" % (doc, number),
    }[kind]
    for number in range(6):
        for doc in range(12 if number < 2 else 4):
            ledger.put(store, [(b"doc %d" % doc, number, b"html", make(doc, number))])
        before = store.stats().pack_bytes
        compact(store, ledger, effort=effort)
        release(store, ledger)
        assert store.stats().pack_bytes <= before
        assert sound(store, ledger)


def test_contents_keep_the_method_that_made_them_smallest(opened):
    ledger, store = Ledger(), opened(methods=("mbz2", "mgz2"))
    pages = [history(seed, 1, 6000)[0] for seed in range(4)]
    placed = ledger.put(store, [(b"doc %d" % seed, 1, b"html", page) for seed, page in enumerate(pages)])
    before = [one.method for one in placed]
    assert set(before) <= {"mbz2", "mgz2", "stored"}
    compact(store, ledger)
    release(store, ledger)
    assert sound(store, ledger)
    assert [store.read(ledger.places[sha1_digest(page)]).method for page in pages] == before


def test_methods_that_were_taken_out_of_the_settings_give_way_in_compaction(opened, tmp_path):
    ledger, store = Ledger(), opened(methods=("stored", "zstd"))
    page = history(1, 1, 9000)[0]
    ledger.put(store, [(b"doc", 1, b"html", page)])
    store.close()
    store = opened(methods=("mbz2",))
    compact(store, ledger)
    release(store, ledger)
    assert sound(store, ledger)
    assert store.read(ledger.places[sha1_digest(page)]).method == "mbz2"


def test_of_two_forms_the_smaller_one_wins_though_it_is_no_frame(opened):
    """A page that a codec of its own makes smaller than zstd does is not turned back."""
    ledger, store = Ledger(), opened(methods=("stored", "zstd", "mbz2"))
    page = history(2, 1, 30_000)[0]
    (placed,) = ledger.put(store, [(b"doc", 1, b"html", page)])
    assert placed.method == "mbz2"
    before = store.stats().pack_bytes
    compact(store, ledger, effort="quick")
    release(store, ledger)
    assert sound(store, ledger)
    assert store.stats().pack_bytes <= before
