"""libcurl's multi interface driven by an asyncio loop: no threads, no polling.

libcurl tells which sockets it waits for and when it wants to be woken. The sockets go into one epoll set of our own,
and only that set is given to the loop: a wake-up then serves all sockets that are ready at once, and the task that
waits for a hop goes on without a further turn of the loop.
"""

from __future__ import annotations

import asyncio
import resource
import select
from collections.abc import Callable
from contextvars import Context
from typing import Any, Self

import pycurl

_EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_MOST_IDLE_CONNECTIONS = 1024
"""A crawl returns to hundreds of hosts; connecting to each again took a sixth of the time of a small page."""

OnDone = Callable[[pycurl.Curl, int, str, bool], None]
"""Told once for each handle that ended by itself: the handle, libcurl's code, its words, whether it was the only one.

After the only one nothing more is done here, so whatever `done` does then, even `close`, disturbs nobody.
"""


def idle_connections() -> int:
    """How many connections are kept open: at most a quarter of what this process may open at all."""
    may_open, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_IDLE_CONNECTIONS if may_open < 0 else max(1, min(_MOST_IDLE_CONNECTIONS, may_open // 4))


class CurlMulti:
    """Runs easy handles on the loop that is running when it is made.

    Must be used from that loop's thread only. `done` is called outside of
    libcurl, with the handle already removed, so it may start the next one.
    """

    def __init__(self, done: OnDone) -> None:
        self._loop = asyncio.get_running_loop()
        self._done = done
        self._epoll = select.epoll()
        self._running = 0
        self._starting = False
        self._kick: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._wake_at = 0.0
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, idle_connections())
        self._loop.add_reader(self._epoll.fileno(), self._on_ready)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop it belongs to."""
        return self._loop

    def add(self, easy: pycurl.Curl) -> None:
        """Starts a handle at once: waiting for the next turn of the loop would cost one more of them per request."""
        self._starting = True
        try:
            self._multi.add_handle(easy)
        finally:
            self._starting = False
        self._running += 1
        if self._kick is None:
            self._on_kick()

    def remove(self, easy: pycurl.Curl) -> None:
        """Ends a handle at once; `done` is not called for it."""
        self._multi.remove_handle(easy)
        self._running -= 1

    def close(self) -> None:
        """Closes all connections. Handles must have been removed before."""
        for waiting in (self._kick, self._timer):
            if waiting is not None:
                waiting.cancel()
        self._multi.close()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _on_socket(self, what: int, fd: int, _multi: object, _data: object) -> None:
        """Must not raise: libcurl would never work again. So the kernel's word counts, not our memory of it."""
        if what == pycurl.POLL_REMOVE:
            try:  # noqa: SIM105 - once a page: `suppress` takes longer than the rest
                self._epoll.unregister(fd)
            except OSError:
                pass  # closed already: the kernel has forgotten it
            return
        events = _EVENTS.get(what, 0)
        try:
            self._epoll.register(fd, events)
        except FileExistsError:
            self._epoll.modify(fd, events)

    def _on_timer(self, milliseconds: int) -> None:
        """Remembers when libcurl wants to be woken; a timer that is set for earlier is left alone."""
        if milliseconds < 0:
            self._wake_at = 0.0
        elif milliseconds == 0:
            if self._kick is None and not self._starting:
                self._kick = self._loop.call_soon(self._on_kick)
        else:
            self._wake_at = self._loop.time() + milliseconds / 1000
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            if self._timer_at <= self._wake_at:
                return
            self._timer.cancel()
        self._timer_at = self._wake_at
        self._timer = self._loop.call_at(self._wake_at, self._on_alarm)

    def _on_alarm(self) -> None:
        self._timer = None
        if not self._wake_at:
            return
        if self._loop.time() < self._wake_at:
            self._arm()
            return
        self._wake_at = 0.0
        self._on_kick()
        self._ask_for_timeout()

    def _ask_for_timeout(self) -> None:
        """Libcurl reports a wake-up time once; if the clocks differ slightly, it must be called again."""
        if self._running and self._kick is None and not self._wake_at:
            left = self._multi.timeout()
            if left >= 0:
                self._on_timer(max(1, left))

    def _on_kick(self) -> None:
        self._kick = None
        _, running = self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect(running)

    def _on_ready(self) -> None:
        running = self._running
        for fd, events in self._epoll.poll(0):
            mask = pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0
            if events & ~select.EPOLLOUT:
                mask |= pycurl.CSELECT_IN
            _, running = self._multi.socket_action(fd, mask)
        self._collect(running)

    def _collect(self, running: int) -> None:
        """Takes the finished handles out and hands them over."""
        if running == self._running:
            return
        ended: list[tuple[pycurl.Curl, int, str]] = []
        more = 1
        while more:
            more, good, bad = self._multi.info_read()
            ended += [(easy, 0, "") for easy in good]
            ended += bad
        alone = len(ended) == 1
        for easy, code, words in ended:
            self.remove(easy)
            self._done(easy, code, words, alone)


class TransferWaiter(asyncio.Future[tuple[int, str]]):
    """A future whose one waiting task goes on inside `finish`, where asyncio would let it wait for the next turn.

    A page after the other from one host is one wake-up of the loop a page then, not two. Only one task waits for a hop.
    """

    _wake: Callable[[Any], object] | None = None
    _context: Context | None = None

    def add_done_callback(self, fn: Callable[[Self], object], /, *, context: Context | None = None) -> None:
        """Keeps the first callback here, which is that of the task; further ones are asyncio's matter."""
        if self._wake is None and not self.done():
            self._wake, self._context = fn, context
        else:
            super().add_done_callback(fn, context=context)

    def finish(self, code: int, words: str, *, at_once: bool) -> None:
        """Reports the result of libcurl; harmless if nothing waits any more.

        With `at_once` the task goes on before this returns and may do
        anything, unless another task is at work: then in the next turn.
        """
        if not self.done():
            self.set_result((code, words))
            self._go_on(at_once and asyncio.current_task(self.get_loop()) is None)

    def cancel(self, msg: Any | None = None) -> bool:
        """As any future: the task hears of it in the next turn."""
        cancelled = super().cancel(msg)
        if cancelled:
            self._go_on(False)
        return cancelled

    def _go_on(self, at_once: bool) -> None:
        wake, context, self._wake = self._wake, self._context, None
        if wake is None:
            return
        if at_once and context is not None:
            context.run(wake, self)
        else:
            self.get_loop().call_soon(wake, self, context=context)
