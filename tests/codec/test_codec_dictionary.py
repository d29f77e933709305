"""Dictionaries and the methods that use them."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis import codec
from letopis.codec import Codec, Dictionary
from letopis.codec.methods import MAX_DICTIONARY
from letopis.codec.methods import with_dictionary as both_with_dictionary
from letopis.errors import CodecRefused, Damaged, NewerFormat, UsageError
from letopis_demo import World

WORLD = World(3, 1, 60)
PAGES = [WORLD.body(url, WORLD.start) for url in WORLD.urls(WORLD.hosts[0])]
SITE = Dictionary.train(PAGES[:30], 16 << 10)


def with_dictionary(dictionary: Dictionary) -> list[Codec]:
    return list(both_with_dictionary(dictionary))


MADE = [method.encode(PAGES[20]) for method in with_dictionary(SITE)]


def test_a_site_dictionary_halves_the_pages_of_its_site() -> None:
    for method, alone in zip(with_dictionary(SITE), ("zstd", "brotli"), strict=True):
        made = [method.encode(page) for page in PAGES[30:40] if len(page) > 2000]
        plain = [codec.get(alone).encode(page) for page in PAGES[30:40] if len(page) > 2000]
        assert sum(map(len, made)) < 0.7 * sum(map(len, plain))
        assert [method.decode(data) for data in made] == [page for page in PAGES[30:40] if len(page) > 2000]


@given(data=st.one_of(st.binary(max_size=300), st.sampled_from(PAGES)), text=st.binary(min_size=8, max_size=400))
@settings(max_examples=20, deadline=None)
def test_any_text_serves_as_a_dictionary(data: bytes, text: bytes) -> None:
    stored = Dictionary.from_bytes(Dictionary.of(text).to_bytes())
    assert stored.text == text
    for method in with_dictionary(stored):
        assert method.decode(method.encode(data), len(data)) == data


def test_the_stored_form_is_compressed_and_keeps_the_training() -> None:
    stored = Dictionary.from_bytes(SITE.to_bytes())
    assert stored == SITE
    assert stored.trained
    assert len(SITE.to_bytes()) < 0.8 * len(SITE.text)
    assert with_dictionary(stored)[0].decode(with_dictionary(SITE)[0].encode(PAGES[40])) == PAGES[40]


def test_joined_dictionaries_serve_both_kinds_of_text() -> None:
    both = SITE.joined(codec.html_dictionary())
    assert both.text == SITE.text + codec.html_dictionary().text
    assert not both.trained
    assert len(with_dictionary(both)[1].encode(PAGES[40])) < len(codec.get("brotli-html").encode(PAGES[40]))


def test_broken_dictionaries_are_damaged() -> None:
    good = SITE.to_bytes()
    for broken in (b"", b"LDIC", b"XXXX" + good[4:], good[:4] + b"\0" + good[5:], good[:5] + b"\7" + good[6:]):
        with pytest.raises(Damaged):
            Dictionary.from_bytes(broken)
    with pytest.raises(NewerFormat):
        Dictionary.from_bytes(good[:4] + b"\2" + good[5:])
    with pytest.raises(Damaged):
        Dictionary.from_bytes(good[: len(good) // 2])
    with pytest.raises(Damaged):
        _ = Dictionary(Dictionary.of(b"no tables here, only text").stream, trained=True).zstd


@given(place=st.integers(6, 10**6), value=st.integers(1, 255))
@settings(max_examples=40, deadline=None)
def test_a_flipped_byte_never_crashes(place: int, value: int) -> None:
    broken = bytearray(SITE.to_bytes())
    broken[6 + place % (len(broken) - 6)] ^= value
    with suppress(Damaged, CodecRefused):
        for method, data in zip(with_dictionary(Dictionary.from_bytes(bytes(broken))), MADE, strict=True):
            assert len(method.decode(data, 100_000)) <= 100_000
            method.encode(b"page")


def test_the_wrong_trained_dictionary_is_noticed() -> None:
    other = Dictionary.train(PAGES[20:50], 12 << 10)
    with pytest.raises(Damaged):
        with_dictionary(other)[0].decode(with_dictionary(SITE)[0].encode(PAGES[40]))


def test_a_stream_of_another_brotli_is_read_but_not_written() -> None:
    import brotli

    compressor = brotli.Compressor(quality=5, lgwin=24)
    text = PAGES[0]
    foreign = Dictionary(compressor.process(text) + compressor.flush())
    data = compressor.process(PAGES[1]) + compressor.finish()
    method = with_dictionary(foreign)[1]
    assert method.decode(data) == PAGES[1]
    with pytest.raises(CodecRefused, match="another release"):
        method.encode(PAGES[1])


def test_sizes_and_counts_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError):
        Dictionary.train(PAGES[:9])
    with pytest.raises(UsageError):
        Dictionary.of(b"short")
    with pytest.raises(UsageError):
        Dictionary.of(bytes(MAX_DICTIONARY + 1))
    with pytest.raises(UsageError):
        Dictionary.train([b"x"] * 10)
    with pytest.raises(CodecRefused, match="window"):
        with_dictionary(SITE)[1].encode(bytes(1 << 24))


def test_the_generic_dictionary_never_changes() -> None:
    text = files("letopis.codec").joinpath("html.txt").read_bytes()
    assert codec.html_dictionary().text == text
    assert not codec.html_dictionary().trained
    assert (
        hashlib.sha256(codec.html_dictionary().stream).hexdigest()
        == "cd686c2c6ea1c12ef3675b4d686802f0df1af887556fa31e8a6fcdccba8ab616"
    )
