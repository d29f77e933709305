"""Whole documents through frames: exact, bounded, and one by one."""

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import CodecRefused, Damaged
from letopis.store import solid
from letopis.store.solid.frame_writer import encode_solid, frames_size

MANY = 400 if os.environ.get("LETOPIS_LONG") else 40
TEXT = st.text(alphabet='ab <>\n"/&?=\x00\x01\x04é', max_size=60).map(str.encode)
BODY = st.one_of(TEXT, st.binary(max_size=80))


def pages(count, seed=1, paragraphs=60):
    """Versions of a page, newest first: a clock, a nonce, and one changed paragraph each."""
    rng = random.Random(seed)
    lines = [f"<p class='x'>paragraph {rng.random()} of {seed}</p>" for _ in range(paragraphs)]
    out = []
    for number in range(count):
        lines[rng.randrange(paragraphs)] = f"<p>edited {rng.random()}</p>"
        nonce = f'<meta name="token" content="{rng.randbytes(16).hex()}">'
        out.append("\n".join([nonce, *lines, f"<!-- {number} -->"]).encode())
    return out


def read_back(frames, bodies):
    newest = solid.decode(frames[0].data, 0).body
    out = []
    for frame in frames:
        outside = newest if solid.needs_newest(frame.data) else None
        out += [solid.decode(frame.data, slot, outside).body for slot in range(frame.count)]
        assert solid.decode_all(frame.data, outside) == out[-frame.count :]
    return out == list(bodies)


@given(st.lists(BODY, min_size=1, max_size=6))
@settings(max_examples=MANY, deadline=None)
def test_any_bytes_come_back_exactly(bodies):
    assert read_back(encode_solid(bodies), bodies)


@given(st.lists(st.lists(st.sampled_from([b"<p>one</p>\n", b"<p>two", b'"', b"/x", b"tail"]), max_size=12), min_size=2))
@settings(max_examples=MANY, deadline=None)
def test_shuffled_parts_come_back_exactly(drafts):
    bodies = [b"".join(parts) for parts in drafts]
    assert read_back(encode_solid(bodies, bound=100), bodies)


def test_no_versions_make_no_frames():
    assert encode_solid([]) == []


def test_counts_tell_how_many_versions_a_frame_holds():
    bodies = pages(12)
    assert sum(frame.count for frame in encode_solid(bodies)) == 12


def test_small_changes_cost_little_more_than_the_newest():
    bodies = pages(40)
    assert frames_size(encode_solid(bodies)) < frames_size(encode_solid(bodies[:1])) + 40 * 80


def test_a_repeated_version_costs_next_to_nothing():
    one, other = pages(2)
    assert frames_size(encode_solid([one, other] * 20)) < frames_size(encode_solid([one, other])) + 40


def test_newest_is_read_from_its_span_and_makes_only_its_own_bytes():
    bodies = pages(10)
    data = encode_solid(bodies)[0].data
    span = solid.newest_span(data[:16])
    read = solid.decode(data[:span], 0)
    assert read.body == bodies[0]
    assert read.decoded_bytes == len(bodies[0])
    assert span < len(data)


def test_no_read_makes_more_than_the_bound():
    rng = random.Random(4)
    bodies = [rng.randbytes(3000).hex().encode() for _ in range(12)]
    frames = encode_solid(bodies, bound=20_000)
    newest = solid.decode(frames[0].data, 0)
    index = 0
    for frame in frames:
        outside = newest.body if solid.needs_newest(frame.data) else None
        for slot in range(frame.count):
            read = solid.decode(frame.data, slot, outside)
            made = read.decoded_bytes + (newest.decoded_bytes if outside else 0)
            assert made <= max(20_000, 8 * len(bodies[index]))
            index += 1
    assert len(frames) > 1


def test_only_later_frames_need_the_newest():
    rng = random.Random(4)
    frames = encode_solid([rng.randbytes(3000).hex().encode() for _ in range(12)], bound=20_000)
    assert [solid.needs_newest(frame.data) for frame in frames] == [False] + [True] * (len(frames) - 1)


def test_a_binary_newest_is_kept_without_growing():
    body = bytes(range(256)) * 40
    assert read_back(encode_solid([body, b"\0" + body]), [body, b"\0" + body])


def test_base64_text_is_opened_for_the_coder():
    inner = "".join(f"<li>entry {number * 7919 % 1000}</li>" for number in range(400))
    hidden = __import__("base64").b64encode(inner.encode())
    body = b"<script>atob('" + hidden + b"')</script>"
    frames = encode_solid([body])
    assert solid.decode(frames[0].data, 0).body == body
    assert frames_size(frames) < frames_size(encode_solid([inner.encode()])) + 100


def test_much_change_takes_less_effort_and_comes_back_within_the_bound(monkeypatch):
    bodies = pages(12)
    whole = frames_size(encode_solid(bodies))
    monkeypatch.setattr("letopis.store.solid.frame_writer._LARGE_RESIDUE", 100)
    frames = encode_solid(bodies)
    assert read_back(frames, bodies)
    assert whole <= frames_size(frames) <= 1.1 * whole


def test_versions_of_too_many_tokens_stand_alone(monkeypatch):
    monkeypatch.setattr("letopis.store.solid.frame_format.MAX_WRITTEN_TOKENS", 100)
    bodies = pages(4)
    frames = encode_solid(bodies)
    assert [frame.count for frame in frames] == [1] * 4
    assert [solid.decode(frame.data, 0).body for frame in frames] == bodies


def test_a_version_beyond_the_format_is_refused(monkeypatch):
    monkeypatch.setattr("letopis.store.solid.stream.MAX_BODY_BYTES", 100)
    with pytest.raises(CodecRefused):
        encode_solid([bytes(51)])


def test_asking_past_the_end_is_damage():
    data = encode_solid(pages(3))[0].data
    for slot in (-1, 3, 99):
        with pytest.raises(Damaged):
            solid.decode(data, slot)
