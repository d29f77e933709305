"""Chains of differences by arrays: the same as token by token, whatever the scripts say."""

import os
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from token_scripts import script_between

from letopis.errors import Damaged
from letopis.store import solid
from letopis.store.solid import bulk, frame_format, frame_reader
from letopis.store.solid.frame_writer import encode_solid

MANY = 2000 if os.environ.get("LETOPIS_LONG") else 120
ENDS = frame_format.TOKEN_END_SETS[2]
TOKEN = st.sampled_from([b"<p>", b"one\n", b'two"', b"\n", b"a/", b"long " * 60 + b">", b"?", b"&"])
FORM = st.lists(TOKEN, max_size=40)
NUMBER = st.sampled_from([0, 1, 2, 3, 7, 184, 185, 300, 14_128, 14_129, 1 << 40]).map(frame_format.encode_number)
RUBBISH = st.lists(st.one_of(NUMBER, TOKEN, st.binary(max_size=3)), max_size=12).map(b"".join)


def plain(newest, scripts):
    form = frame_format.cut_tokens(newest, ENDS)
    for script in scripts:
        form = frame_format.apply_script(form, script, 0, ENDS)
    return frame_format.join_tokens(form)


def outcome(action):
    try:
        return action()
    except Damaged:
        return Damaged


@given(st.lists(FORM, min_size=2, max_size=5))
@settings(max_examples=MANY, deadline=None)
def test_any_chain_gives_the_same_as_token_by_token(forms):
    forms = [[*form, b"\n"] for form in forms]
    scripts = [script_between(base, version, ENDS) for base, version in pairwise(forms)]
    newest = b"".join(forms[0])[:-1]
    assert bulk.apply_scripts(newest, scripts, ENDS) == plain(newest, scripts) == b"".join(forms[-1])[:-1]


@given(FORM.map(b"".join), st.lists(RUBBISH, min_size=1, max_size=3))
@settings(max_examples=4 * MANY, deadline=None)
def test_scripts_that_nobody_wrote_are_refused_or_read_alike(newest, scripts):
    scripts = [script.replace(b"\0", b"") for script in scripts]
    assert outcome(lambda: bulk.apply_scripts(newest, scripts, ENDS)) == outcome(lambda: plain(newest, scripts))


def test_much_to_do_is_done_in_bulk(monkeypatch):
    monkeypatch.setattr(frame_reader, "unfold", None)
    lines = range(3000)
    bodies = [b"".join(b"<p>%d %d</p>\n" % (line, line * version % 977) for line in lines) for version in range(4)]
    frames = encode_solid(bodies)
    monkeypatch.setattr(frame_reader, "_BULK_SCRIPT_BYTES", 0)
    in_bulk = [solid.decode(frames[0].data, slot).body for slot in range(4)]
    monkeypatch.setattr(frame_reader, "_BULK_SCRIPT_BYTES", 1 << 40)
    assert in_bulk == [solid.decode(frames[0].data, slot).body for slot in range(4)] == bodies
