"""What the row of a check says: as it was told, in any form that a release has written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.archive.details import CheckDetails, packed_details, plain_details, redirects_of
from letopis.archive.requests import PageReference, RequestReference
from letopis.model import Hop

OLD = (
    '{"score":0.1414,"blocks":["removed paragraph: From 9 to 17.","added paragraph: From 10 to 18."],'
    '"why":"text: 1 added, 1 removed","muted":["counter: 7 visits"],"r":[202,2130706433,"\\"abc\\""]}'
)
PACKED = '{"z":"L$<=i(1d_3ZbkXI3YH2b`3i>Sdf2Q4D=;(wtFX``!U0Gj3r}R`3T2tanI*+av9$m","r":"fwAAAcoBhwc"}'
"""A form on disk: if this cannot be read, neither can archives."""
OWN = st.lists(st.tuples(st.integers(0, 20), st.text(max_size=9), st.text(max_size=9)), max_size=2).map(tuple)
CONDITIONS = st.lists(st.text(max_size=9) | st.integers(1, 2**40), max_size=2).map(tuple)
ADDRESSES = st.integers(0, 2**32 - 1) | st.sampled_from(("", "::1", "2001:db8::2"))
REQUESTS = st.builds(RequestReference, st.integers(0, 2**40), ADDRESSES, CONDITIONS)
BLOCKS = st.builds("{} {}: {}".format, st.sampled_from(("added", "removed")), st.just("cell"), st.text(max_size=150))
HOPS = st.builds(Hop, st.text(max_size=9), st.integers(0, 999), st.text(max_size=9), st.just(""), st.just(()))
DETAILS = st.builds(
    CheckDetails,
    final_url=st.text(max_size=20),
    hops=st.lists(HOPS, max_size=2).map(tuple),
    warnings=st.lists(st.text(max_size=20), max_size=2).map(tuple),
    score=st.none() | st.floats(0, 1),
    blocks=st.lists(BLOCKS, max_size=8).map(tuple),
    reason=st.text(max_size=30),
    muted=st.lists(st.text(max_size=90), max_size=3).map(tuple),
    own=st.none() | OWN,
    request=st.none() | REQUESTS,
    page=st.none() | st.builds(PageReference, st.integers(0, 99), st.integers(-99, 99)),
)


@given(DETAILS)
@settings(deadline=None)
def test_details_come_back_as_they_were_stored_and_as_they_are_published(details: CheckDetails) -> None:
    kept = details.pack()
    assert CheckDetails.unpack(kept) == details
    plain = plain_details(kept)
    assert CheckDetails.unpack(plain) == details
    assert plain is None or "z" not in json.loads(plain)
    assert CheckDetails.unpack(packed_details(plain)) == details
    assert redirects_of(kept) == details.hops


def test_details_of_earlier_releases_say_the_same() -> None:
    details = CheckDetails.unpack(OLD)
    assert details.blocks == ("removed paragraph: From 9 to 17.", "added paragraph: From 10 to 18.")
    assert (details.score, details.reason, details.muted) == (
        0.1414,
        "text: 1 added, 1 removed",
        ("counter: 7 visits",),
    )
    assert details.request == RequestReference(202, 2130706433, ('"abc"',))
    packed = packed_details(OLD)
    assert packed is not None
    assert len(packed) < 0.7 * len(OLD)
    assert CheckDetails.unpack(packed) == details


def test_packed_details_stay_readable() -> None:
    details = CheckDetails.unpack(OLD)
    assert CheckDetails.unpack(PACKED) == details._replace(request=RequestReference(202, 2130706433, (903,)))


def test_a_verdict_that_names_no_text_stays_as_it_is() -> None:
    text = CheckDetails(score=0.0, reason="same text", own=((0, "Date", 0),)).pack()
    assert text == '{"score":0.0,"why":"same text","own":[[0,"Date",0]]}'
    assert packed_details(text) == plain_details(text) == text


@pytest.mark.parametrize("packed", ['"?"', '"00000"', '"K>tRa"', "1"])
def test_a_damaged_verdict_is_no_verdict(packed: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        CheckDetails.unpack(f'{{"z":{packed}}}')


@pytest.mark.parametrize("packed", [json.loads(PACKED)["z"], "", None, 1])
def test_nobody_else_packs_a_verdict(packed: Any) -> None:
    with pytest.raises(ValueError, match="plain"):
        CheckDetails.from_outside({"z": packed})


def test_what_no_file_can_hold_is_replaced_in_a_packed_text_too() -> None:
    kept = CheckDetails(blocks=("added paragraph: one \ud800 two, three, four, five, six",)).pack()
    assert '"z"' in (kept or "")
    assert CheckDetails.unpack(kept).blocks == ("added paragraph: one \ufffd two, three, four, five, six",)
