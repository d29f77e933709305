"""The robots.txt of every host: fetched when needed, kept in memory, good for a day."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from letopis.archive import Archive
from letopis.fetch import Client, Robots, fetch_robots
from letopis.model import Limits

_IN_MEMORY = 10_000


class RobotsBook:
    """One decision a host; fetching it counts neither for limits nor for the delay."""

    def __init__(self, archive: Archive, client: Client, agent: str, *, obey: bool, private_ok: bool) -> None:
        self._archive = archive
        self._client = client
        self._agent = agent
        self._obey = obey
        self._private_ok = private_ok
        self._known: OrderedDict[str, Robots] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Robots]] = {}

    async def of(self, url: str) -> Robots | None:
        """The rules for a URL's host; None when robots.txt is not obeyed."""
        if not self._obey:
            return None
        return self.known(url) or await self._ask(_origin(url))

    def known(self, url: str) -> Robots | None:
        """The same where nobody has to be asked; None where somebody has."""
        known = self._known.get(_origin(url))
        return known if known is not None and not known.expired(self._archive.clock()) else None

    async def _ask(self, origin: str) -> Robots:
        """Many URLs of one host may wait for the same answer."""
        asking = self._asking.get(origin)
        if asking is None:
            asking = self._asking[origin] = asyncio.ensure_future(self._fetch(origin))
        try:
            return await asking
        finally:
            self._asking.pop(origin, None)

    async def _fetch(self, origin: str) -> Robots:
        found = await fetch_robots(
            self._client, origin, self._agent, self._archive.clock(), limits=Limits(total_seconds=30.0),
            private_ok=self._private_ok,
        )  # fmt: skip
        self._known[origin] = found
        if len(self._known) > _IN_MEMORY:
            self._known.popitem(last=False)
        return found


def _origin(url: str) -> str:
    return url[: url.index("/", 8)]
