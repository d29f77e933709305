"""Long paragraphs: how much of a page is text that is known already, from its last version or from other pages."""

from __future__ import annotations

from collections.abc import Container, Iterator

from xxhash import xxh3_64_intdigest

from letopis.change.fingerprints import normalized_words
from letopis.model import Page

LONG_PARAGRAPH = 50


def long_paragraphs(page: Page) -> Iterator[tuple[int, int]]:
    """Hash and length of each paragraph of at least 50 characters in its normal form."""
    for block in page.blocks:
        form = normalized_words(block.text)
        if len(form) >= LONG_PARAGRAPH:
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
