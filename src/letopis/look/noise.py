"""New and changed pages: they are parsed, compared with the previous version, and used to learn noise.

Profiles of hosts and habits of pages are read from the record when needed and written back in the transaction that
records the visit. Checks that find nothing new do not use this module, so the parsers and the rules of comparison are
loaded at the first page that needs them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from letopis import extract
from letopis.archive import Archive, Identity
from letopis.archive.page_memory import PageMemory
from letopis.change.fingerprints import Fingerprint, fingerprint
from letopis.change.profiles import HostProfile, PageHabits
from letopis.errors import Damaged, NotFound
from letopis.lazy import lazy
from letopis.look.known import KnownVersion
from letopis.model import Change, Headers, Observation, Outcome, Page, Response
from letopis.urls import host as host_of

if TYPE_CHECKING:
    from letopis.archive import mute_rules
    from letopis.change import verdict
else:  # a crawl that meets new pages compares none
    mute_rules = lazy("letopis.archive.mute_rules")
    verdict = lazy("letopis.change.verdict")

_HOSTS_IN_MEMORY = 1024


class NoiseMemory:
    """Bounded: a thousand hosts in memory, the rest in the record. For one thread."""

    def __init__(self, memory: PageMemory) -> None:
        self._memory = memory
        self._profiles: OrderedDict[str, HostProfile] = OrderedDict()
        self._touched: set[str] = set()
        self._habits: dict[str, PageHabits] = {}

    def expect(self, urls: Iterable[str]) -> None:
        """Reads the profiles of the hosts of these pages together: a crawl may have a page of each of many hosts."""
        names = set(map(host_of, urls))
        for name in names & self._profiles.keys():
            self._profiles.move_to_end(name)
        missing = sorted(names - self._profiles.keys())
        found = self._memory.profiles(missing)
        for name in missing:
            self._add(name, found.get(name, b""))

    def profile(self, url: str) -> HostProfile:
        """What the pages of the host of this URL have in common."""
        name = host_of(url)
        found = self._profiles.get(name)
        if found is None:
            found = self._add(name, self._memory.profile(name))
        self._profiles.move_to_end(name)
        return found

    def _add(self, name: str, data: bytes) -> HostProfile:
        added = self._profiles[name] = HostProfile.from_bytes(data) if data else HostProfile()
        self._shrink()
        return added

    def _shrink(self) -> None:
        """Removes one whose profile is in the record: those used last are at the end, and few are not recorded yet."""
        if len(self._profiles) > _HOSTS_IN_MEMORY:
            oldest = next((name for name in self._profiles if name not in self._touched), None)
            if oldest is not None:
                del self._profiles[oldest]

    def met(self, url: str, state: Fingerprint, before: Fingerprint | None = None) -> None:
        """Replaces the state of a page of the host with its present one."""
        self.profile(url).observe(state, before)
        self._touched.add(host_of(url))

    def habits(self, resource: int, number: int) -> PageHabits:
        """What changes on this page at every visit, unchanged visits included."""
        data = self._memory.habits(resource)
        habits = PageHabits.from_bytes(data) if data else PageHabits()
        habits.unchanged(self._memory.quiet_visits(resource, number))
        return habits

    def learned(self, url: str, habits: PageHabits) -> None:
        """Habits to be written with the visit in which they were learned."""
        self._habits[url] = habits

    def hand_over(self) -> None:
        """What was learned is written with the next record."""
        profiles = {name: self._profiles[name].to_bytes() for name in self._touched}
        self._memory.learn(profiles, {url: habits.to_bytes() for url, habits in self._habits.items()})
        self._touched.clear()
        self._habits.clear()


_ENOUGH_PAGES, _SAMPLED = 64, 8
_PLENTY_PAGES, _SELDOM = 128, 64


class PageReader:
    """Parses bodies as pages and judges how much of them is news. For one thread."""

    def __init__(self, archive: Archive, memory: PageMemory) -> None:
        self._archive = archive
        self._noise = NoiseMemory(memory)

    def read(self, response: Response, known: KnownVersion | None, identity: Identity) -> Observation:
        """A first or a changed version, with what changed; `identity` is that of its bytes."""
        page = _read_page(response.body, response.final_url, response.headers)
        if known is None:
            self._noise.met(response.url, fingerprint(page))
            return Observation(response, Outcome.NEW, page, identity=identity)
        change = self._compare(response.url, page, known)
        return Observation(response, Outcome.CHANGED, page, change, identity=identity)

    def expect(self, urls: Iterable[str]) -> None:
        """These pages are judged next: what is known about their hosts is read together."""
        self._noise.expect(urls)

    def learns_from(self, url: str, identity: Identity) -> bool:
        """Whether a new page is in the sample that teaches what its host's pages share.

        These are the first ones, then every eighth, and one of 64 when twice as many are known. A block is boilerplate
        from a share of 30 % on, and such a sample is enough to estimate that.
        """
        pages = self._noise.profile(url).pages
        return pages < _ENOUGH_PAGES or identity.sha1[0] % (_SAMPLED if pages < _PLENTY_PAGES else _SELDOM) == 0

    def skim(self, response: Response) -> Page:
        """The links of a page alone."""
        return extract.read_page(
            response.body, response.final_url, response.headers, detect_language=False, mode="skim"
        )

    def leads(self, response: Response) -> Page:
        """The links of a page with their texts, and its title: all that the index of links needs."""
        return extract.read_page(
            response.body, response.final_url, response.headers, detect_language=False, mode="basic"
        )

    def again(self, body: bytes, url: str, headers: Headers, *, skim: bool) -> Page:
        """A page whose bytes are already known, parsed only up to its links if nothing else is needed."""
        mode: Literal["skim", "full"] = "skim" if skim else "full"
        return extract.read_page(body, url, headers, detect_language=False, mode=mode)

    def hand_over(self) -> None:
        """What was learned is written with the next record."""
        self._noise.hand_over()

    def _compare(self, url: str, page: Page, known: KnownVersion) -> Change:
        """Compares with the last version of the same page; what recurs on the host or at every visit is noise."""
        try:
            before = self._archive.answers.by_id(known.version)
        except (Damaged, NotFound):  # `verify` reports it; what the page is now is recorded all the same
            return verdict.compare(page, [])
        old = _read_page(before.body, known.final_url, before.headers)
        habits = self._noise.habits(known.resource, known.number)
        # Pages, not fingerprints: links and long paragraphs need details that fingerprints omit.
        settings, rules = self._archive.settings.change, mute_rules.mute_rules_of(self._archive, url)
        change = verdict.compare(page, [old], self._noise.profile(url), settings, habits=habits, rules=rules)
        self._learn(url, habits, fingerprint(old), fingerprint(page))
        return change

    def _learn(self, url: str, habits: PageHabits, old: Fingerprint, new: Fingerprint) -> None:
        habits.observe(old, new)
        self._noise.learned(url, habits)
        self._noise.met(url, new, old)


def _read_page(body: bytes, url: str, headers: Headers) -> Page:
    """The page without language detection, which costs ten times as much as the rest; search does that later."""
    return extract.read_page(body, url, headers, detect_language=False)
