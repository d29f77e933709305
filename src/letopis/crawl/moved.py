"""Where the seeds of a crawl have moved to: a site that answers from another host is crawled there."""

from __future__ import annotations

from collections.abc import Iterable

from letopis.archive import Archive
from letopis.fetch import is_public
from letopis.model import header
from letopis.urls import host as host_of
from letopis.urls import join, parse_user

_MOST_STEPS = 10


def may_move(seed: str, target: str) -> bool:
    """A site of the internet that points into a house is not followed there, though one inside may point to another."""
    return not _is_inside(target) or _is_inside(seed)


def _is_inside(url: str) -> bool:
    """Whether an address names this machine or a private network; what names resolve to is seen when they are asked."""
    name = host_of(url).rpartition("@")[2]
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    literal = name.replace(".", "").isdigit() or ":" in name
    return name == "localhost" or name.endswith(".localhost") or (literal and not is_public(name))


def moved_seeds(archive: Archive, seeds: Iterable[str]) -> tuple[str, ...]:
    """Where redirects led from the seeds when they were last looked at; empty for those that stayed where they are."""
    return tuple(target for seed in seeds for target in _targets(archive, parse_user(seed)))


def _targets(archive: Archive, url: str) -> list[str]:
    found: list[str] = []
    for _ in range(_MOST_STEPS):
        target = _target(archive, url)
        if target is None or target in found or not may_move(url, target):
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
