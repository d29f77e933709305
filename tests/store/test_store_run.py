import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pagemaker import history

from letopis.errors import Damaged
from letopis.store import record_bodies

BODIES = st.lists(st.one_of(st.binary(max_size=300), st.text(max_size=80).map(str.encode)), min_size=1, max_size=8)


def every(frames, bodies, bound):
    newest, start = bodies[0], 0
    for number, frame in enumerate(frames):
        outside = newest if record_bodies.run_needs_newest(frame.data) else None
        assert number or outside is None
        assert record_bodies.decode_whole_run(frame.data, outside) == bodies[start : start + frame.size]
        for slot in range(frame.size):
            body = bodies[start + slot]
            found = record_bodies.decode_run(frame.data, slot, outside)
            assert found.body == body
            assert found.decoded_bytes + len(outside or b"") <= max(bound, 8 * len(body), len(body) + len(newest))
            yield found
        start += frame.size
    assert start == len(bodies)


@given(BODIES, st.integers(0, 2000))
@settings(max_examples=80)
def test_bodies_come_back_from_every_slot(bodies, bound):
    frames = record_bodies.encode_runs(bodies, bound=bound)
    assert len(list(every(frames, bodies, bound))) == len(bodies)


def test_reading_the_newest_decodes_the_newest_alone():
    bodies = history(1, 40)[::-1]
    frames = record_bodies.encode_runs(bodies, bound=100_000)
    assert record_bodies.decode_run(frames[0].data, 0, None).decoded_bytes == len(bodies[0])


def test_work_stays_within_the_bound():
    bodies = history(2, 60, 9000)[::-1]
    frames = record_bodies.encode_runs(bodies, bound=80_000)
    assert len(frames) > 3
    assert max(found.decoded_bytes for found in every(frames, bodies, 80_000)) <= 80_000


def test_a_content_too_small_for_the_newest_stands_alone():
    bodies = [b"n" * 5000, b"tiny", b"o" * 5000]
    frames = record_bodies.encode_runs(bodies, bound=100)
    assert [frame.size for frame in frames] == [1, 1, 1]
    assert [record_bodies.run_needs_newest(frame.data) for frame in frames] == [False, False, True]
    assert record_bodies.decode_run(frames[1].data, 0, None).decoded_bytes == 4


def test_versions_behind_the_newest_cost_little():
    bodies = history(3, 30, 20_000)[::-1]
    assert (
        sum(len(frame.data) for frame in record_bodies.encode_runs(bodies, bound=2_000_000))
        < sum(map(len, bodies)) / 30
    )


@given(st.data())
@settings(max_examples=80)
def test_a_broken_frame_is_damaged_or_another_text_and_never_a_crash(data):
    bodies = history(4, 4, 600)[::-1]
    frame = bytearray(record_bodies.encode_runs(bodies, bound=10**6)[0].data)
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    for slot in range(4):
        with contextlib.suppress(Damaged):
            record_bodies.decode_run(bytes(frame), slot, bodies[0])


@given(st.binary(max_size=60), st.integers(0, 3))
def test_any_bytes_are_a_frame_or_damaged(data, slot):
    try:
        record_bodies.decode_run(data, slot, b"newest")
        record_bodies.decode_whole_run(data, b"newest")
    except Damaged:
        pass


def test_a_frame_behind_a_lost_newest_says_so():
    frames = record_bodies.encode_runs(history(5, 20)[::-1], bound=13_000)
    assert len(frames) > 1
    with pytest.raises(Damaged, match="newest"):
        record_bodies.decode_run(frames[-1].data, 0, None)
