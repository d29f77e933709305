from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import Damaged, UsageError
from letopis.zrec import chunks
from letopis.zrec.chunks import ChunkCoder, set_digests_aside
from letopis.zrec.header import MAX_TEXT

TEXTS = [b"Package: p%d\nDepends: libfoo (>= 1), libbar\nMD5: %032x" % (n, n * 7919) for n in range(3000)]


@pytest.fixture(scope="module")
def trained() -> bytes:
    return chunks.train_dictionary(TEXTS, 20_000)


@given(st.binary(max_size=300))
@settings(max_examples=150)
def test_any_text_comes_back(text: bytes) -> None:
    coder = ChunkCoder(b"")
    assert coder.decode(coder.encode(text)) == text


def test_dictionary_makes_chunks_small_and_exact(trained: bytes) -> None:
    assert len(trained) > 8000
    coder, alone = ChunkCoder(trained), ChunkCoder(b"")
    for text in TEXTS[::50]:
        stored = coder.encode(text)
        assert coder.decode(stored) == text
        assert len(stored) < len(alone.encode(text))


def test_same_texts_give_the_same_dictionary_and_chunks(trained: bytes) -> None:
    assert chunks.train_dictionary(TEXTS, 20_000) == trained
    assert [ChunkCoder(trained).encode(t) for t in TEXTS[:9]] == [ChunkCoder(trained).encode(t) for t in TEXTS[:9]]


def test_order_of_coding_does_not_matter(trained: bytes) -> None:
    one, two = ChunkCoder(trained), ChunkCoder(trained)
    forward = [one.encode(text) for text in TEXTS[:40]]
    assert [two.encode(text) for text in TEXTS[39::-1]][::-1] == forward


@pytest.mark.parametrize("size", [0, 1, 131_071, 131_072, 131_073, 400_000])
@pytest.mark.parametrize("kind", ["words", "noise", "zeros"])
def test_texts_around_the_size_of_a_block(size: int, kind: str, trained: bytes) -> None:
    rng = random.Random(size)
    source = {"words": b"word %d " % size * (size // 6 + 1), "noise": rng.randbytes(size), "zeros": bytes(size)}
    coder = ChunkCoder(trained)
    text = source[kind][:size]
    assert coder.decode(coder.encode(text)) == text


def test_refuses_a_text_over_the_limit() -> None:
    with pytest.raises(UsageError):
        ChunkCoder(b"").encode(bytes(MAX_TEXT + 1))


@given(st.binary(max_size=60))
@settings(max_examples=300)
def test_any_bytes_decode_or_are_damaged(stored: bytes) -> None:
    try:
        ChunkCoder(b"").decode(stored)
    except Damaged:
        return


def test_every_flipped_byte_decodes_to_something_or_is_damaged(trained: bytes) -> None:
    coder = ChunkCoder(trained)
    stored = coder.encode(TEXTS[5])
    for at in range(len(stored)):
        try:
            coder.decode(stored[:at] + bytes((stored[at] ^ 0x55,)) + stored[at + 1 :])
        except Damaged:
            continue


def test_too_little_text_gets_no_dictionary() -> None:
    assert chunks.train_dictionary(TEXTS[:10]) == b""
    assert chunks.train_dictionary([]) == b""


def test_dictionary_survives_storing(trained: bytes) -> None:
    assert chunks.decompress_dictionary(chunks.compress_dictionary(trained)) == trained
    assert chunks.decompress_dictionary(b"") == b""


def test_dictionary_holds_no_digests() -> None:
    texts = [set_digests_aside(text)[0] for text in TEXTS]
    assert b"%032x" % 7919 not in chunks.train_dictionary(texts, 20_000)
