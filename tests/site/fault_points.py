"""Every call that changes a disk, in whatever part of the package: a point where its process can be killed."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from letopis.catalog.database import Cursor

_CALLS = (
    *("write", "pwrite", "fsync", "fdatasync", "ftruncate", "truncate", "link", "unlink", "remove", "rename"),
    *("replace", "mkdir", "rmdir"),
)
Say = Callable[[str], None]
Work = Callable[[Say], object]


@dataclass(frozen=True)
class Kill:
    """When a process is killed: at the call of that number (before or after it), or after so many seconds."""

    call: int = 0
    after: bool = False
    seconds: float = 0.0

    def arm(self) -> FaultPoints:
        """Makes this process one that will be killed."""
        if self.seconds:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the system ends it, no line of Python runs
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
        points = FaultPoints(self)
        points.install()
        return points


class FaultPoints:
    """Counts the calls of this process; `passed` is how many there were."""

    def __init__(self, kill: Kill) -> None:
        self.passed = 0
        self._kill = kill

    def install(self) -> None:
        for name in _CALLS:
            setattr(os, name, self._around(getattr(os, name)))
        run, around = Cursor.run, self._around

        def watched(self: Cursor, statement: str, values: Sequence[Any] = ()) -> int:
            bound = around(run) if statement == "COMMIT" else run
            return int(bound(self, statement, values))

        Cursor.run = watched  # type: ignore[method-assign]

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            self.passed += 1
            mine = self.passed == self._kill.call
            if mine and not self._kill.after:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = call(*args, **named)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return counted


class ForkOutcome(NamedTuple):
    """What became of a process: whether it was killed, the lines it had said, and its calls if it came to its end."""

    killed: bool
    said: list[str]
    calls: int


def run_killed(work: Work, kill: Kill) -> ForkOutcome:
    """Does the work in a process of its own that is killed as told; what it `say`s is promised at that moment.

    The process is forked: it has everything loaded, so a thousand kills take minutes. AssertionError when it ends
    by itself with an error.
    """
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        with suppress(BaseException):
            status = _child(work, kill, receiving, sending)
        os._exit(status)
    os.close(sending)
    with open(receiving, "rb") as pipe:
        lines = pipe.read().decode().split("\n")[:-1]
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status) and status:
        raise AssertionError("\n".join(lines))
    killed = os.WIFSIGNALED(status)
    return ForkOutcome(killed, lines if killed else lines[:-1], 0 if killed else int(lines[-1]))


def _child(work: Work, kill: Kill, receiving: int, sending: int) -> int:
    write = os.write
    os.close(receiving)
    points = kill.arm()

    def say(line: str) -> None:
        write(sending, line.encode() + b"\n")

    try:
        work(say)
    except BaseException:
        say(traceback.format_exc())
        return 1
    say(str(points.passed))
    return 0
