import os
import resource
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger import Ledger
from pagemaker import history

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.errors import Busy, Damaged, NotReady
from letopis.store import ContentPlace, LocalBackend, PackGone, Store, VersionItem
from letopis.store.pack_format import VersionHead


def item(body, key=b"https://example.org/", time=1):
    return VersionItem(key, time, b"note", sha1_digest(body), body)


def test_a_version_can_be_read_at_once_and_after_reopening(opened):
    store = opened()
    placed = store.append([item(b"hello " * 50)])[0]
    assert store.read(placed.place).body == b"hello " * 50
    assert placed.method == "zstd"
    store.close()
    assert opened(write=False).read(placed.place).body == b"hello " * 50


def test_the_newest_version_is_one_read_and_one_decompression(opened, monkeypatch):
    store = opened()
    pages = history(1, 12, 60_000)
    placed = [store.append([item(page, time=number)])[0] for number, page in enumerate(pages)]
    store.sync()
    reads = []
    read = store._backend.read
    monkeypatch.setattr(store._backend, "read", lambda *span: reads.append(span) or read(*span))
    store._packs.flags(placed[-1].place.pack)
    reads.clear()
    found = store.read(placed[-1].place, placed[-1].stored_bytes)
    assert (found.body, found.decoded_bytes, len(reads)) == (pages[-1], len(pages[-1]), 1)


def test_a_finished_pack_is_read_to_its_end_and_not_behind_it(tmp_path, monkeypatch):
    place, name = LocalBackend(tmp_path), "00000001.pack"
    draft = place.create(name)
    draft.write(b"0123456789")
    draft.commit()
    asked = []
    pread = os.pread
    monkeypatch.setattr("os.pread", lambda fd, length, offset: asked.append(length) or pread(fd, length, offset))
    assert [place.read(name, start, 99) for start in (0, 4, 10, 50)] == [b"0123456789", b"456789", b"", b""]
    assert asked == [10, 6, 0, 0]


def test_a_body_that_would_grow_is_stored_as_it_is(opened):
    noise = os.urandom(5000)
    placed = opened().append([item(noise), item(b"")])
    assert [result.method for result in placed] == ["stored", "stored"]


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_any_bodies_come_back(tmp_path_factory, bodies):
    folder = tmp_path_factory.mktemp("any")
    with Store.open(LocalBackend(folder), StoreSettings(pack_bytes=3000), write=True) as store:
        placed = store.append([item(body, time=number) for number, body in enumerate(bodies)])
        store.sync()
    with Store.open(LocalBackend(folder), StoreSettings(), write=False) as store:
        assert [store.read(result.place).body for result in placed] == bodies
        assert not list(store.verify())
        assert [fact.digest for fact in store.scan()] == [sha1_digest(body) for body in bodies]


def test_a_known_content_costs_only_its_fact(opened):
    store = opened()
    body = history(2, 1)[0]
    first, second = store.append([item(body), VersionItem(b"other", 5, b"", sha1_digest(body), None)])
    assert second.place is None
    assert second.stored_bytes < 60 < first.stored_bytes


def test_a_full_log_is_followed_by_a_new_one(opened):
    store = opened(pack_bytes=4000)
    placed = [store.append([item(os.urandom(1500), time=number)])[0] for number in range(9)]
    assert len({result.place.pack for result in placed}) == 3
    assert store.stats().packs == 3


def test_reopening_goes_on_in_the_same_log(opened):
    store = opened()
    first = store.append([item(b"a")])[0].place
    store.close()
    second = opened().append([item(b"b")])[0].place
    assert first.pack == second.pack
    assert first.offset < second.offset


def test_a_second_writer_is_busy_and_readers_are_not(opened):
    store = opened()
    place = store.append([item(b"x")])[0].place
    store.sync()
    with pytest.raises(Busy, match="another process writes"):
        opened()
    assert opened(write=False).read(place).body == b"x"
    store.close()
    opened()


def test_a_reader_sees_what_was_synced_after_it_opened(opened):
    writer, reader = opened(pack_bytes=2000), opened(write=False)
    for number in range(5):
        place = writer.append([item(os.urandom(900), time=number)])[0].place
        writer.sync()
        assert reader.read(place).body == writer.read(place).body


def test_a_reader_of_nothing_says_that_the_content_is_gone(opened):
    with pytest.raises(PackGone, match="pack 3"):
        opened(write=False).read(ContentPlace(3, 16, 0))


def test_a_wrong_place_is_damaged_and_named(opened):
    store = opened()
    place = store.append([item(b"body")])[0].place
    with pytest.raises(Damaged, match=r"00000001.log, offset 17"):
        store.read(place._replace(offset=place.offset + 1))


def test_writing_needs_a_store_opened_for_writing(opened):
    opened().close()
    with pytest.raises(NotReady, match="reading only"):
        opened(write=False).append([item(b"x")])


def test_a_content_of_any_size_streams_in_bounded_memory(opened):
    store = opened()
    block = os.urandom(1 << 20)

    def chunks():
        for number in range(40):
            yield number.to_bytes(4, "big") + block

    tracemalloc.start()
    placed = store._append_stream(VersionHead(b"large", 1, b"", b"", 0), chunks(), lambda: b"d" * 20)
    store.sync()
    total = sum(len(part) for part in store.stream(placed.place))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (total, placed.method) == (40 * (4 + (1 << 20)), "pieces")
    assert peak < 24 << 20
    assert b"".join(store.stream(placed.place)) == b"".join(chunks())


def test_a_large_body_is_cut_in_pieces_by_itself(opened):
    store = opened()
    body = b"0123456789abcdef" * (300_000)
    placed = store.append([item(body)])[0]
    assert placed.method == "pieces"
    assert store.read(placed.place).body == body
    assert not list(store.verify())


def test_a_large_content_is_not_read_in_one_gulp(opened, monkeypatch):
    store = opened()
    placed = store.append([item(os.urandom(6 << 20))])[0]
    store.sync()
    lengths = []
    read = store._backend.read
    monkeypatch.setattr(store._backend, "read", lambda *span: lengths.append(span[2]) or read(*span))
    store.read(placed.place, placed.stored_bytes)
    assert max(lengths) <= 2 << 20


def test_the_quota_is_held(opened):
    store = opened(max_bytes=3000)
    store.append([item(os.urandom(4000))])
    with pytest.raises(NotReady, match=r"store.max_bytes"):
        store.append([item(b"more")])


def test_put_and_read_cost_the_same_in_a_store_ten_times_as_large(opened):
    ledger, store = Ledger(), opened(pack_bytes=200_000)
    pages = history(3, 40, 3000)

    def cost(times):
        start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        for number in range(times):
            body = pages[number % 40] + b"%d" % number * 3
            ledger.put(store, [(b"k%d" % number, len(ledger.versions), b"", body)])
            store.read(next(reversed(ledger.places.values())))
        return (resource.getrusage(resource.RUSAGE_SELF).ru_utime - start) / times

    cost(20)
    small = min(cost(100) for _ in range(2))
    for number in range(1500):
        store.append([item(pages[number % 40] + b"filler %d" % number)])
    large = min(cost(100) for _ in range(3))
    assert large < 2 * small + 0.0005
