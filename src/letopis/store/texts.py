"""Known texts: what the pages of a site share, stored once and needed to read each of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cache
from typing import NamedTuple

from letopis.errors import Damaged, NewerFormat
from letopis.store import coders
from letopis.store.layout import Kind, Record, TextAt
from letopis.store.packs import Packs, damaged

GENERIC = TextAt(0, 1)
"""The text of any HTML page, which comes with Letopis."""
_KEPT = 32


class Known(NamedTuple):
    """A text to lean on, and where readers find it; without a place it is none."""

    at: TextAt | None
    text: bytes


NOTHING = Known(None, b"")


class Texts:
    """Reads known texts, from any thread, and keeps the last few: 4 MiB of them at most."""

    def __init__(self, packs: Packs) -> None:
        self._packs = packs
        self._kept: OrderedDict[TextAt, bytes] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, at: TextAt) -> bytes:
        """The text; Damaged names the spot where it should be, Moved asks to look the content up again."""
        if at.pack == GENERIC.pack:
            return built_in(at)
        with self._guard:
            text = self._kept.get(at)
            if text is not None:
                self._kept.move_to_end(at)
                return text
        text = self.decode(at.pack, self._packs.record(at.pack, at.offset))
        self._keep(at, text)
        return text

    def decode(self, pack: int, record: Record) -> bytes:
        """The text of a record that was already read."""
        if record.kind != Kind.TEXT:
            raise damaged(self._packs.name(pack), record.offset, "there should be the known text of a site")
        try:
            return coders.of(record.method).decode(record.body, 0, None, built_in(GENERIC)).body
        except Damaged as error:
            raise damaged(self._packs.name(pack), record.offset, str(error)) from error

    def _keep(self, at: TextAt, text: bytes) -> None:
        with self._guard:
            self._kept[at] = text
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)


def built_in(at: TextAt) -> bytes:
    """A text that comes with Letopis."""
    if at != GENERIC:
        raise NewerFormat(f"a frame needs the built-in text {at.offset}; read it with a later release of Letopis")
    return _html()


@cache
def _html() -> bytes:
    # Late on purpose: the codecs take long to load, and newest versions that wait for compaction need none of them.
    from letopis.codec import html_dictionary  # noqa: PLC0415

    return html_dictionary().text


def generic() -> Known:
    """The text that serves any page a little."""
    return Known(GENERIC, built_in(GENERIC))


def cost(at: TextAt | None, text: bytes) -> int:
    """Coder output that getting a text takes whoever does not have it yet."""
    return len(text) if at is not None and at.pack else 0
