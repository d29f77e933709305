"""Who may call what: one table, looked at before anything else of a request."""

from __future__ import annotations

from typing import NamedTuple

from letopis.catalog.accounts import OWN, READ, WRITE

OPEN = 0
"""Needs nobody."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN_PATHS = ("/healthz", "/login", "/setup", "/openapi.json", "/docs")
_OPEN_FOLDERS = ("/static/", "/language/")


class Need(NamedTuple):
    """What a path needs: to be read, and to be written to."""

    path: str
    read: int
    write: int


NEEDS = (
    Need("/api/v1/users", OWN, OWN),
    Need("/api/v1/audit", OWN, OWN),
    Need("/api/v1/tokens", WRITE, WRITE),
    Need("/accounts/users", OWN, OWN),
    Need("/accounts", WRITE, WRITE),
    Need("/welcome", OWN, OWN),
    Need("/settings", READ, OWN),
    Need("/crawl", READ, OWN),
    Need("/api/v1/crawls", READ, OWN),
    Need("/logout", READ, READ),
)
"""Paths, with all below them, that differ from the rule: reading needs READ, anything else WRITE."""


def needed(method: str, path: str) -> int:
    """The permission that a request needs."""
    if path in _OPEN_PATHS or path.startswith(_OPEN_FOLDERS):
        return OPEN
    safe = method in _SAFE
    for need in NEEDS:
        if path == need.path or path.startswith(need.path + "/"):
            return need.read if safe else need.write
    return READ if safe else WRITE
