"""Packed headers: small, exact, and readable in the form of the first archives too."""

from __future__ import annotations

from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.catalog import heads

FIELDS = st.lists(st.tuples(st.text(min_size=1, max_size=20), st.text(max_size=80)), max_size=20).map(tuple)
USUAL = (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "30214"), ("ETag", '"d41d8cd98f00b204"'))


@given(FIELDS)
@settings(max_examples=200)
def test_headers_survive_packing_whatever_they_hold(fields: tuple[tuple[str, str], ...]) -> None:
    assert heads._unpack(heads._pack(fields)) == fields


@given(FIELDS)
@settings(max_examples=100)
def test_form_of_the_first_archives_is_told_apart_and_read(fields: tuple[tuple[str, str], ...]) -> None:
    packed = heads._pack(fields)
    assert not packed.startswith(heads._ZSTD)
    first = zstd.compress(heads._json(packed), 3, zstd_dict=zstd.ZstdDict(heads._DICTIONARY, is_raw=True))
    assert heads._unpack(first) == fields


def test_usual_headers_take_no_more_than_in_the_first_form() -> None:
    packed = heads._pack(USUAL)
    first = zstd.compress(heads._json(packed), 3, zstd_dict=zstd.ZstdDict(heads._DICTIONARY, is_raw=True))
    assert len(packed) <= len(first) + 2
