"""Pages that are new or changed: read, compared with the version before, and learned from.

Checks that find nothing new never come here, so the parsers and the rules
of comparison behind this module are loaded at the first page that needs them.
"""

from __future__ import annotations

from typing import Literal

from letopis import extract
from letopis.archive import Archive, Identity, Recorded
from letopis.catalog import Cursor
from letopis.change import Fingerprint, PageHabits, fingerprint
from letopis.model import Change, Headers, Observation, Outcome, Page, Response
from letopis.visit.known import Known
from letopis.visit.memory import Memory

_ENOUGH_PAGES, _SAMPLED = 64, 8
_PLENTY_PAGES, _SELDOM = 128, 64


class Reader:
    """Reads bodies as pages and judges how much of them is news. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._memory = Memory(archive)

    def read(self, response: Response, known: Known | None) -> Observation:
        """A first or a changed version, with what changed."""
        page = _page(response.body, response.final_url, response.headers)
        if known is None:
            self._memory.met(response.url, fingerprint(page))
            return Observation(response, Outcome.NEW, page)
        return Observation(response, Outcome.CHANGED, page, self._compare(response.url, page, known))

    def learns_from(self, url: str, identity: Identity) -> bool:
        """Whether a new page is in the sample that teaches what its host's pages share.

        These are the first, then every eighth, and one of 64 when twice as many are known. A block is
        boilerplate from a share of 30 % on, which so many pages tell as well as all of them.
        """
        pages = self._memory.profile(url).pages
        return pages < _ENOUGH_PAGES or identity.sha1[0] % (_SAMPLED if pages < _PLENTY_PAGES else _SELDOM) == 0

    def skim(self, response: Response) -> Page:
        """The links of a page alone."""
        return extract.page(response.body, response.final_url, response.headers, detect_language=False, mode="skim")

    def leads(self, response: Response) -> Page:
        """The links of a page with their texts, and its title: all that the index of links asks of it."""
        return extract.page(response.body, response.final_url, response.headers, detect_language=False, mode="basic")

    def again(self, body: bytes, url: str, headers: Headers, *, skim: bool) -> Page:
        """A page whose bytes are known already, no further than its links where nothing else is asked."""
        mode: Literal["skim", "full"] = "skim" if skim else "full"
        return extract.page(body, url, headers, detect_language=False, mode=mode)

    def save(self, cursor: Cursor, done: list[Recorded]) -> None:
        """Writes what was learned; part of the transaction that records `done`."""
        self._memory.save(cursor, done)

    def _compare(self, url: str, page: Page, known: Known) -> Change:
        """Against the page's own last version; what recurs on the host or at every visit is noise."""
        # Loaded late as well: a crawl that meets new pages compares none.
        from letopis.change import compare  # noqa: PLC0415

        before = self._archive.answers.by_id(known.version)
        old = fingerprint(_page(before.body, known.final_url, before.headers))
        new = fingerprint(page)
        habits = self._memory.habits(known.resource, known.number)
        profile = self._memory.profile(url)
        change = compare(new, [old], profile, self._archive.settings.change, habits=habits)
        self._learn(url, habits, old, new)
        return change

    def _learn(self, url: str, habits: PageHabits, old: Fingerprint, new: Fingerprint) -> None:
        habits.observe(old, new)
        self._memory.learned(url, habits)
        self._memory.met(url, new, old)


def _page(body: bytes, url: str, headers: Headers) -> Page:
    """The page without a guess at its language, which costs ten times the rest; search makes that later."""
    return extract.page(body, url, headers, detect_language=False)
