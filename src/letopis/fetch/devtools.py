"""A Chromium of our own, driven by the pipe of its DevTools protocol: JSON messages that a zero byte ends.

The browser lives in a throw-away folder and in a group of processes of its own, which both are gone after `close`,
however it ended. Whoever waits for an answer gets one or a DevtoolsError: nobody waits for a browser that is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

MOST_BYTES = 256 * 1024 * 1024
"""Of one message: a page of the largest size with every byte escaped, or a picture."""
_START_SECONDS = 60.0
_FIRST_FREE = 10
"""Descriptors from here on do not collide when 3 and 4 are given to the browser."""
_NUMBER = re.compile(rb'\{"id":(\d+)')
_TRIES = 50
_SHELL = ("/bin/sh", "-c", '"$@"; rm -rf -- "$0"')
"""Removes the folder if the browser ends because this process was killed: it ends when the pipe is closed."""

GONE = "Inspector.detached"
"""The event of a session that ends, also where the browser did not come to say so."""
Parameters = Mapping[str, object]
EventHandler = Callable[[dict[str, Any]], None]


class DevtoolsError(Exception):
    """The browser refused a command, could not carry it out, or is gone."""


class MessageReader:
    """Cuts a stream of bytes into messages; one that is too large comes as its beginning, and as such. Pure."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Messages that end in these bytes, each with whether it is whole."""
        *ends, rest = data.split(b"\0")
        for end in ends:
            self._keep(end)
            yield b"".join(self._parts), self._size <= self._most
            self._parts, self._size = [], 0
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        """No more than allowed stays in memory, however long the message gets."""
        if part and self._size <= self._most:
            self._parts.append(part[: self._most - self._size])
        self._size += len(part)


class DevtoolsSession:
    """Commands to one target of the browser, and its events; to the browser itself where `id` is empty."""

    def __init__(self, devtools: Devtools, id: str) -> None:
        self.id = id
        self._devtools = devtools
        self._handlers: dict[str, EventHandler] = {}

    async def send(self, method: str, parameters: Parameters | None = None) -> dict[str, Any]:
        """The answer to a command, or DevtoolsError."""
        return await self._devtools.ask(self, method, parameters)

    def post(self, method: str, parameters: Parameters | None = None) -> None:
        """A command without waiting for its answer; commands of a session are executed in their order."""
        self._devtools.write(self, method, parameters)

    def on(self, method: str, handler: EventHandler) -> None:
        """Has an event handled, by one handler each, which must not wait and must not raise."""
        self._handlers[method] = handler

    def handle(self, method: str, parameters: dict[str, Any]) -> None:
        """An event came."""
        handler = self._handlers.get(method)
        if handler is not None:
            handler(parameters)


