"""What files say of looks at whole pages, gathered while their records come by: which captures belong to one, what its
page is, its picture and its text. Whatever a file says, no more is held than the bounds here allow.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from letopis.archive.outside_values import parse_json
from letopis.errors import BadUrl
from letopis.exchange.warc_records import PAGE_INFO, TEXT, VIEW, page_id
from letopis.model import to_millis
from letopis.model.times import utc_time
from letopis.tuples import NamedTuple
from letopis.urls import normalize

PICTURES = ("urn:view", "urn:fullPage", "screenshot", "urn:thumbnail", "thumbnail")
TEXTS = ("urn:textFinal", "urn:text")
"""Under which addresses crawlers keep what they made of a page, the best first."""
INFO = PAGE_INFO.removesuffix(":")
OWN_VIEW, OWN_TEXT = VIEW.removesuffix(":"), TEXT.removesuffix(":")
MOST_MEMBERS = 10_000
"""Resources of one look."""
MOST_HELD = 200_000
"""Resources of all looks that are gathered at a time,"""
MOST_LOOKS = 10_000
"""and looks, and pictures and texts of looks."""
MOST_BYTES = 64 * 1024 * 1024
"""Of pictures and texts that wait for the check of their page."""
AFTER = 60 * 60 * 1000
"""How much later than its page a picture, a text or a list of resources may be, in milliseconds."""
_MOST_INFO = 16 * 1024 * 1024
_Refuse = Callable[[str, str], None]


class LookFact(NamedTuple):
    """What a record says of a look: with a `part`, that it is that part of the look at a `page`.

    `alone` ones are records of ours, which are no captures beside the set that is made of them.
    """

    id: str
    page: str = ""
    part: str = ""
    body: bytes = b""
    alone: bool = False


class MadeRecord(NamedTuple):
    """A capture of what somebody made of a page: its picture or its text, in the archive by its own address."""

    page: str
    url: str
    time: int
    scheme: str


class PageInfo(NamedTuple):
    """What a record says of a look and its resources, each with its time where it is told; `time` is None if not.

    `answered` says that the page itself got an answer.
    """

    id: str
    url: str
    time: int | None
    listed: list[tuple[str, int | None]]
    left_out: int
    answered: bool


@dataclass(slots=True)
class PageLook:
    """One look: `named` when a file names its page, `date` is that of the record that does.

    A page that was `answered` has a capture somewhere.
    """

    url: str = ""
    time: int | None = None
    date: int | None = None
    named: bool = False
    answered: bool = False
    members: dict[tuple[str, int], None] = field(default_factory=dict)
    listed: list[tuple[str, int | None]] = field(default_factory=list)
    screenshot: bytes = b""
    text: str = ""

    @property
    def size(self) -> int:
        """Bytes of its picture and text."""
        return len(self.screenshot) + len(self.text)


class PageLooks:
    """The looks of an import that are not in the archive yet.

    `open` are those of which more may come, `ready` those of ours that wait for the check of their page alone.
    """

    def __init__(self) -> None:
        self.open: OrderedDict[str, PageLook] = OrderedDict()
        self.ready: list[PageLook] = []
        self.made: list[MadeRecord] = []
        self._done: OrderedDict[str, None] = OrderedDict()
        self._held = 0
        self._bytes = 0
        self._texts = 0

    @property
    def full(self) -> bool:
        """Whether some have to go to the archive before more come."""
        return self._held > MOST_HELD or max(map(len, (self.open, self.ready, self.made))) > MOST_LOOKS

    def take(self, fact: LookFact, url: str, time: int, refuse: _Refuse) -> None:
        """A fact, with the URL and the time of the capture that it came with."""
        if fact.alone:
            self._take_own(fact, time, refuse)
        elif fact.part == INFO:
            self._take_info(fact, time, refuse)
        elif fact.part:
            self.made.append(MadeRecord(fact.page, url, time, fact.part))
        elif fact.id not in self._done:
            look = self._look(fact.id)
            look.url = look.url or fact.page
            self._add_member(look, (url, time), refuse)

    def name_page(self, ident: str, url: str, time: int | None, text: str, refuse: _Refuse) -> None:
        """What a list of pages says of a look of which records came; others are no looks at whole pages."""
        look = self.open.get(ident)
        if look is not None and not look.named and url:
            look.url, look.time, look.named, look.answered = url, time, True, True
        if look is None or look.url != url or look.text:
            return
        if self._texts + len(text) > MOST_BYTES:
            refuse("more texts of pages than an import holds", url)
            return
        look.text = text
        self._texts += len(text)

    def taken_out(self, *, everything: bool) -> Iterator[PageLook]:
        """Looks of others, each once: all of them, or the older half of them."""
        most = 0 if everything else len(self.open) // 2
        while len(self.open) > most:
            ident, look = self.open.popitem(last=False)
            self._held -= len(look.members) + len(look.listed)
            self._texts -= len(look.text)
            self._done[ident] = None
            if len(self._done) > MOST_LOOKS * 10:
                self._done.popitem(last=False)
            yield look

    def drop_ready(self, found: list[PageLook]) -> None:
        """Forgets looks of ours that are in the archive, or never will be."""
        done = set(map(id, found))
        self.ready = [look for look in self.ready if id(look) not in done]
        self._bytes -= sum(look.size for look in found)

    def _look(self, ident: str) -> PageLook:
        look = self.open.get(ident)
        if look is None:
            look = self.open[ident] = PageLook()
        return look

    def _add_member(self, look: PageLook, member: tuple[str, int], refuse: _Refuse) -> None:
        if len(look.members) < MOST_MEMBERS:
            self._held += member not in look.members
            look.members[member] = None
        else:
            refuse(f"more than {MOST_MEMBERS} resources of one page", member[0])

    def _take_info(self, fact: LookFact, date: int, refuse: _Refuse) -> None:
        info = parse_page_info(fact.body, fact.page)
        if info is None:
            refuse("an unreadable list of the resources of a page", fact.page)
            return
        if info.left_out:
            refuse(f"more than {MOST_MEMBERS} resources of one page", fact.page)
        ident = info.id or f"{info.url} {date}"
        look = self._look(ident)
        if look.named and (look.url, look.time) != (info.url, info.time):
            refuse("an id of a page that is used twice", fact.page)
            look = self._look(f"{ident} {info.url} {info.time}")
        if not look.listed:
            look.url, look.time, look.date, look.named, look.answered = info.url, info.time, date, True, info.answered
            look.listed = info.listed
            self._held += len(info.listed)

    def _take_own(self, fact: LookFact, time: int, refuse: _Refuse) -> None:
        """Records of ours stand behind one another, the list of resources last."""
        last = self.ready[-1] if self.ready else None
        if last is None or last.named or (last.url, last.time) != (fact.page, time):
            last = PageLook(fact.page, time)
            self.ready.append(last)
        before = last.size
        if fact.part == OWN_VIEW:
            last.screenshot = fact.body
        elif fact.part == OWN_TEXT:
            last.text = fact.body.decode()
        elif (info := parse_page_info(fact.body, fact.page)) is not None:
            last.listed, last.named = info.listed, True
        self._bytes += last.size - before
        while self._bytes > MOST_BYTES and len(self.ready) > 1:
            refuse("a whole page without its capture", self.ready[0].url)
            self.drop_ready(self.ready[:1])


def own_fact(target: str, date: str, ident: str, block: bytes) -> LookFact | None:
    """What a record that we wrote beside a page says of the look at it; None where it is not what we would write."""
    scheme = next((one for one in (VIEW, TEXT, PAGE_INFO) if target.startswith(one)), "")
    url = target.removeprefix(scheme)
    if not scheme or ident != page_id(url, date) or not _is_sound(scheme, url, ident, block):
        return None
    return LookFact(ident, url, scheme.removesuffix(":"), block, alone=True)


def _is_sound(scheme: str, url: str, ident: str, block: bytes) -> bool:
    if scheme == VIEW:
        return is_picture(block)
    if scheme == PAGE_INFO:
        info = parse_page_info(block, url)
        return info is not None and (info.id, info.url, info.left_out) == (ident, url, 0)
    try:
        return bool(block.decode())
    except UnicodeDecodeError:
        return False


def is_picture(body: bytes) -> bool:
    """Whether bytes begin like a picture that browsers show: PNG, JPEG or WebP."""
    return body.startswith((b"\x89PNG", b"\xff\xd8\xff")) or (body[:4] == b"RIFF" and body[8:12] == b"WEBP")


def parse_page_info(body: bytes, page: str) -> PageInfo | None:
    """The list of resources in a record beside a page; None when it is none."""
    try:
        said = parse_json(body) if len(body) <= _MOST_INFO else None
    except (ValueError, RecursionError):
        return None
    urls = said.get("urls") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(urls, dict):
        return None
    url = web_url(said.get("url")) or web_url(page)
    if not url:
        return None
    listed: list[tuple[str, int | None]] = []
    answered = False
    for address, facts in islice(urls.items(), MOST_MEMBERS):
        member = web_url(address)
        status = facts.get("status", -1) if isinstance(facts, dict) else facts
        if member and status:
            answered = answered or member == url
            listed += [(member, time) for time in _times(facts, is_page=member == url)]
    ident = said.get("pageid")
    left_out = max(0, len(urls) - MOST_MEMBERS) + max(0, len(listed) - MOST_MEMBERS)
    del listed[MOST_MEMBERS:]
    return PageInfo(ident if isinstance(ident, str) else "", url, page_time(said.get("ts")), listed, left_out, answered)


def _times(facts: Any, *, is_page: bool) -> list[int | None]:
    """When a resource was used, None for an unknown time; the page itself only where it was used again."""
    said = facts if isinstance(facts, dict) else {}
    times = said.get("times")
    if isinstance(times, list):
        return [found for found in map(page_time, times[:MOST_MEMBERS]) if found is not None]
    return [] if is_page else [page_time(said.get("ts"))]


def web_url(value: Any) -> str:
    """The normal form of an address of the web; empty for all else."""
    if not isinstance(value, str) or not value[:8].lower().startswith(("http://", "https://")):
        return ""
    try:
        return normalize(value)
    except BadUrl:
        return ""


def page_time(value: Any) -> int | None:
    """The time that a list of pages names, in milliseconds; None when it is none."""
    try:
        return to_millis(utc_time(value)) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
