"""An archive of the simulated web with all that its pages need: every link followed, twice, without a network."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlsplit

from letopis import extract
from letopis.archive import Archive, NewCapture
from letopis.model import Outcome, header, to_millis
from letopis.urls import join
from letopis_demo import World

MOST = 120


def walked_world() -> World:
    return World(seed=4, hosts=2, pages_per_host=8, span=timedelta(days=6))


def walk_twice(archive: Archive, world: World) -> None:
    """At the beginning of the world and three days later."""
    for moment in (world.start, world.start + timedelta(days=3)):
        archive.commit(list(_walk(world, moment).values()))


def _walk(world: World, moment: datetime) -> dict[str, NewCapture]:
    waiting = [world.url(host, 0) for host in range(len(world.hosts))]
    found: dict[str, NewCapture] = {}
    while waiting and len(found) < MOST:
        url = waiting.pop(0)
        if url in found or urlsplit(url).netloc not in world.hosts:
            continue
        found[url] = _look(world, url, moment + timedelta(seconds=len(found)))
        waiting += _targets(found[url])
    return found


def _look(world: World, url: str, moment: datetime) -> NewCapture:
    parts = urlsplit(url)
    answer = world.answer(parts.netloc, parts.path + (f"?{parts.query}" if parts.query else ""), (), moment)
    good = answer.status == 200
    outcome = Outcome.NEW if good else Outcome.UNAVAILABLE if answer.status >= 400 else Outcome.UNCHANGED
    return NewCapture(
        url, to_millis(moment), answer.status, tuple(answer.headers), answer.body, outcome, versioned=good, dated=True
    )


def _targets(look: NewCapture) -> list[str]:
    location = header(look.headers, "location")
    if location:
        return [target for target in [join(look.url, location)] if target]
    return [link.target for link in extract.read_page(look.body or b"", look.url, look.headers).links]