class Devtools(asyncio.Protocol):
    """One running browser. For one loop; `close` ends it with all its processes and removes its folder."""

    def __init__(self, pid: int, folder: Path, most: int) -> None:
        self.pid = pid
        self.folder = folder
        self.browser = DevtoolsSession(self, "")
        self._reader = MessageReader(most)
        self._sessions = {"": self.browser}
        self._waiting: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        self._last = 0
        self._transport: asyncio.WriteTransport | None = None
        self._lost = ""
        # Also if it is never closed: at the latest when Python ends.
        self._end = weakref.finalize(self, _end, pid, folder, os.getpid())

    @classmethod
    async def start(cls, command: Sequence[str], most: int = MOST_BYTES) -> Devtools:
        """A browser that listens, or DevtoolsError with its last words."""
        with tempfile.TemporaryFile() as errors:
            devtools, pipe = _started(cls, command, most, errors.fileno())
            try:
                await asyncio.get_running_loop().create_unix_connection(lambda: devtools, sock=pipe)
                async with asyncio.timeout(_START_SECONDS):
                    await devtools.browser.send("Browser.getVersion")
            except BaseException as error:
                await devtools.close()
                if isinstance(error, DevtoolsError | TimeoutError):
                    errors.seek(0)
                    raise DevtoolsError(_last_words(errors.read()) or str(error) or "it does not answer") from None
                raise
        return devtools

    def session(self, id: str) -> DevtoolsSession:
        """The session of a target that was attached to."""
        return self._sessions.setdefault(id, DevtoolsSession(self, id))

    async def ask(self, session: DevtoolsSession, method: str, parameters: Parameters | None) -> dict[str, Any]:
        """Sends a command and waits for its answer."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        number = self.write(session, method, parameters)
        if self._lost:
            raise DevtoolsError(self._lost)
        if session.id not in self._sessions:
            raise DevtoolsError("the page is gone")
        self._waiting[number] = (session.id, answer)
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    def write(self, session: DevtoolsSession, method: str, parameters: Parameters | None) -> int:
        """Sends a command and returns its number."""
        self._last += 1
        message: dict[str, object] = {"id": self._last, "method": method, "params": parameters or {}}
        if session.id:
            message["sessionId"] = session.id
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(json.dumps(message).encode() + b"\0")
        return self._last

    async def close(self) -> None:
        """Ends the browser, also if this is cancelled; it has nothing to save, so it is killed."""
        if self._transport is not None:
            self._transport.abort()
        self._lose("the browser was closed")
        await asyncio.shield(asyncio.to_thread(self._end))

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The pipe is open."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's are of no class of asyncio

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        for message, is_whole in self._reader.feed(data):
            if is_whole:
                self._take(json.loads(message))
            elif found := _NUMBER.match(message):
                self._answer(int(found[1]), {"error": {"message": "the answer of the browser is too large"}})

    def connection_lost(self, error: Exception | None) -> None:
        """The browser is gone."""
        self._lose("the browser ended")

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answer(message["id"], message)
            return
        method, parameters = message["method"], message.get("params", {})
        session = self._sessions.get(message.get("sessionId", ""))
        if session is not None:
            session.handle(method, parameters)
        if method == "Target.detachedFromTarget":
            self._forget(parameters["sessionId"])

    def _answer(self, number: int, message: dict[str, Any]) -> None:
        _, answer = self._waiting.pop(number, ("", None))
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(DevtoolsError(str(message["error"].get("message", "refused"))))
        else:
            answer.set_result(message.get("result", {}))

    def _forget(self, id: str) -> None:
        """A target is gone: it will send no answers."""
        session = self._sessions.pop(id, None)
        if session is not None:
            session.handle(GONE, {})
        self._fail("the page is gone", [number for number, (session, _) in self._waiting.items() if session == id])

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        self._fail(self._lost, list(self._waiting))
        for id in [id for id in self._sessions if id]:
            self._forget(id)

    def _fail(self, why: str, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._answer(number, {"error": {"message": why}})


def _started(made: type[Devtools], command: Sequence[str], most: int, errors: int) -> tuple[Devtools, socket.socket]:
    """A browser that has begun to start, with our end of its pipe."""
    folder = Path(tempfile.mkdtemp(prefix="letopis-chromium-"))
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            return made(_spawned(command, folder, theirs.fileno(), errors), folder, most), ours
    except BaseException as error:
        ours.close()
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise DevtoolsError(error.strerror or str(error)) from None
        raise


def _spawned(command: Sequence[str], folder: Path, pipe: int, errors: int) -> int:
    """Starts the browser as the leader of a new process group, which a Ctrl-C for Letopis does not reach."""
    words = [*_SHELL, str(folder), *command, "--remote-debugging-pipe", f"--user-data-dir={folder}"]
    end = fcntl.fcntl(pipe, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    try:
        return os.posix_spawn(
            words[0], words, {**os.environ, "TMPDIR": str(folder)}, setpgroup=0,
            setsigdef=(signal.SIGINT, signal.SIGPIPE),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, errors, 2),
                (os.POSIX_SPAWN_DUP2, end, 3),
                (os.POSIX_SPAWN_DUP2, end, 4),
            ],
        )  # fmt: skip
    finally:
        os.close(end)


def _last_words(printed: bytes) -> str:
    lines = printed[-2000:].decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end(pid: int, folder: Path, owner: int) -> None:
    """Ends all processes of the browser before its id can be reused, and removes what they wrote."""
    if os.getpid() != owner:  # a copy of the process that started it
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    for _ in range(_TRIES):  # what was about to be written when its process ended may come after all
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
