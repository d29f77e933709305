"""JSON: strings are paragraphs, addresses among them are links."""

from __future__ import annotations

import json
from collections.abc import Iterator

from letopis.extract.draft import Draft
from letopis.extract.plain import ADDRESS
from letopis.extract.source import Source
from letopis.model import BlockKind, LinkType

_MOST_VALUES = 500_000
_TITLES = ("title", "name", "headline")


def read(source: Source, draft: Draft) -> None:
    """Reads a JSON text. Raises ValueError when it is none."""
    decoded = source.decoded()
    draft.charset = decoded.charset
    data = json.loads(decoded.text)
    if isinstance(data, dict):
        draft.head(title=next((data[key] for key in _TITLES if isinstance(data.get(key), str)), ""))
    for text in _strings(data):
        found = ADDRESS.fullmatch(text)
        if found:
            draft.link(text, LinkType.A)
        elif source.mode == "full" and any(char.isalpha() for char in text):
            draft.block(BlockKind.PARAGRAPH, text)


def _strings(data: object) -> Iterator[str]:
    """All strings that are values, in document order, whatever the nesting."""
    waiting: list[object] = [data]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(reversed(list(value.values())))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
