"""What the head of an HTML page says: names, dates, robots, refresh, language."""

from __future__ import annotations

import re
from collections.abc import Mapping

from letopis.extract.dates import read_date
from letopis.extract.draft import Draft
from letopis.extract.language import primary
from letopis.model import LinkType

_REFRESH = re.compile(r"\s*(\d{0,9})(?:\.\d*)?\s*(?:[;,\s]\s*(?:url\s*=\s*)?(.*))?", re.IGNORECASE | re.DOTALL)
_LD_PUBLISHED = re.compile(r'"datePublished"\s*:\s*"([^"]{4,40})"')
_LD_MODIFIED = re.compile(r'"dateModified"\s*:\s*"([^"]{4,40})"')
_LD_LIMIT = 256 * 1024
_PUBLISHED = (
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
_MODIFIED = ("article:modified_time", "og:updated_time", "datemodified", "last-modified", "dcterms.modified")


class Head:
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

    def settle(self, draft: Draft) -> None:
        """Puts what was found into the draft."""
        meta = self.meta
        if meta:
            draft.head(
                description=meta.get("description") or meta.get("og:description", ""), keywords=meta.get("keywords", "")
            )
            self.settle_basic(draft)
        if meta or self.ld or self.times:
            self._dates(draft)

    def settle_basic(self, draft: Draft) -> None:
        """The same without description and dates."""
        self.settle_leading(draft)
        if not draft.declared_language:
            said = self.meta.get("http-equiv:content-language") or self.meta.get("og:locale", "")
            draft.declared_language = primary(said) if said else ""

    def settle_leading(self, draft: Draft) -> None:
        """Only what matters for where the page leads: what robots may do, and another address to go to."""
        if "robots" in self.meta:
            draft.robots.update(directives(self.meta["robots"]))
        if "http-equiv:refresh" in self.meta:
            _refresh(draft, self.meta["http-equiv:refresh"])

    def _dates(self, draft: Draft) -> None:
        ld = "\n".join(self.ld)[:_LD_LIMIT]
        published = [self.meta[name] for name in _PUBLISHED if name in self.meta]
        modified = [self.meta[name] for name in _MODIFIED if name in self.meta]
        if ld:
            published += _LD_PUBLISHED.findall(ld)[:4]
            modified += _LD_MODIFIED.findall(ld)[:4]
        draft.published = next(filter(None, map(read_date, [*published, *self.times])), None)
        draft.modified = next(filter(None, map(read_date, modified)), None)


def directives(text: str) -> set[str]:
    """The directives of a robots meta element or an X-Robots-Tag value that is not for one robot only."""
    found = {word.strip().lower()[:60] for word in text[:2000].split(",")}
    found.discard("")
    return {"noindex", "nofollow"} | (found - {"none"}) if "none" in found else found


def _refresh(draft: Draft, content: str) -> None:
    """A meta refresh is a redirect after some seconds; without an address it only reloads."""
    found = _REFRESH.fullmatch(content[:9000])
    ref = (found[2] or "").strip() if found else ""
    if ref[:1] in ("'", '"'):
        ref = ref[1:].partition(ref[0])[0]
    if ref:
        draft.refresh = draft.link(ref, LinkType.REDIRECT, rel="refresh")
