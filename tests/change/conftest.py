"""What several tests of this unit share: ways to build pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from letopis.model import Block, BlockKind, Page

MakePage = Callable[..., Page]


@pytest.fixture
def page() -> MakePage:
    """A page of the given paragraphs; `frame` names blocks by index."""

    def make(*texts: str, kind: BlockKind = BlockKind.PARAGRAPH, frame: tuple[int, ...] = ()) -> Page:
        blocks = tuple(Block(kind, text) for text in texts)
        return Page("http://example.test/", "text/html", blocks=blocks, frame=frozenset(frame))

    return make
