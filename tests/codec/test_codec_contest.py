"""The contest keeps the smallest and never loses a byte."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from letopis import codec

PAGE = b'<div class="a"><P>' + b"word " * 300 + b"</P></div>"


def test_the_smallest_wins() -> None:
    won = codec.contest(PAGE, ["gzip", "brotli", "bzip2"])
    assert won.codec.name == "brotli"
    assert len(won.encoded) == min(len(codec.get(name).encode(PAGE)) for name in ("gzip", "brotli", "bzip2"))


def test_stored_takes_part_and_wins_ties_and_tiny_inputs() -> None:
    for data in (b"", b"ab", bytes(range(200))):
        won = codec.contest(data, ["gzip", "bzip2", "xz"])
        assert (won.codec.name, won.encoded) == ("stored", data)


def test_lossy_methods_need_the_word_of_the_owner() -> None:
    data = b"<Div><dIV><DIv><dIv>" * 20
    assert codec.contest(data, ["mgz1i"]).codec.name == "stored"
    assert codec.contest(data, ["mgz1i"], lossy=True).codec.name == "mgz1i"


def test_methods_that_refuse_drop_out() -> None:
    assert codec.contest("á".encode() * 500, ["mgz2", "gzip"]).codec.name == "gzip"


@given(data=st.binary(max_size=400))
@settings(max_examples=30, deadline=None)
def test_what_wins_decodes_and_is_never_larger_than_the_input(data: bytes) -> None:
    names = [name for name in codec.names() if name not in ("brotli-html", "xz")]
    won = codec.contest(data, names)
    assert len(won.encoded) <= len(data)
    assert codec.by_id(won.codec.id).decode(won.encoded) == data


def test_codecs_with_dictionaries_take_part_as_values() -> None:
    methods = codec.with_dictionary(codec.Dictionary.of(PAGE))
    won = codec.contest(PAGE, ["gzip", *methods])
    assert won.codec.name in ("zstd-dict", "brotli-dict")
    assert len(won.encoded) < 30
