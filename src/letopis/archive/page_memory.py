"""What the record knows about pages before they are checked again, and what is learned from checks.

The newest versions with their headers; the noise that pages of a host share; what a page does at every visit; digest
fields of hosts that were once wrong. What is learned from a check is written in the transaction that records it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from letopis.archive.archive import Archive
from letopis.archive.records import RecordedCapture
from letopis.catalog import Cursor
from letopis.catalog.versions import newest_versions
from letopis.model import Headers
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of

RecordExtension = Callable[[Cursor, list[RecordedCapture]], None]
"""Writes rows that belong to a batch of checks, in the transaction of `Archive.record`."""


class CurrentVersion(NamedTuple):
    """The newest version of a URL: its identity and its header."""

    resource: int
    version: int
    number: int
    sha1: bytes
    raw_bytes: int
    headers: Headers
    final_url: str


def newest_versions_of(archive: Archive, urls: Sequence[str]) -> dict[str, CurrentVersion]:
    """The newest versions of those of many URLs that have one, in a few statements."""
    read = archive.catalog.heads.read
    found = {}
    for url, row in newest_versions(archive.catalog.database, urls).items():
        final = (archive.answers.final_url(row.extra) if row.extra else "") or row.url
        headers = read(bytes(row.head))
        found[url] = CurrentVersion(
            row.resource, row.version, row.number, bytes(row.sha1), row.raw_bytes, headers, final
        )
    return found


def content_of_version(archive: Archive, version: int | None) -> int | None:
    """The id of a version's content, by the version's; versions with equal bodies share one."""
    row = archive.catalog.versions.by_id(version) if version is not None else None
    return row.content if row else None


class PageMemory:
    """What was learned about hosts and pages from earlier checks; what new ones add waits here to be written."""

    def __init__(self, archive: Archive) -> None:
        self._rows = archive.catalog.noise_profiles
        self._profiles: dict[str, bytes] = {}
        self._habits: dict[str, bytes] = {}
        self._untrusted: dict[str, set[str]] = {}

    def profile(self, host: str) -> bytes:
        """What the pages of a host have in common; empty if nothing is known."""
        return self._rows.profile(host)

    def profiles(self, hosts: Sequence[str]) -> dict[str, bytes]:
        """The same for many hosts at once, without those that are unknown."""
        return self._rows.profiles(hosts)

    def habits(self, resource: int) -> bytes:
        """What changes on a page at every visit; empty if nothing is known."""
        return self._rows.habits(resource)

    def quiet_visits(self, resource: int, number: int) -> int:
        """Checks that found version `number` of a page unchanged."""
        return self._rows.quiet_visits(resource, number)

    def untrusted_digests(self, host: str) -> frozenset[str]:
        """Digest fields (lower case) that the host once sent wrongly."""
        return self._rows.distrusted(host)

    def distrust(self, host: str, fields: Iterable[str]) -> None:
        """Records that these digest fields of a host are not trusted again."""
        self._untrusted.setdefault(host, set()).update(fields)

    def learn(self, profiles: Mapping[str, bytes], habits: Mapping[str, bytes]) -> None:
        """Profiles by host and habits by URL, as they are after some checks."""
        self._profiles.update(profiles)
        self._habits.update(habits)

    def write(self, cursor: Cursor, done: list[RecordedCapture]) -> None:
        """For `Archive.record`: what was learned about the hosts and pages of these checks, together with the checks.

        What was learned about other hosts waits: they may belong to another agent by now.
        """
        hosts = {host_of(row.url) for row in done} if self._untrusted or self._profiles else set[str]()
        for host in hosts & self._untrusted.keys():
            fields = self._untrusted.pop(host)
            self._rows.distrust(cursor, host, self._rows.distrusted(host) | fields)
        if learned := [(self._profiles.pop(host), host) for host in hosts & self._profiles.keys()]:
            self._rows.set_profiles(cursor, learned)
        for row in done:
            habits = self._habits.pop(row.url, None)
            if habits is not None:
                self._rows.set_habits(cursor, row.resource, habits)


def in_one_transaction(*extensions: RecordExtension | None) -> RecordExtension:
    """Several as one, in their order; those that are None are left out."""

    def write(cursor: Cursor, done: list[RecordedCapture]) -> None:
        for extension in extensions:
            if extension is not None:
                extension(cursor, done)

    return write
