from __future__ import annotations

from letopis.change.fingerprints import MAX_BLOCKS, fingerprint
from letopis.model import Block, BlockKind, Page


def made(blocks: list[Block], frame: frozenset[int] = frozenset()) -> Page:
    return Page("http://example.test/", "text/html", blocks=tuple(blocks), frame=frame)


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
