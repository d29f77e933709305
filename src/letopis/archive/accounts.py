"""The accounts of an archive: users, tokens, projects, and who is signed in."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from heapq import merge

from letopis.archive.activity import LatestVersion, latest_versions_of
from letopis.archive.archive import Archive, of_archive
from letopis.catalog import ResourceRow
from letopis.catalog.accounts import HASHINGS, Accounts, Project, ProjectPart, Projects, User
from letopis.catalog.invitations import Invitation, Invitations
from letopis.catalog.sessions import SecondFactors, SessionRows, authenticator_uri, code_at, secret_text
from letopis.model.rights import OWN
from letopis.urls import host as host_of
from letopis.urls.scope import Scope, ScopeKind

__all__ = [
    "HASHINGS", "LOGIN_TRIES", "LOGIN_WINDOW", "Accounts", "Invitation", "LoginThrottle", "Project", "ProjectPart",
    "SecondFactors", "SessionRows", "User", "accounts_of", "authenticator_uri", "code_at", "invitations_of",
    "is_in_parts", "latest_of_project", "old_password_tries", "project_pages", "project_part",
    "projects_of", "second_factors_of", "secret_text", "session_rows_of", "wants_second_factor",
]  # fmt: skip


accounts_of = of_archive(Accounts)
"""Its users and their tokens."""
session_rows_of = of_archive(SessionRows)
"""Who is signed in."""
invitations_of = of_archive(Invitations)
"""Links by which people make their own accounts."""
second_factors_of = of_archive(SecondFactors)
"""Who also signs in with a code of an authenticator app."""


def wants_second_factor(archive: Archive, user: User) -> bool:
    """Whether the owner of the service asks a user for a second factor."""
    who = archive.settings.serve.two_factor
    return who == "everybody" or (who == "owners" and bool(user.mask & OWN))


LOGIN_TRIES = 5
LOGIN_WINDOW = 300.0
_MOST_KEYS = 10_000


class LoginThrottle:
    """Counts tries by key, each before its password is checked; after `tries` within five minutes further ones wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, tries: int = LOGIN_TRIES) -> None:
        self._clock = clock
        self._tries = tries
        self._begun: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def begin(self, *keys: str) -> int:
        """Counts a try for every key and answers 0; or the seconds until one is allowed, and counts nothing."""
        with self._lock:
            wait = max(self._wait(key) for key in keys)
            if not wait:
                self._make_room()
                for key in keys:
                    # The keys tried last are at the end.
                    tries = self._begun.pop(key, None) or deque(maxlen=self._tries)
                    tries.append(self._clock())
                    self._begun[key] = tries
            return wait

    def _wait(self, key: str) -> int:
        tries = self._begun.get(key)
        if tries is None or len(tries) < self._tries:
            return 0
        over = tries[0] + LOGIN_WINDOW
        return int(over - self._clock()) + 1 if over > self._clock() else 0

    def forgive(self, key: str) -> None:
        """After the right password: earlier tries are forgotten."""
        with self._lock:
            self._begun.pop(key, None)

    def give_back(self, *keys: str) -> None:
        """The last try does not count: it was right, or it was not checked."""
        with self._lock:
            for key in keys:
                tries = self._begun.get(key)
                if tries:
                    tries.pop()
                if not tries:
                    self._begun.pop(key, None)

    def _make_room(self) -> None:
        horizon = self._clock() - LOGIN_WINDOW
        while self._begun:
            oldest = next(iter(self._begun))
            if self._begun[oldest][-1] > horizon and len(self._begun) <= _MOST_KEYS:
                return
            del self._begun[oldest]


def old_password_tries(archive: Archive) -> LoginThrottle:
    """The counter of password tries by users who are signed in; for `Archive.attached`."""
    return LoginThrottle()


projects_of = of_archive(Projects)
"""Its named sets of pages."""


def project_part(kind: str, name: str, scope: Scope) -> ProjectPart:
    """A part of a project: everything of a scope that is archived, now and later."""
    return ProjectPart(kind, name, json.dumps([scope.kind, scope.seeds, scope.include, scope.exclude]))


def _scopes(project: Project) -> list[Scope]:
    rows = [json.loads(part.reach) for part in project.parts]
    return [Scope(ScopeKind(kind), *map(tuple, others)) for kind, *others in rows]


def is_in_parts(project: Project) -> Callable[[str], bool]:
    """A function that decides whether a URL belongs to a part of a project."""
    scopes = _scopes(project)
    return lambda url: any(scope.allows(url) for scope in scopes)


def project_pages(archive: Archive, project: Project) -> Iterator[ResourceRow]:
    """Its pages that were ever checked, each once, in the order in which they were first seen."""
    found = (archive.catalog.resources.find(url) for url in project.urls)
    listed = sorted(row for row in found if row is not None and row.checked is not None)
    last = 0
    for row in merge(listed, _part_pages(archive, _scopes(project)), key=lambda row: row.id):
        if row.id != last:
            yield row
        last = row.id


def latest_of_project(archive: Archive, project: Project, limit: int) -> list[LatestVersion]:
    """The latest versions of its pages, the newest first."""
    latest = latest_versions_of(archive)
    found = latest.of_pages(project.urls, limit)
    if project.parts:
        found += latest.that_fit(is_in_parts(project), limit)
    return sorted(dict.fromkeys(found), key=lambda version: (version.time, version.id), reverse=True)[:limit]


def _part_pages(archive: Archive, scopes: list[Scope]) -> Iterator[ResourceRow]:
    """What is archived of some scopes; pages of one host are searched only there."""
    wide = any(scope.kind in (ScopeKind.DOMAIN, ScopeKind.ANY) for scope in scopes)
    hosts = {host_of(seed) for scope in scopes for seed in scope.seeds}
    resources = archive.catalog.resources
    if not scopes:
        return iter(())
    rows = resources.of_host(hosts.pop()) if len(hosts) == 1 and not wide else resources.all()
    return (row for row in rows if any(scope.allows(row.url) for scope in scopes))
