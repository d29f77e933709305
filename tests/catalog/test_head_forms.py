"""Packed headers: small, exact, and readable in the form of the first archives too."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.catalog import contents
from letopis.zstandard import zstd

FIELDS = st.lists(st.tuples(st.text(min_size=1, max_size=20), st.text(max_size=80)), max_size=20).map(tuple)
USUAL = (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "30214"), ("ETag", '"d41d8cd98f00b204"'))


@given(FIELDS)
@settings(max_examples=200)
def test_headers_survive_packing_whatever_they_hold(fields: tuple[tuple[str, str], ...]) -> None:
    assert contents.unpack_headers(contents._pack_headers(fields)) == fields


@given(FIELDS)
@settings(max_examples=100)
def test_form_of_the_first_archives_is_told_apart_and_read(fields: tuple[tuple[str, str], ...]) -> None:
    packed = contents._pack_headers(fields)
    assert not packed.startswith(contents._ZSTD_MAGIC)
    first = zstd.compress(
        contents._inflate_record(packed), 3, zstd_dict=zstd.ZstdDict(contents._HEADER_DICTIONARY, is_raw=True)
    )
    assert contents.unpack_headers(first) == fields


def test_usual_headers_take_no_more_than_in_the_first_form() -> None:
    packed = contents._pack_headers(USUAL)
    first = zstd.compress(
        contents._inflate_record(packed), 3, zstd_dict=zstd.ZstdDict(contents._HEADER_DICTIONARY, is_raw=True)
    )
    assert len(packed) <= len(first) + 2
