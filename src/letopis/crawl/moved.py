"""Where the seeds of a crawl have moved to: a site that answers from another host is crawled there."""

from __future__ import annotations

from collections.abc import Iterable

from letopis.archive import Archive
from letopis.model import header
from letopis.urls import join, parse_user

_MOST_STEPS = 10


def moved_seeds(archive: Archive, seeds: Iterable[str]) -> tuple[str, ...]:
    """Where redirects led from the seeds when they were last looked at; empty for those that stayed where they are."""
    return tuple(target for seed in seeds for target in _targets(archive, parse_user(seed)))


def _targets(archive: Archive, url: str) -> list[str]:
    found: list[str] = []
    for _ in range(_MOST_STEPS):
        target = _target(archive, url)
        if target is None or target in found:
            break
        found.append(target)
        url = target
    return found


def _target(archive: Archive, url: str) -> str | None:
    check = archive.answers.last_check(url)
    if check is None or not 300 <= check.status < 400:
        return None
    location = header(check.headers, "location")
    return join(url, location) if location else None
