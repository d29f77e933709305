"""Which known text the documents of a site lean on: the one they have, or a new one where that pays."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from letopis.errors import Damaged
from letopis.store.solid.site import site_text
from letopis.store.sources import Sources
from letopis.store.texts import GENERIC, NOTHING, Known
from letopis.store.values import Entry


def existing(sources: Sources, sample: Collection[Entry], dying: Collection[int]) -> Known:
    """The latest text that documents of the site lean on, unless its pack is to be emptied."""
    places = {sources.text_of(entry.place) for entry in sample} - {None, GENERIC}
    for at in sorted((at for at in places if at is not None and at.pack not in dying), reverse=True):
        if text := sources.text(at):
            return Known(at, text)
    return NOTHING


def proposed(sources: Sources, sample: Collection[Entry], texts: Collection[Known]) -> bytes:
    """A new text that pays for the documents which are about to be written; empty when there is none."""
    pages = []
    for entry in sample:
        with suppress(Damaged):
            body = sources.body(entry.place, entry.digest)
            pages += [body] if body is not None else []
    return site_text(pages, [known.text for known in texts])
