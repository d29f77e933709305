"""What pages and hosts have taught us about noise, kept between visits.

Profiles of hosts and habits of pages are read from the catalogue when
needed and written back inside the transaction that records the visit.
"""

from __future__ import annotations

from collections import OrderedDict

from letopis.archive import Archive, Recorded
from letopis.catalog import Cursor
from letopis.change import Fingerprint, HostProfile, PageHabits
from letopis.urls import host as host_of

_HOSTS_IN_MEMORY = 1024


class Memory:
    """Bounded: a thousand hosts in memory, the rest in the catalogue. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._profiles: OrderedDict[str, HostProfile] = OrderedDict()
        self._touched: set[str] = set()
        self._habits: dict[str, PageHabits] = {}

    def profile(self, url: str) -> HostProfile:
        """What the pages of this URL's host share."""
        name = host_of(url)
        found = self._profiles.get(name)
        if found is None:
            data = self._archive.catalog.lessons.profile(name)
            found = self._profiles[name] = HostProfile.from_bytes(data) if data else HostProfile()
            self._shrink()
        self._profiles.move_to_end(name)
        return found

    def _shrink(self) -> None:
        for name in list(self._profiles):
            if len(self._profiles) <= _HOSTS_IN_MEMORY:
                break
            if name not in self._touched:
                del self._profiles[name]

    def met(self, url: str, state: Fingerprint, before: Fingerprint | None = None) -> None:
        """A page of the host in its present state, in place of the state that was met before."""
        self.profile(url).observe(state, before)
        self._touched.add(host_of(url))

    def habits(self, resource: int, number: int) -> PageHabits:
        """What this page does at every visit, unchanged visits included."""
        lessons = self._archive.catalog.lessons
        data = lessons.habits(resource)
        habits = PageHabits.from_bytes(data) if data else PageHabits()
        habits.unchanged(lessons.quiet_visits(resource, number))
        return habits

    def learned(self, url: str, habits: PageHabits) -> None:
        """Habits to be written with the visit that taught them."""
        self._habits[url] = habits

    def save(self, cursor: Cursor, done: list[Recorded]) -> None:
        """Writes what was learned; part of the transaction that records `done`."""
        lessons = self._archive.catalog.lessons
        for name in self._touched:
            lessons.set_profile(cursor, name, self._profiles[name].to_bytes())
        for row in done:
            habits = self._habits.pop(row.url, None)
            if habits is not None:
                lessons.set_habits(cursor, row.resource, habits.to_bytes())
        self._touched.clear()
