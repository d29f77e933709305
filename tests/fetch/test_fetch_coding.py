import contextlib
import gzip
import tracemalloc
import zlib

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.fetch.content_coding import BOMB_BYTES, Decoder, DecodingStopped, content_codings
from letopis.model import FailureKind
from letopis.zstandard import zstd

LIMIT = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


CODERS = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstd.compress,
}


def decode(names: tuple[str, ...], coded: bytes, size: int, limit: int = LIMIT) -> bytes:
    decoder = Decoder(names, limit)
    out = b"".join(piece for at in range(0, len(coded), size) for piece in decoder.feed(coded[at : at + size]))
    decoder.finish()
    return out


@given(st.binary(max_size=5000), st.sampled_from(sorted(CODERS)), st.integers(1, 700))
@settings(max_examples=150, deadline=None)
def test_every_coding_is_undone_whatever_the_pieces(data: bytes, name: str, size: int) -> None:
    assert decode((name,), CODERS[name](data), size) == data


@given(st.binary(max_size=2000), st.lists(st.sampled_from(sorted(CODERS)), min_size=2, max_size=3), st.integers(1, 99))
@settings(max_examples=60, deadline=None)
def test_several_codings_are_undone_in_reverse(data: bytes, names: list[str], size: int) -> None:
    coded = data
    for name in names:
        coded = CODERS[name](coded)
    assert decode(tuple(names), coded, size) == data


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
def test_deflate_without_header_is_read_too(size: int) -> None:
    assert decode(("deflate",), raw_deflate(b"text " * 100), size) == b"text " * 100


@pytest.mark.parametrize("size", [1, 3, 21, 10_000])
def test_members_and_frames_follow_one_another(size: int) -> None:
    empty = gzip.compress(b"", mtime=0)
    assert decode(("gzip",), gzip.compress(b"a") + empty + empty + gzip.compress(b"b"), size) == b"ab"
    assert decode(("zstd",), zstd.compress(b"a") + zstd.compress(b"") + zstd.compress(b"b"), size) == b"ab"


def test_what_follows_the_end_is_ignored() -> None:
    assert decode(("gzip",), gzip.compress(b"a") + b"padding", 1000) == b"a"
    assert decode(("deflate",), zlib.compress(b"a") + b"padding", 5) == b"a"


@pytest.mark.parametrize("size", [1, 100])
def test_a_body_that_never_was_gzip_passes(size: int) -> None:
    decoder = Decoder(("gzip",), LIMIT)
    text = b"<p>plain</p>"
    assert b"".join(p for at in range(0, len(text), size) for p in decoder.feed(text[at : at + size])) == text
    assert decoder.mislabelled


@pytest.mark.parametrize("name", sorted(CODERS))
def test_a_body_that_ends_in_the_middle_is_noticed(name: str) -> None:
    with pytest.raises(DecodingStopped) as stop:
        decode((name,), CODERS[name](b"some text that is long enough" * 50)[:-6], 1000)
    assert stop.value.failure.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize("name", ["br", "zstd", "deflate"])
def test_a_body_of_another_form_is_noticed(name: str) -> None:
    with pytest.raises(DecodingStopped) as stop:
        decode((name,), b"<html>certainly not compressed</html>", 1000)
    assert stop.value.failure.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize("name", sorted(CODERS))
def test_a_bomb_is_stopped_within_its_limit(name: str) -> None:
    coded = CODERS[name](bytes(100 * LIMIT))
    tracemalloc.start()
    with pytest.raises(DecodingStopped) as stop:
        decode((name,), coded, 16384)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stop.value.failure.kind is FailureKind.TOO_LARGE
    assert peak < 4 * LIMIT


def test_a_bomb_is_stopped_before_a_generous_limit() -> None:
    with pytest.raises(DecodingStopped) as stop:
        decode(("gzip",), gzip.compress(bytes(2 * BOMB_BYTES), 9), 16384, limit=1 << 40)
    assert stop.value.failure.kind is FailureKind.BOMB


@pytest.mark.parametrize("name", sorted(CODERS))
def test_a_page_that_packs_very_well_is_read(name: str) -> None:
    table = b"<tr><td>No data for this day.</td></tr>\n" * 180_000
    coded = CODERS[name](table)
    assert len(table) > 300 * len(coded)
    assert decode((name,), coded, 16384, limit=10 << 20) == table


def test_an_honest_body_over_the_limit_is_too_large() -> None:
    text = b"".join(b"%d " % (number * 7919) for number in range(400_000))
    with pytest.raises(DecodingStopped) as stop:
        decode(("gzip",), gzip.compress(text, 1), 16384)
    assert stop.value.failure.kind is FailureKind.TOO_LARGE


def test_a_window_beyond_the_standard_is_refused() -> None:
    options = {zstd.CompressionParameter.window_log: 27}
    engine = zstd.ZstdCompressor(options=options)
    coded = engine.compress(bytes(1000)) + engine.flush()
    with pytest.raises(DecodingStopped):
        decode(("zstd",), coded, 1000)


def test_a_storm_of_empty_members_ends() -> None:
    with pytest.raises(DecodingStopped):
        decode(("gzip",), gzip.compress(b"", mtime=0) * 2000, 16384)


@pytest.mark.parametrize("names", [("compress",), ("gzip",) * 4])
def test_codings_that_were_not_asked_for_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(DecodingStopped):
        Decoder(names, LIMIT)


def test_names_of_codings_are_folded() -> None:
    assert content_codings("X-GZip, identity , br") == ("gzip", "br")


@given(st.binary(max_size=300), st.sampled_from(sorted(CODERS)))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_decoded_or_stopped(data: bytes, name: str) -> None:
    with contextlib.suppress(DecodingStopped):
        assert len(decode((name,), data, 50)) <= LIMIT
