"""Several processes that answer on one listening socket.

The first process binds the socket and starts the others, which inherit it;
the system hands each connection to whoever accepts it first. What all must
agree on is told to each through its standard input, where nobody else reads.
A worker that dies is started again; one that cannot start ends all, and when
the first process dies its workers see that their standard input is closed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from letopis.errors import NotReady

_QUICK_SECONDS = 5.0
_QUICK_DEATHS = 5
_STOP_SECONDS = 15.0
READY = b"ready\n"
"""What a worker writes when it answers."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What all workers have in common: the code for the first owner, and how many they are."""

    code: str
    workers: int

    def to_line(self) -> bytes:
        """One line for the standard input of a worker."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Agreement:
        """The inverse."""
        return cls(**json.loads(line))


class Workers:
    """Keeps a number of workers running until it is stopped."""

    def __init__(self, listening: socket.socket, words: Sequence[str], agreement: Agreement) -> None:
        """`words` are the arguments of `letopis` for one worker, the socket's number aside."""
        self._listening = listening
        self._words = [*words, "--socket", str(listening.fileno())]
        self._agreement = agreement
        self._running: set[asyncio.subprocess.Process] = set()
        self._quick_deaths = 0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run` soon: workers finish what they answer. Safe to call from a signal handler."""
        self._stopping.set()
        for process in self._running:
            if process.returncode is None:
                process.terminate()

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Returns when all workers have ended; NotReady when they cannot be kept alive."""
        started = asyncio.gather(*(self._start() for _ in range(self._agreement.workers)))
        try:
            first = await started
            ready()
            await asyncio.gather(*(self._keep(process) for process in first))
        finally:
            await self._end()

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        """One place among the workers: whoever dies in it is followed by another."""
        while True:
            began = time.monotonic()
            await process.wait()
            self._running.discard(process)
            if self._stopping.is_set():
                return
            self._quick_deaths = self._quick_deaths + 1 if time.monotonic() - began < _QUICK_SECONDS else 0
            if self._quick_deaths >= _QUICK_DEATHS:
                raise NotReady("workers die as soon as they start; 'letopis serve' without --workers tells why")
            process = await self._start()

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "letopis.cli", *self._words,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            pass_fds=(self._listening.fileno(),), start_new_session=True,
        )  # fmt: skip
        self._running.add(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._agreement.to_line())
        if await process.stdout.readline() != READY and not self._stopping.is_set():
            raise NotReady("a worker could not start; 'letopis serve' without --workers tells why")
        return process

    async def _end(self) -> None:
        """Nobody outlives this."""
        self.stop()
        waiting = [asyncio.create_task(process.wait()) for process in self._running]
        if waiting:
            await asyncio.wait(waiting, timeout=_STOP_SECONDS)
        for process in self._running:
            if process.returncode is None:
                process.kill()
                await process.wait()
