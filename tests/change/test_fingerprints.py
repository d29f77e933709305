from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.change.fingerprints import BLOCK_KINDS, MAX_BLOCKS, Fingerprint, fingerprint
from letopis.errors import Damaged
from letopis.model import Block, BlockKind, Page

BLOCKS = st.lists(st.builds(Block, st.sampled_from(BLOCK_KINDS), st.text(max_size=40)), max_size=12)


def made(blocks: list[Block], frame: frozenset[int] = frozenset()) -> Page:
    return Page("http://example.test/", "text/html", blocks=tuple(blocks), frame=frame)


@given(BLOCKS, st.frozensets(st.integers(0, 11)))
@settings(max_examples=150, deadline=None)
def test_stored_form_gives_the_same_fingerprint(blocks: list[Block], frame: frozenset[int]) -> None:
    whole = fingerprint(made(blocks, frozenset(i for i in frame if i < len(blocks))))
    assert Fingerprint.from_bytes(whole.to_bytes()) == whole
    assert len(whole.hashes) == len(whole.lengths) == len(whole.kinds) == len(whole.blocks)


@given(st.binary(max_size=80))
@settings(max_examples=200, deadline=None)
def test_garbage_is_damaged_or_a_fingerprint(data: bytes) -> None:
    with contextlib.suppress(Damaged):
        assert len(Fingerprint.from_bytes(data).to_bytes()) <= len(data)


@pytest.mark.parametrize("cut", [0, 1, 5, 12, 20, -1])
def test_cut_bytes_are_damaged(cut: int) -> None:
    whole = fingerprint(made([Block(BlockKind.PARAGRAPH, "some text here"), Block(BlockKind.H1, "more")])).to_bytes()
    with pytest.raises(Damaged):
        Fingerprint.from_bytes(whole[:cut])


def test_case_punctuation_and_blanks_do_not_count() -> None:
    one = fingerprint(made([Block(BlockKind.PARAGRAPH, "Hello, “World” – again")]))
    two = fingerprint(made([Block(BlockKind.PARAGRAPH, "hello world  AGAIN!")]))
    assert one.hashes == two.hashes
    assert one.text_hash == two.text_hash


def test_blocks_without_letters_are_left_out_and_the_frame_follows() -> None:
    blocks = [Block(BlockKind.PARAGRAPH, text) for text in ("…", "menu", "|", "body")]
    whole = fingerprint(made(blocks, frozenset({1})))
    assert [block.text for block in whole.blocks] == ["menu", "body"]
    assert whole.frame == {0}


def test_line_ends_inside_a_block_do_not_shift_the_others() -> None:
    whole = fingerprint(made([Block(BlockKind.CODE, "a\nb"), Block(BlockKind.PARAGRAPH, "c")]))
    assert len(whole) == 2


def test_pages_of_endless_blocks_are_folded() -> None:
    whole = fingerprint(made([Block(BlockKind.ITEM, f"item {n}") for n in range(MAX_BLOCKS + 500)]))
    assert len(whole) == MAX_BLOCKS + 1


def test_an_empty_page_has_an_empty_fingerprint() -> None:
    assert len(fingerprint(made([]))) == 0


def test_the_stored_form_stays_as_it_is() -> None:
    long = Block(BlockKind.PARAGRAPH, "words and more words " * 9)
    whole = fingerprint(made([Block(BlockKind.TITLE, "A title"), Block(BlockKind.ITEM, "menu"), long], frozenset({1})))
    assert whole.to_bytes().hex() == (
        "f103ab5a281233e5e9e739494b75f68a16af5edf9c115e5cbfdb729898c3f504f192008a0906049901"
    )
