"""What documents say of themselves: dates, languages, and the head of an HTML page with its robots directives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from html import unescape
from importlib import import_module
from typing import TYPE_CHECKING

from letopis.extract.pages import PageDraft
from letopis.lazy import lazy
from letopis.model import Block, BlockKind, LinkType

if TYPE_CHECKING:
    from email import utils as email_utils
else:
    email_utils = lazy("email.utils")

_ISO = re.compile(r"\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?\s?(?:Z|[+-]\d{2}:?\d{2})?)?)?")
_HTTP = re.compile(r"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) ([12]\d{3}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def read_date(text: str) -> datetime | None:
    """An aware time of an ISO 8601 or RFC 822 text; None for others and for impossible ones."""
    text = text.strip()[:64]
    if not text:
        return None
    try:
        moment = _iso(text) if text[:4].isdigit() else _with_month_name(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment is None:
        return None
    return _plausible(moment)


def _plausible(moment: datetime) -> datetime | None:
    try:
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return None
    return utc if _EARLIEST <= utc < _LATEST else None


def _with_month_name(text: str) -> datetime:
    """A time with the name of its month: as servers must write it, or in any older way."""
    found = _HTTP.fullmatch(text)
    if found and found[2] in _MONTHS:
        year, month, day = int(found[3]), _MONTHS.index(found[2]) + 1, int(found[1])
        return datetime(year, month, day, int(found[4]), int(found[5]), int(found[6]), tzinfo=UTC)
    return email_utils.parsedate_to_datetime(text)


def _iso(text: str) -> datetime | None:
    found = _ISO.match(text)
    if not found:
        return None
    plain = found[0].upper().replace(",", ".").replace(" Z", "Z")
    return datetime.fromisoformat(plain if len(plain) > 7 else plain + "-01")


_LANGUAGE_SAMPLE = 480
_LEAST_PROSE = 24
_WORD = re.compile(r"[^\W\d_]+")
# Short words that a text of the language can hardly avoid and that its neighbours lack.
_COMMON_WORDS = {
    "cs": "je se že na v to jsou který která které při byl bylo také jsem může nebo ale podle více pro již",
    "sk": "je sa že na v to sú ktorý ktorá ktoré pri bol bolo tiež som môže alebo ale podľa viac pre už",
    "en": "the of and to in is that for with was are this be from have by not at as it",
    "de": "der die und das ist nicht mit den von für auf ein eine zu im dem sich des auch werden",
    "ru": "и в не на что с по это как из для от его но они был а также к или",
    "pl": "w i na nie się z do jest to że od przez po jak ale dla oraz jego są przy",
    "fr": "le la les des et est une dans que pour qui sur pas par avec au ce il sont du de un en nous vous",
    "es": "el la los las de que y en un una por con para es del se al lo como más",
    "it": "il di che la è e per un una del con non sono della dei si le da nel più",
}
_NEEDED_SHARE = 0.10
_LEAST_WORDS = 12
_CLEARLY = 1.5
"""How many times more common words than usual identify a language that is not declared."""
_NOT_PROSE = (BlockKind.KEYWORDS, BlockKind.ALT, BlockKind.CODE)
_AFTER_LANGUAGE = re.compile(r"[-_.,; ]")


def primary_language(tag: str) -> str:
    """`cs` of `cs-CZ`, `cs_CZ.UTF-8` and `CS`; nothing for what is no language tag."""
    head = _AFTER_LANGUAGE.split(tag.strip().lower()[:35], 1)[0]
    return head if 2 <= len(head) <= 3 and head.isascii() and head.isalpha() else ""


def language_of(blocks: Sequence[Block], declared: str = "") -> str:
    """The language of the longest blocks, at a bounded cost; `declared` where there is too little text."""
    text = _prose(blocks)
    if len(text) < _LEAST_PROSE:
        return declared
    words = _WORD.findall(text.lower())
    if _agrees(words, declared):
        return declared
    return _language_by_words(words) or _language_model()(text)


def _prose(blocks: Sequence[Block]) -> str:
    """The start of the longest blocks: running text rather than menus."""
    chosen: list[str] = []
    room = _LANGUAGE_SAMPLE
    for kind, text in sorted(blocks[:400], key=_length, reverse=True)[:6]:
        if kind not in _NOT_PROSE and room > 0:
            chosen.append(text[:room])
            room -= len(text)
    return " ".join(chosen)


def _length(block: Block) -> int:
    return len(block.text)


@lru_cache(maxsize=len(_COMMON_WORDS))
def _common_words(language: str) -> frozenset[str]:
    own = frozenset(_COMMON_WORDS.get(language, "").split())
    # Czech and Slovak share many words; only the others distinguish them.
    neighbour = {"cs": "sk", "sk": "cs"}.get(language, "")
    return own - frozenset(_COMMON_WORDS.get(neighbour, "").split())


def _agrees(words: Sequence[str], language: str) -> bool:
    """Whether the words confirm the declared language, so that the model is not needed."""
    return language in _COMMON_WORDS and len(words) >= _LEAST_WORDS and _likeness(words, language) >= 1.0


def _likeness(words: Sequence[str], language: str) -> float:
    """The share of words that a text of the language can hardly avoid, by the share that it needs."""
    common = _common_words(language)
    needed = _NEEDED_SHARE / 2 if language in ("cs", "sk") else _NEEDED_SHARE
    return sum(word in common for word in words) / (needed * len(words))


def _language_by_words(words: Sequence[str]) -> str:
    """The language whose common words stand out in a text; nothing where none does, or several do."""
    if len(words) < _LEAST_WORDS:
        return ""
    likeness = sorted(((_likeness(words, language), language) for language in _COMMON_WORDS), reverse=True)
    (best, found), (second, _) = likeness[:2]
    return found if best >= _CLEARLY and best >= 2 * second else ""


@lru_cache(maxsize=1)
def _language_model() -> Callable[[str], str]:
    """The classifier; loading it takes most of a second, so only a page that needs it pays."""
    classify: Callable[[str], tuple[str, float]] = import_module("py3langid").classify
    return lambda text: str(classify(text)[0])


_REFRESH = re.compile(r"\s*(\d{0,9})(?:\.\d*)?\s*(?:[;,\s]\s*(?:url\s*=\s*)?(.*))?", re.IGNORECASE | re.DOTALL)
_LD_PUBLISHED = re.compile(r'"datePublished"\s*:\s*"([^"]{4,40})"')
_LD_MODIFIED = re.compile(r'"dateModified"\s*:\s*"([^"]{4,40})"')
_LD_LIMIT = 256 * 1024
_LD_VALUES = 5000
_LITTLE_TEXT = 250
"""A page that says less by itself is filled by its script: the text that its data has is taken."""
_OG_LINKS = ("og:image", "og:video", "og:audio")
_SAID = (BlockKind.PARAGRAPH, BlockKind.ITEM, BlockKind.CELL, BlockKind.QUOTE)
_PUBLISHED_NAMES = (
    "article:published_time",
    "datepublished",
    "date",
    "dc.date",
    "dc.date.issued",
    "dcterms.created",
    "dcterms.issued",
    "pubdate",
    "publishdate",
    "parsely-pub-date",
    "citation_publication_date",
)
_MODIFIED_NAMES = ("article:modified_time", "og:updated_time", "datemodified", "last-modified", "dcterms.modified")


class HtmlHead:
    """Collects the head of one page and settles it into a draft at the end."""

    __slots__ = ("ld", "meta", "times")

    def __init__(self) -> None:
        self.meta: dict[str, str] = {}
        self.ld: list[str] = []
        self.times: list[str] = []

    def add(self, attributes: Mapping[str, str | None]) -> None:
        """Takes in one meta element; the first of a name wins, robots add up."""
        name = attributes.get("name") or attributes.get("property") or attributes.get("itemprop")
        key = name.strip().lower() if name else "http-equiv:" + (attributes.get("http-equiv") or "").strip().lower()
        content = attributes.get("content") or ""
        if key == "robots" and key in self.meta:
            self.meta[key] += "," + content
        elif content and len(self.meta) < 500:
            self.meta.setdefault(key, content)

    def settle(self, draft: PageDraft) -> None:
        """Puts what was found into the draft."""
        meta = self.meta
        if meta:
            draft.head(
                description=meta.get("description") or meta.get("og:description", ""), keywords=meta.get("keywords", "")
            )
        self.settle_basic(draft)
        if self.ld:
            self._described(draft)
        if meta or self.ld or self.times:
            self._dates(draft)

    def settle_basic(self, draft: PageDraft) -> None:
        """The same without description and dates."""
        if not draft.title:
            draft.head(title=self.meta.get("og:title") or self._from_data("headline"))
        if not self.meta:
            return
        self.settle_leading(draft)
        for name in _OG_LINKS:
            if name in self.meta:
                draft.link(self.meta[name], LinkType.LINK, rel=name)
        if not draft.declared_language:
            said = self.meta.get("http-equiv:content-language") or self.meta.get("og:locale", "")
            draft.declared_language = primary_language(said) if said else ""

    def _described(self, draft: PageDraft) -> None:
        """Description, key words and text from JSON-LD, where the page has none by itself."""
        if not draft.description:
            draft.head(description=self._from_data("description"), keywords=self._from_data("keywords"))
        text = self._from_data("articleBody")
        if text and says_little(draft.blocks):
            for paragraph in text.split("\n"):
                draft.block(BlockKind.PARAGRAPH, paragraph)

    def _from_data(self, name: str) -> str:
        """The first text that JSON-LD has under a name, whatever the nesting."""
        for text in self.ld:
            found = _value_of(text, name) if f'"{name}"' in text else ""
            if found:
                return found
        return ""

    def settle_leading(self, draft: PageDraft) -> None:
        """Only what matters for where the page leads: what robots may do, and another address to go to."""
        if "robots" in self.meta:
            draft.robots.update(robots_directives(self.meta["robots"]))
        if "http-equiv:refresh" in self.meta:
            _refresh(draft, self.meta["http-equiv:refresh"])

    def _dates(self, draft: PageDraft) -> None:
        ld = "\n".join(self.ld)[:_LD_LIMIT]
        published = [self.meta[name] for name in _PUBLISHED_NAMES if name in self.meta]
        modified = [self.meta[name] for name in _MODIFIED_NAMES if name in self.meta]
        if ld:
            published += _LD_PUBLISHED.findall(ld)[:4]
            modified += _LD_MODIFIED.findall(ld)[:4]
        draft.published = next(filter(None, map(read_date, [*published, *self.times])), None)
        draft.modified = next(filter(None, map(read_date, modified)), None)


def says_little(blocks: Sequence[Block]) -> bool:
    """Whether a page has hardly any text without its script, which fills it."""
    return sum(len(said) for kind, said in blocks if kind in _SAID) < _LITTLE_TEXT


def _value_of(text: str, name: str) -> str:
    """The first value of a name in a JSON text that is a string, or a list of some."""
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return ""
    for _ in range(_LD_VALUES):
        if not waiting:
            break
        data = waiting.pop(0)
        if isinstance(data, dict):
            said = data.get(name)
            parts = [part for part in (said if isinstance(said, list) else [said]) if isinstance(part, str)]
            if parts:
                return unescape(", ".join(parts))
            waiting.extend(data.values())
        elif isinstance(data, list):
            waiting.extend(data)
    return ""


def robots_directives(text: str) -> set[str]:
    """The directives of a robots meta element or an X-Robots-Tag value that is not for one robot only."""
    found = {word.strip().lower()[:60] for word in text[:2000].split(",")}
    found.discard("")
    return {"noindex", "nofollow"} | (found - {"none"}) if "none" in found else found


def _refresh(draft: PageDraft, content: str) -> None:
    """A meta refresh is a redirect after some seconds; without an address it only reloads."""
    found = _REFRESH.fullmatch(content[:9000])
    ref = (found[2] or "").strip() if found else ""
    if ref[:1] in ("'", '"'):
        ref = ref[1:].partition(ref[0])[0]
    if ref:
        draft.refresh = draft.link(ref, LinkType.REDIRECT, rel="refresh")
