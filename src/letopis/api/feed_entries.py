"""What a feed says: its entries, each with the difference to the version before."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from html import escape

from letopis.archive import Archive
from letopis.catalog.activity import LatestVersion
from letopis.errors import LetopisError
from letopis.replay.addresses import ReplayUrls

MOST_ENTRIES = 30
MOST_SHOWN = 20_000
"""Characters of a difference inside an entry."""

_MOST_CACHED = 1000
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One version. `html` may be put into any feed reader: everything in it is escaped."""

    key: str
    url: str
    title: str
    link: str
    time: int
    html: str


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed before it has a format."""

    title: str
    link: str
    own: str
    entries: list[FeedEntry]


def xml_text(text: str) -> str:
    """Text that XML can hold."""
    return _NOT_XML.sub("\ufffd", text)


class FeedBuilder:
    """Makes entries; differences are worked out once each."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: OrderedDict[int, str] = OrderedDict()
        self._lock = threading.Lock()

    def entry(self, web: ReplayUrls, version: LatestVersion) -> FeedEntry:
        """The entry of a version."""
        name = hashlib.sha1(version.url.encode(), usedforsecurity=False).hexdigest()
        what = "is new" if version.number == 0 else "changed"
        return FeedEntry(
            key=f"urn:letopis:{name}:{version.time}",
            url=version.url,
            title=xml_text(f"{version.title or version.url} {what}"),
            link=web.memento(version.time, version.url),
            time=version.time,
            html=self._html(version),
        )

    def _html(self, version: LatestVersion) -> str:
        with self._lock:
            known = self._known.get(version.id)
        if known is None:
            known = self._made(version)
            with self._lock:
                self._known[version.id] = known
                while len(self._known) > _MOST_CACHED:
                    self._known.popitem(last=False)
        return known

    def _made(self, version: LatestVersion) -> str:
        head = f'<p><a href="{escape(version.url)}">{escape(version.url)}</a></p>'
        if version.number == 0:
            return head + "<p>First version.</p>"
        try:
            new = self._archive.get(version.url, version=version.number)
            old = self._archive.get(version.url, version=version.number - 1)
            text = str(self._archive.difference(old, new, "unified"))
        except LetopisError as error:
            text = f"The difference cannot be shown: {error}"
        cut = text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "\n..."
        return f"{head}<pre>{escape(xml_text(cut))}</pre>"
