"""What every backend must do. The store relies on nothing else."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.errors import Busy
from letopis.store import Backend, ChainEntry, Store, VersionChain, VersionItem


def test_it_has_the_whole_protocol(backend: Backend):
    wanted = {name for name in vars(Backend) if not name.startswith("_")}
    assert {name for name in wanted if hasattr(backend, name)} == wanted


def test_an_empty_place_lists_nothing_and_reads_nothing(backend):
    assert dict(backend.list()) == {}
    assert backend.recall("checkpoint") == b""
    with pytest.raises(FileNotFoundError):
        backend.read("00000001.log", 0, 10)


def test_a_log_grows_at_its_end(backend):
    lease = backend.lease()
    backend.append("00000001.log", 0, b"hello ")
    backend.append("00000001.log", 6, b"world")
    backend.sync("00000001.log")
    assert backend.read("00000001.log", 0, 99) == b"hello world"
    assert backend.read("00000001.log", 4, 3) == b"o w"
    assert backend.read("00000001.log", 11, 5) == b""
    assert dict(backend.list()) == {"00000001.log": 11}
    lease.release()


def test_an_append_at_the_wrong_end_is_refused(backend):
    lease = backend.lease()
    backend.append("00000001.log", 0, b"hello")
    backend.sync("00000001.log")
    with pytest.raises(Busy):
        backend.append("00000001.log", 4, b"x")
    assert backend.read("00000001.log", 0, 99) == b"hello"
    lease.release()


def test_what_was_synced_is_seen_by_others(backend):
    lease, other = backend.lease(), backend.again()
    for number in range(5):
        backend.append("00000001.log", 3 * number, b"abc")
        backend.sync("00000001.log")
        assert other.read("00000001.log", 3 * number, 3) == b"abc"
    assert dict(other.list()) == {"00000001.log": 15}
    lease.release()


def test_a_log_can_be_cut_and_goes_on(backend):
    lease = backend.lease()
    backend.append("00000001.log", 0, b"hello world")
    backend.sync("00000001.log")
    backend.cut("00000001.log", 5)
    assert backend.read("00000001.log", 0, 99) == b"hello"
    backend.append("00000001.log", 5, b"!")
    backend.sync("00000001.log")
    assert backend.again().read("00000001.log", 0, 99) == b"hello!"
    lease.release()


def test_a_log_goes_on_after_reopening(backend):
    lease = backend.lease()
    backend.append("00000001.log", 0, b"one")
    backend.sync("00000001.log")
    lease.release()
    later = backend.again()
    lease = later.lease()
    later.append("00000001.log", 3, b"two")
    later.sync("00000001.log")
    assert later.read("00000001.log", 0, 9) == b"onetwo"
    lease.release()


def test_a_draft_appears_whole_or_not_at_all(backend):
    lease = backend.lease()
    draft = backend.create("00000002.pack")
    draft.write(b"first ")
    draft.write(b"second")
    assert dict(backend.list()) == {}
    draft.commit()
    draft.discard()
    assert dict(backend.again().list()) == {"00000002.pack": 12}
    assert backend.read("00000002.pack", 6, 99) == b"second"
    lease.release()


def test_a_discarded_draft_leaves_nothing(backend):
    lease = backend.lease()
    draft = backend.create("00000002.pack")
    draft.write(b"x")
    draft.discard()
    backend.sweep()
    assert dict(backend.list()) == {}
    lease.release()


def test_a_forgotten_draft_is_swept(backend):
    lease = backend.lease()
    backend.create("00000002.pack").write(b"x")
    backend.sweep()
    draft = backend.create("00000002.pack")
    draft.write(b"new")
    draft.commit()
    assert backend.read("00000002.pack", 0, 9) == b"new"
    lease.release()


def test_a_finished_object_is_never_replaced(backend):
    lease = backend.lease()
    drafts = [backend.create("00000002.pack") for _ in range(1)]
    drafts[0].write(b"one")
    drafts[0].commit()
    second = backend.again().create("00000002.pack")
    second.write(b"two")
    with pytest.raises(Busy):
        second.commit()
    second.discard()
    assert backend.read("00000002.pack", 0, 9) == b"one"
    lease.release()


def test_removing_is_final_and_may_be_repeated(backend):
    lease = backend.lease()
    draft = backend.create("00000002.pack")
    draft.write(b"x")
    draft.commit()
    backend.remove("00000002.pack")
    backend.remove("00000002.pack")
    assert dict(backend.list()) == {}
    with pytest.raises(FileNotFoundError):
        backend.read("00000002.pack", 0, 1)
    lease.release()


def test_small_notes_are_replaced_and_not_listed(backend):
    lease = backend.lease()
    backend.remark("checkpoint", b"one")
    backend.remark("checkpoint", b"two")
    assert backend.again().recall("checkpoint") == b"two"
    assert dict(backend.list()) == {}
    lease.release()


def test_there_is_one_writer(backend):
    lease = backend.lease()
    with pytest.raises(Busy, match="writes to"):
        backend.again().lease()
    lease.release()
    backend.again().lease().release()


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=12), st.integers(0, 700), st.integers(0, 700))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_ranges_are_those_of_the_bytes_written(backend, parts, offset, length):
    lease = backend.lease()
    backend.remove("00000007.log")
    whole = b""
    for part in [b"start", *parts]:
        backend.append("00000007.log", len(whole), part)
        whole += part
    backend.sync("00000007.log")
    assert backend.read("00000007.log", offset, length) == whole[offset : offset + length]
    lease.release()


def test_a_store_lives_on_it(backend):
    bodies = [b"version %d " % number * 40 for number in range(6)]
    items = [VersionItem(b"key", number, b"n", sha1_digest(body), body) for number, body in enumerate(bodies)]
    with Store.open(backend, StoreSettings(), write=True) as store:
        places = [placed.place for placed in store.append(items)]
        store.sync()
    with Store.open(backend.again(), StoreSettings(), write=True) as store:
        entries = [
            ChainEntry(item.time, item.note, item.digest, place) for item, place in zip(items, places, strict=True)
        ]
        (batch,) = store.compact([VersionChain(b"key", tuple(reversed(entries)))])
        moved = {move.old: move.new for move in batch.moves}
        assert store.release({place.pack for place in moved.values()}) > 0
        assert [store.read(moved[place]).body for place in places] == bodies
        assert not list(store.verify())
    with Store.open(backend.again(), StoreSettings(), write=False) as store:
        assert {fact.time for fact in store.scan()} == set(range(6))
