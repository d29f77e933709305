"""The parts that frames are made of, each against its own promise."""

import os
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from token_scripts import script_between

from letopis.errors import Damaged
from letopis.store.solid import frame_format, stream
from letopis.store.solid.alignment import aligned_runs

MANY = 2000 if os.environ.get("LETOPIS_LONG") else 150


@given(st.integers(0, 10**18))
@settings(max_examples=MANY)
def test_numbers_come_back_and_hold_no_token_end(value):
    written = frame_format.encode_number(value)
    assert frame_format.read_number(b"x" + written, 1) == (value, 1 + len(written))
    assert not set(written) & set(b"\0" + b"".join(frame_format.TOKEN_END_SETS))


@given(st.integers(-(10**12), 10**12))
@settings(max_examples=MANY)
def test_signed_numbers_come_back(value):
    assert frame_format.decode_signed(frame_format.read_number(frame_format.encode_signed(value), 0)[0]) == value


@pytest.mark.parametrize("edge", [0, 184, 185, 14128, 14129, 14130, 14128 + 249, 14129 + 249])
def test_numbers_at_the_edges_of_their_lengths(edge):
    assert frame_format.read_number(frame_format.encode_number(edge), 0)[0] == edge


@pytest.mark.parametrize("broken", [b"", b"\0", b"\n", b"\xc3", b"\xc3\n", b"\xff", b"\xffaaaa\0aaa"])
def test_broken_numbers_raise_damaged(broken):
    with pytest.raises(Damaged):
        frame_format.read_number(broken, 0)


@given(st.binary(max_size=200))
@settings(max_examples=MANY)
def test_marked_bodies_come_back_and_hold_no_nul(body):
    for form in (stream.opened_form(body), stream.escape_marks(body)):
        assert b"\0" not in form
        assert stream.restored_body(form) == body


@given(st.binary(min_size=48, max_size=120), st.sampled_from([b"", b"=", b"A", b"&"]))
@settings(max_examples=MANY)
def test_base64_of_anything_comes_back(inner, after):
    body = b"x " + __import__("base64").b64encode(inner) + after
    assert stream.restored_body(stream.opened_form(body)) == body


def test_a_long_run_that_is_not_base64_text_stays_as_it_is():
    body = b"A" * 100_000 + b"!" + b"b" * 99_999
    assert stream.restored_body(stream.opened_form(body)) == body


@given(st.text(alphabet='ab\n>"/?&', max_size=80).map(str.encode), st.sampled_from(frame_format.TOKEN_END_SETS))
@settings(max_examples=MANY)
def test_tokens_join_to_the_form_and_each_has_its_end(form, ends):
    cut = frame_format.cut_tokens(form, ends)
    assert frame_format.join_tokens(cut) == form
    assert all(token[-1] in ends and not set(token[:-1]) & set(ends) for token in cut)


IDS = st.lists(st.integers(0, 6), max_size=40)


@given(IDS, IDS)
@settings(max_examples=MANY)
def test_alignment_is_true_rising_and_without_overlap(base, version):
    end = source_end = 0
    for start, source, length in aligned_runs(np.array(base, np.int32), np.array(version, np.int32)).tolist():
        assert start >= end
        assert source >= source_end
        assert length > 0
        assert version[start : start + length] == base[source : source + length]
        end, source_end = start + length, source + length


def test_huge_alignments_are_cut_at_unique_tokens(monkeypatch):
    monkeypatch.setattr("letopis.store.solid.alignment._CELLS", 400)
    rng = random.Random(7)
    base = [*range(500), *(rng.randrange(500) for _ in range(100))]
    version = [token for token in base if rng.random() < 0.9]
    runs = aligned_runs(np.array(base, np.int32), np.array(version, np.int32))
    assert runs[:, 2].sum() > 0.6 * len(version)


@given(st.lists(st.sampled_from([b"a\n", b"b>", b'c"', b"\n"]), max_size=20), st.data())
@settings(max_examples=MANY)
def test_operations_make_the_version_in_place_and_anew(base, data):
    version = [*data.draw(st.lists(st.sampled_from([b"a\n", b"b>", b'd"', b"\n"]), max_size=20)), b"\n"]
    base = [*base, b"\n"]
    script = script_between(base, version, frame_format.TOKEN_END_SETS[0])
    assert frame_format.apply_script(list(base), script, 0, frame_format.TOKEN_END_SETS[0]) == version


def test_parts_of_a_stream_are_read_without_those_after_them():
    texts = [b"first " * 50, b"second " * 50, b"third " * 50]
    parts = stream.encode_stream(texts)
    for count in (1, 2, 3):
        whole = b"".join(texts[:count])
        assert stream.decode_whole_stream(b"".join(parts[:count]), len(whole)) == whole


@given(st.binary(min_size=1, max_size=300), st.binary(max_size=300))
@settings(max_examples=30, deadline=None)
def test_known_text_of_any_kind_leaves_the_coder_in_step(known, text):
    part = stream.encode_stream([text + known + text], known)[0]
    assert stream.decode_whole_stream(part, len(text) * 2 + len(known), known) == text + known + text


@pytest.mark.parametrize("size", [0, 1, 33_000, 140_000])
@pytest.mark.parametrize("other", [0, 1, 33_000, 140_000])
def test_a_known_text_may_come_in_two_parts(size, other):
    rng = random.Random(size + other)
    known, newest = rng.randbytes(size), rng.randbytes(other)
    text = (known[-500:] + newest[:500]) * 3 + b"more"
    part = stream.encode_stream([text], known + newest)[0]
    assert b"".join(stream.decode_stream(part, len(text), known, newest)) == text
    assert stream.decode_whole_stream(memoryview(part), len(text), known + newest) == text
    assert stream.stream_overhead(known, newest) == stream.stream_overhead(known + newest)


@pytest.mark.parametrize("count", [0, 499, 500, 501, 2000])
def test_bodies_with_few_and_many_marks_come_back(count):
    body = b"\1 \0" * count + b" text " * 20_000 + b"\0\1"
    assert stream.restored_body(stream.escape_marks(body)) == body


def test_an_encoder_that_unties_the_knot_costs_space_and_nothing_else(monkeypatch):
    monkeypatch.setattr("letopis.store.solid.stream._reads_back", lambda made, texts, known: False)
    texts = [b"first " * 50, b"", b"second " * 50]
    parts = stream.encode_stream(texts, b"known text")
    for count in (1, 2, 3):
        whole = b"".join(texts[:count])
        assert stream.decode_whole_stream(b"".join(parts[:count]), len(whole), b"known text") == whole
