"""Chains of differences in C: the same as in Python, whatever the scripts say, and None where they do not fit."""

import os
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from token_scripts import script_between

from letopis.errors import Damaged
from letopis.store import solid
from letopis.store.solid import frame_format, frame_reader
from letopis.store.solid.frame_format import MAX_TOKENS
from letopis.store.solid.frame_writer import encode_solid
from letopis.store.solid.stream import MAX_BODY_BYTES

IN_C = frame_reader.unfold
MANY = 3000 if os.environ.get("LETOPIS_LONG") else 150
ENDS = frame_format.TOKEN_END_SETS[2]
TOKEN = st.sampled_from([b"<p>", b"one\n", b'two"', b"\n", b"a/", b"long " * 60 + b">", b"?", b"&"])
FORM = st.lists(TOKEN, max_size=40)
NUMBER = st.sampled_from([0, 1, 2, 3, 7, 184, 185, 300, 14_128, 14_129, 1 << 40, 1 << 62]).map(
    frame_format.encode_number
)
RUBBISH = st.lists(st.one_of(NUMBER, TOKEN, st.binary(max_size=3)), max_size=12).map(b"".join)

pytestmark = pytest.mark.skipif(
    IN_C is None and not os.environ.get("CI"), reason="letopis-fast is installed without its part in C: no compiler"
)


def in_c(newest, scripts, index, most_tokens=MAX_TOKENS, most_bytes=MAX_BODY_BYTES):
    assert IN_C is not None
    return IN_C(newest, b"".join(script + b"\0" for script in scripts), index, ENDS, most_tokens, most_bytes)


def in_python(newest, scripts, index):
    """The form of a version, by its chain of bases; None where something does not fit."""
    chain = []
    try:
        while index:
            script = scripts[index - 1]
            index, at = frame_format.base_version(script, index)
            chain.append((script, at))
        form = frame_format.cut_tokens(newest, ENDS)
        for script, at in reversed(chain):
            form = frame_format.apply_script(form, script, at, ENDS)
    except Damaged:
        return None
    return frame_format.join_tokens(form)


@given(st.lists(FORM, min_size=2, max_size=14), st.randoms(use_true_random=False))
@settings(max_examples=MANY, deadline=None)
def test_any_chain_gives_the_same_as_in_python(forms, chance):
    forms = [[*form, b"\n"] for form in forms]
    scripts = []
    for index, version in enumerate(forms[1:], 1):
        base = chance.choice([0, index - 1, chance.randrange(index)])
        reference = frame_format.encode_reference(index - 1 - base, index - 1)
        scripts.append(reference + script_between(forms[base], version, ENDS))
    newest = b"".join(forms[0])[:-1]
    for index in range(1, len(forms)):
        expected = b"".join(forms[index])[:-1]
        assert in_c(newest, scripts, index) == in_python(newest, scripts, index) == expected


@given(FORM.map(b"".join), st.lists(RUBBISH, min_size=1, max_size=4))
@settings(max_examples=8 * MANY, deadline=None)
def test_scripts_that_nobody_wrote_are_left_to_python_or_read_alike(newest, scripts):
    scripts = [script.replace(b"\0", b"") for script in scripts]
    assert in_c(newest, scripts, len(scripts)) == in_python(newest, scripts, len(scripts))


def test_damaged_frames_are_read_alike_with_and_without_c(monkeypatch):
    chance = random.Random(7)
    bodies = [b"".join(b"<p>%d</p>\n" % (line * version % 37) for line in range(60)) for version in range(9)]
    [frame] = encode_solid(bodies)

    def outcome(data, slot):
        try:
            return solid.decode(data, slot).body
        except Damaged as error:
            return str(error)

    cases = [frame.data]
    for _ in range(MANY):
        damaged = bytearray(frame.data)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        cases.append(bytes(damaged))
    with_c = [[outcome(data, slot) for slot in range(10)] for data in cases]
    monkeypatch.setattr(frame_reader, "unfold", None)
    assert with_c == [[outcome(data, slot) for slot in range(10)] for data in cases]
    assert with_c[0][:9] == bodies


def test_what_is_too_large_is_left_to_python():
    lines = [b"line %d\n" % number for number in range(1000)]
    script = frame_format.encode_number(0) + script_between(lines, [*lines, *lines], ENDS)
    newest = b"".join(lines)[:-1]
    assert in_c(newest, [script], 1) == b"".join([*lines, *lines])[:-1]
    assert in_c(newest, [script], 1, most_tokens=1999) is None
    assert in_c(newest, [script], 1, most_tokens=999) is None
    assert in_c(newest, [script], 1, most_bytes=2 * len(newest)) is None
    assert in_c(newest, [script], 1, most_bytes=1 << 40) is None


def test_a_script_that_copies_itself_again_and_again_stays_within_the_bound():
    """Each of forty versions is three times as long as the one before, were they made."""
    grown = []
    for power in range(40):
        again = frame_format.encode_number(3**power) + frame_format.encode_number(0)
        grown.append(frame_format.encode_number(0) + (again + frame_format.encode_signed(-(3**power))) * 2)
    assert in_c(b"x", grown, 2) == in_python(b"x", grown, 2) == b"\n".join([b"x"] * 9)
    assert in_c(b"x", grown, len(grown)) is None


@pytest.mark.parametrize("index", [0, -1, 3, 1 << 60])
def test_a_version_that_is_not_there_is_left_to_python(index):
    assert in_c(b"one\ntwo", [frame_format.encode_number(0)] * 2, index) is None


def test_equal_versions_are_one_reference():
    scripts = [frame_format.encode_reference(0, index) for index in range(12)]
    assert [in_c(b"a\nb", scripts, index) for index in range(1, 13)] == [b"a\nb"] * 12
    assert all(in_python(b"a\nb", scripts, one) == in_python(b"a\nb", scripts, two) for one, two in pairwise(range(13)))
