import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import Damaged
from letopis.store.pack_format import ChainFacts, FrameRef, decode_columns, encode_columns


@st.composite
def chain_facts(draw):
    slots = draw(st.integers(0, 6))
    count = draw(st.integers(1, 12))
    content = st.one_of(st.integers(0, slots - 1) if slots else st.nothing(), st.binary(min_size=20, max_size=20))
    times = draw(st.lists(st.integers(-(2**45), 2**45), min_size=count, max_size=count))
    notes = draw(st.lists(st.sampled_from([b"", b"a", b"text/html"]), min_size=count, max_size=count))
    contents = draw(st.lists(content, min_size=count, max_size=count))
    frames = (FrameRef(draw(st.integers(0, 999)), slots),) if slots else ()
    return ChainFacts(draw(st.binary(max_size=20)), frames, tuple(times), tuple(notes), tuple(contents))


@given(st.lists(chain_facts(), max_size=5))
@settings(max_examples=80)
def test_facts_come_back(chains):
    assert list(decode_columns(encode_columns(chains, 1000), 1000)) == chains


@given(st.lists(chain_facts(), min_size=1, max_size=3), st.data())
@settings(max_examples=80)
def test_broken_columns_are_damaged_and_nothing_else(chains, data):
    body = bytearray(encode_columns(chains, 1000))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(Damaged):
        list(decode_columns(bytes(body), 1000))


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_are_facts_or_damaged(body):
    with contextlib.suppress(Damaged):
        list(decode_columns(body, 1000))


def test_a_regular_history_costs_about_three_bytes_a_version():
    times = tuple(1_700_000_000_000 - 86_400_000 * day - 17_000 * (day % 7) for day in range(500))
    facts = ChainFacts(b"https://example.org/", (FrameRef(16, 500),), times, (b"text/html",) * 500, tuple(range(500)))
    assert len(encode_columns([facts], 9000)) / 500 < 3.3


def test_a_page_that_swings_between_two_contents_costs_a_run():
    facts = ChainFacts(b"k", (FrameRef(16, 2),), tuple(range(100, 0, -1)), (b"",) * 100, (0, 1) * 50)
    assert len(encode_columns([facts], 99)) < 130
    assert next(decode_columns(encode_columns([facts], 99), 99)) == facts


def test_a_claim_of_too_many_versions_is_damaged():
    body = encode_columns([ChainFacts(b"k", (), (0,) * 70000, (b"",) * 70000, (b"d" * 20,) * 70000)], 99)
    with pytest.raises(Damaged, match="too many"):
        list(decode_columns(body, 99))
