"""The rule "paragraphs-50": a page is known when nine tenths of its long paragraphs are."""

from __future__ import annotations

from collections.abc import Container, Iterator

from xxhash import xxh3_64_intdigest

from letopis.change.text_forms import words_form
from letopis.model import Page

LEAST_LENGTH = 50
KNOWN_FROM = 0.9


def long_paragraphs(page: Page) -> Iterator[tuple[int, int]]:
    """Hash and length of each paragraph of at least 50 characters in its normal form."""
    for block in page.blocks:
        form = words_form(block.text)
        if len(form) >= LEAST_LENGTH:
            yield xxh3_64_intdigest(form.encode("utf-8", "surrogatepass")), len(form)


def known_share(page: Page, known: Container[int]) -> float | None:
    """D: length of known long paragraphs by length of all; None when the page has none."""
    whole = familiar = 0
    for block, length in long_paragraphs(page):
        whole += length
        familiar += length if block in known else 0
    return familiar / whole if whole else None


def known_share_of(new: Page, old: Page) -> float | None:
    """D of a page against its own last version alone."""
    return known_share(new, {block for block, _ in long_paragraphs(old)})
