"""Connections of clients within bounds of time and number: one that is slow keeps nobody else from being served.

A header has to come within seconds and within a bound of bytes, a body and its reader have to move on, and when
descriptors run short those who have asked for nothing yet are let go first. So whoever asks at once is always answered,
the health check among them.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from letopis.api.sessions import network_of
from letopis.tuples import NamedTuple


class ConnectionTimeouts(NamedTuple):
    """Seconds that clients have.

    `header`: from the connection, or the first byte of a further request, to the end of its header. `piece`: to the
    next piece of a body, or until they read on. `body`: for a whole body, however it comes.
    """

    header: float = 15.0
    piece: float = 30.0
    body: float = 600.0


USUAL = ConnectionTimeouts()

MAX_HEADER = 64 * 1024
"""Most bytes of a header, and of whatever stands around the pieces of a body: all of it is kept in memory."""
_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-type: text/plain\r\n"
    b"content-length: 22\r\n\r\nthe header is too long"
)

RESERVED_DESCRIPTORS = 256
"""Left to packs, catalogues, indexes and processes."""
_MOST_CONNECTIONS = 16_384
_FEWEST_CONNECTIONS = 64


def raise_descriptor_limit() -> int:
    """Takes as many descriptors as the system allows; how many connections fit in."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_CONNECTIONS + RESERVED_DESCRIPTORS
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    room = wanted if soft == resource.RLIM_INFINITY else soft
    return max(_FEWEST_CONNECTIONS, min(room - RESERVED_DESCRIPTORS, _MOST_CONNECTIONS))


class ConnectionPool:
    """All connections of one server: `most` of them, no more than half from one address that is no proxy of ours."""

    def __init__(
        self, most: int, patience: ConnectionTimeouts = USUAL, is_proxy: Callable[[str], bool] = lambda address: False
    ) -> None:
        self.patience = patience
        self._most = most
        self._is_proxy = is_proxy
        self._open: Counter[str] = Counter()
        self._waiting: dict[BoundedConnection, None] = {}
        """Those with no request under way, the oldest first."""

    def add(self, connection: BoundedConnection) -> bool:
        """Makes room for one more, at the cost of whoever waits longest; False when all others are at work."""
        network = connection.network
        if self._open[network] >= max(1, self._most // 2) and not self._is_proxy(network):
            room = self._drop_waiting(network)
        else:
            room = self._open.total() < self._most or self._drop_waiting()
        if room:
            self._open[network] += 1
            self._waiting[connection] = None
        return room

    def remove(self, connection: BoundedConnection) -> None:
        """It is closed."""
        self._waiting.pop(connection, None)
        self._open[connection.network] -= 1
        if not self._open[connection.network]:
            del self._open[connection.network]

    def works(self, connection: BoundedConnection) -> None:
        """A request of it is under way."""
        self._waiting.pop(connection, None)

    def waits(self, connection: BoundedConnection) -> None:
        """It was answered."""
        self._waiting[connection] = None

    def _drop_waiting(self, network: str | None = None) -> bool:
        """Closes the one that waits longest, of all or of one address."""
        found = next((one for one in self._waiting if network in (None, one.network)), None)
        if found is not None:
            found.drop()
        return found is not None


class BoundedConnection(HttpToolsProtocol):
    """One connection that is closed when its client takes too long."""

    def __init__(self, pool: ConnectionPool, **server: Any) -> None:
        super().__init__(**server)
        self._pool = pool
        self._counted = False
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._in_body = False
        self._unread = 0
        self.network = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected, and is told so or let go."""
        super().connection_made(transport)
        self.network = network_of(self.client[0]) if self.client else ""
        self._counted = self._pool.add(self)
        if self._counted:
            self._expect(self._pool.patience.header)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed by either side."""
        self._expect(None)
        if self._counted:
            self._counted = False
            self._pool.remove(self)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Closes it now; what it takes up is free when this returns, or soon after."""
        if self._counted:
            self._counted = False
            self._pool.remove(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of a header or of a body."""
        if self._in_body:
            self._expect(min(self._pool.patience.piece, self._deadline - self.loop.time()))
        elif self._timer is None and self._is_idle:
            self._expect(self._pool.patience.header)
        self._unread += len(data)
        super().data_received(data)
        if self._unread > MAX_HEADER and not self.transport.is_closing():
            self.transport.write(_TOO_LONG if self._is_idle else b"")
            self.transport.close()

    @property
    def _is_idle(self) -> bool:
        """Whether no answer is under way, into which nothing may be written."""
        return self.cycle is None or self.cycle.response_complete

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._unread = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """The request begins; its body may follow."""
        self._unread = 0
        if self._counted:
            self._pool.works(self)
        self._in_body = True
        self._deadline = self.loop.time() + self._pool.patience.body
        self._expect(self._pool.patience.piece)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is here whole: now it is our turn."""
        self._in_body = False
        self._unread = 0
        self._expect(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is sent; the next request may come."""
        super().on_response_complete()
        if self._counted and not self.pipeline:
            self._pool.waits(self)

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._expect(self._pool.patience.piece)

    def resume_writing(self) -> None:
        """It reads on."""
        self._expect(None)
        super().resume_writing()

    def _expect(self, seconds: float | None) -> None:
        """Something has to happen within so many seconds; None: nothing has to."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(max(0.0, seconds), self._expired)

    def _expired(self) -> None:
        self._timer = None
        if self._in_body and self.flow.read_paused:
            self._expect(self._pool.patience.piece)  # it is we who do not read
        else:
            self.transport.abort()
