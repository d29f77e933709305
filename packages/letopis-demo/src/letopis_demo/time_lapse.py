"""The simulated web without a network and without waiting: weeks of a crawl in a minute.

`TimeLapse` is an event loop whose time jumps to the next timer whenever nobody has anything to do, and
`WorldTransport` answers out of a world at the time of that loop. With both, the real crawler runs unchanged.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from datetime import datetime, timedelta

from letopis.model import Failure, FailureKind, Request, Response
from letopis.tuples import NamedTuple
from letopis_demo.server import Clock
from letopis_demo.world import World

_SHORT_PAUSE = 0.5
_ANSWER_SECONDS = 0.05


class TimeLapse(asyncio.SelectorEventLoop):
    """Waits for nothing: a pause is over as soon as nothing else can be done.

    `step` makes its clock coarse: pauses of a second and more take at least so many seconds. Whoever looks about every
    second, as crawlers do, then does so less often, which is where the time of a long simulation would go.
    """

    def __init__(self, start: datetime, step: float = 0.0) -> None:
        self._passed = 0.0
        self._start, self._step = start, step
        super().__init__(_Skipping(self._skip))

    def time(self) -> float:
        """Seconds of the loop's own time."""
        return self._passed

    def now(self) -> datetime:
        """The same as a date."""
        return self._start + timedelta(seconds=self._passed)

    def _skip(self, seconds: float) -> None:
        self._passed += seconds if seconds < _SHORT_PAUSE else max(seconds, self._step)


class _Skipping(selectors.DefaultSelector):
    """Looks for events that are there; where it would wait it tells how long instead."""

    def __init__(self, skip: Callable[[float], None]) -> None:
        super().__init__()
        self._skip = skip

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors.BaseSelector.select`; without a timer it really waits."""
        found = super().select(None if timeout is None else 0)
        if not found and timeout:
            self._skip(timeout)
        return found


class DemoRequest(NamedTuple):
    """One request and when it was made."""

    at: datetime
    host: str
    url: str


class WorldTransport:
    """Answers requests as the world would, after a moment of the running loop's time; `on_request` hears of each."""

    def __init__(
        self, world: World, clock: Clock, on_request: Callable[[DemoRequest], None] = lambda request: None
    ) -> None:
        self._world, self._clock, self._on_request = world, clock, on_request

    async def send(self, request: Request) -> Response:
        """See `letopis.fetch.client.Transport.send`. Every host has an address of its own."""
        host, slash, path = request.url.partition("://")[2].partition("/")
        number = self._world.number(host)
        if number is None:
            failure = Failure(FailureKind.DNS, "no such host in this world")
            return Response(request.url, request.url, 0, (), b"", self._clock(), failure=failure)
        self._on_request(DemoRequest(self._clock(), host, request.url))
        await asyncio.sleep(_ANSWER_SECONDS)
        answer = self._world.answer(host, slash + path, request.headers, self._clock())
        return Response(
            request.url, request.url, answer.status, answer.headers, answer.body, self._clock(), _ANSWER_SECONDS,
            f"127.1.{number // 250}.{1 + number % 250}", wire_bytes=len(answer.body),
        )  # fmt: skip
