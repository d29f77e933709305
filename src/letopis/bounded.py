"""Work on what strangers wrote, in helper processes that are bounded in time and memory and can be stopped.

A few helpers are kept and reused. Each runs one piece of work at a time: a function of this package by its name, a
small order as JSON, and bytes. What comes back is bytes alone: nothing that a broken library sends is run.

Time is the processor's, so that a busy machine changes no verdict. A piece that was asked for twice is worked on once,
and what became of it is remembered by its digest: a page that took all it may is not read again for whoever asks next.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import os
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from letopis.errors import NotReady, TooCostly, UsageError
from letopis.lazy import lazy
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    import regex
else:
    regex = lazy("regex")

MAX_SECONDS = 10.0
"""Processor time of one piece of work."""
MAX_MEMORY = 1536 * 1024 * 1024
"""Address space of a helper."""
MAX_HELPERS = 2
MAX_ANSWER = 64 * 1024 * 1024
_PATIENCE = 6
_LEAST_PATIENCE = 30.0
"""Wall time of one piece, in multiples of its processor time and at least: a helper may hang without computing."""
_SIMPLE = re.compile(r"(?:[\w/:;,.=&%~@!'\"<>|^$-]|\\[./?+-])*", re.ASCII)
"""Patterns without repeats, groups and classes: any engine reads them alike, and the one that is loaded anyway is fast
enough for them."""
_PATTERN_SECONDS = 1.0
_SEARCH_SECONDS = 0.2
_IDLE_SECONDS = 60.0
_TIRED_BYTES = 400 * 1024 * 1024
_MOST_VERDICTS = 4096
_MOST_REMEMBERED = 32 * 1024 * 1024
_ORDER = struct.Struct(">IQ")
_ANSWER = struct.Struct(">BQ")
_DONE, _MISUSED, _FAILED = range(3)
_LAST = 0x80


class _Patience(NamedTuple):
    """How many may wait for a helper, and how long one may work."""

    waiting: float = math.inf
    seconds: float = math.inf


_ENDLESS = _Patience()
_patience: ContextVar[_Patience] = ContextVar("patience", default=_ENDLESS)


class Impatience:
    """Inside, work has no more time than this, and is refused where so many others wait for a helper already."""

    def __init__(self, waiting: int, seconds: float) -> None:
        self._wanted = _Patience(waiting, seconds)

    def __enter__(self) -> None:
        self._token = _patience.set(self._wanted)

    def __exit__(self, *error: object) -> None:
        _patience.reset(self._token)


class BoundedWorkers:
    """Helpers of this process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(MAX_HELPERS)
        self._lock = threading.Lock()
        self._idle: list[_Helper] = []
        self._waiting = 0
        self._running: dict[bytes, Future[bytes]] = {}
        self._verdicts: OrderedDict[bytes, str] = OrderedDict()
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()
        self._remembered = 0
        self.started = 0
        """Helpers that were started so far."""

    def run(self, work: str, order: Mapping[str, Any], body: bytes, seconds: float = MAX_SECONDS) -> bytes:
        """What `work` ("module:function") answers to the order and the body.

        TooCostly says that it needed too much or broke; UsageError is the
        work's own; NotReady comes where others wait already, see `Impatience`.
        """
        seconds = min(seconds, _patience.get().seconds)
        head = json.dumps({"work": work, "seconds": seconds, **order}).encode()
        key = hashlib.blake2b(head + b"\0" + body, digest_size=20).digest()
        with self._lock:
            if key in self._verdicts:
                raise TooCostly(self._verdicts[key])
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
            shared = self._running.get(key)
            if shared is None:
                self._join_queue()
                own = self._running[key] = Future()
        if shared is not None:
            return self._shared(shared)
        return self._own(key, own, head, body, seconds)

    def close(self) -> None:
        """Ends the helpers that wait for work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for helper in idle:
            helper.stop()

    def _join_queue(self) -> None:
        if self._waiting >= _patience.get().waiting:
            raise NotReady("too many large documents are being read just now; try again in a few seconds")
        self._waiting += 1

    def _shared(self, future: Future[bytes]) -> bytes:
        with self._lock:
            self._join_queue()
        try:
            return future.result()
        finally:
            with self._lock:
                self._waiting -= 1

    def _own(self, key: bytes, future: Future[bytes], head: bytes, body: bytes, seconds: float) -> bytes:
        try:
            with self._free:
                answer = self._asked(head, body, seconds)
        except BaseException as error:
            self._settle(key, verdict=str(error) if isinstance(error, TooCostly) and error.final else None)
            future.set_exception(error)
            raise
        self._settle(key, answer=answer)
        future.set_result(answer)
        return answer

    def _settle(self, key: bytes, answer: bytes | None = None, verdict: str | None = None) -> None:
        with self._lock:
            self._waiting -= 1
            del self._running[key]
            if verdict is not None:
                self._verdicts[key] = verdict
                while len(self._verdicts) > _MOST_VERDICTS:
                    self._verdicts.popitem(last=False)
            if answer is not None and len(answer) <= _MOST_REMEMBERED // 4:
                self._answers[key] = answer
                self._remembered += len(answer)
                while self._remembered > _MOST_REMEMBERED:
                    self._remembered -= len(self._answers.popitem(last=False)[1])

    def _asked(self, head: bytes, body: bytes, seconds: float) -> bytes:
        helper = self._helper()
        try:
            answer, lasts = helper.ask(head, body, seconds)
        except BaseException as error:
            if not isinstance(error, UsageError):
                helper.stop()
            else:
                self._put_back(helper)
            raise
        if lasts:
            self._put_back(helper)
        else:
            helper.stop()
        return answer

    def _put_back(self, helper: _Helper) -> None:
        with self._lock:
            self._idle.append(helper)

    def _helper(self) -> _Helper:
        with self._lock:
            while self._idle:
                found = self._idle.pop()
                if found.alive:
                    return found
                found.stop()
            self.started += 1
        return _Helper()


class _Helper:
    """One process and the pipes to it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "letopis.bounded", str(MAX_MEMORY)]
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._idle_since = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether it will not end by itself before it could take an order."""
        return self._process.poll() is None and time.monotonic() - self._idle_since < _IDLE_SECONDS / 2

    def ask(self, head: bytes, body: bytes, seconds: float) -> tuple[bytes, bool]:
        """The answer, and whether the helper can be asked again."""
        deadline = time.monotonic() + max(_LEAST_PATIENCE, _PATIENCE * seconds)
        given = memoryview(_ORDER.pack(len(head), len(body)) + head + body)
        answer = self._exchanged(given, deadline, seconds)
        self._idle_since = time.monotonic()
        status, _ = _ANSWER.unpack_from(answer)
        said = answer[_ANSWER.size :]
        if status & ~_LAST == _DONE:
            return said, not status & _LAST
        message = said.decode("utf-8", "replace")
        raise UsageError(message) if status & ~_LAST == _MISUSED else TooCostly(message)

    def _exchanged(self, given: memoryview, deadline: float, seconds: float) -> bytes:
        """Writes all of the order and reads all of the answer, whichever is possible."""
        answer = bytearray()
        while len(answer) < _ANSWER.size or len(answer) < _ANSWER.size + _ANSWER.unpack_from(answer)[1]:
            left = deadline - time.monotonic()
            readable, writable, _ = select.select([self._out], [self._in] if given else [], [], max(0.0, left))
            if not (readable or writable):
                raise TooCostly(_took_too_long(seconds), final=False)
            try:
                if writable:
                    given = given[os.write(self._in, given[: 1 << 20]) :]
                part = os.read(self._out, 1 << 20) if readable else None
            except BrokenPipeError:
                part = b""
            if part == b"":
                raise TooCostly(self._end(seconds))
            answer += part or b""
            if len(answer) > MAX_ANSWER:
                raise TooCostly("its result is too large")
        return bytes(answer)

    def _end(self, seconds: float) -> str:
        """Why a helper ended without an answer."""
        if self._process.wait() == -signal.SIGXCPU:
            return _took_too_long(seconds)
        return "it failed or needed too much memory and was stopped"

    def stop(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()
        with self._process:
            pass


def _took_too_long(seconds: float) -> str:
    """One sentence whether it computed all that time or was kept from it: whoever asked can do the same about both."""
    return f"it took longer than {seconds:g} s and was stopped"


_workers = BoundedWorkers()
atexit.register(lambda: _workers.close())


def _after_fork() -> None:
    """A child has helpers of its own: two processes on one pipe would read each other's answers."""
    global _workers
    _workers = BoundedWorkers()


os.register_at_fork(after_in_child=_after_fork)


def run_bounded(work: str, order: Mapping[str, Any], body: bytes = b"", seconds: float = MAX_SECONDS) -> bytes:
    """`BoundedWorkers.run` with the helpers of this process."""
    return _workers.run(work, order, body, seconds)


def check_pattern(pattern: str) -> None:
    """UsageError for what is no regular expression, or is one that nobody can wait for.

    Repeats inside repeats are unfolded when a pattern is compiled, which nothing can stop: only they need a helper.
    """
    if _SIMPLE.fullmatch(pattern):
        return
    try:
        if "{" in pattern:
            run_bounded(f"{__name__}:compile_for_another", {"pattern": pattern}, seconds=_PATTERN_SECONDS)
        else:
            regex.compile(pattern)
    except TooCostly:
        raise UsageError(f"the pattern '{pattern[:80]}' takes too long; write it without nested repeats") from None
    except (regex.error, OverflowError, RecursionError) as error:
        raise UsageError(f"'{pattern[:200]}' is not a regular expression ({error}); correct it") from None


class BoundedPattern:
    """Patterns of a user, any of which is searched in what strangers wrote; UsageError for one that is none."""

    def __init__(self, *patterns: str) -> None:
        for pattern in patterns:
            check_pattern(pattern)
        self._search: Callable[[str], object]
        if all(map(_SIMPLE.fullmatch, patterns)):
            self._search = re.compile("|".join(patterns)).search
        else:
            compiled = regex.compile("|".join([f"(?:{pattern})" for pattern in patterns]))
            self._search = partial(compiled.search, timeout=_SEARCH_SECONDS)

    def found_in(self, text: str, *, in_doubt: bool) -> bool:
        """Whether one is found; `in_doubt` where that takes too long to tell."""
        try:
            return self._search(text) is not None
        except TimeoutError:
            return in_doubt


def compile_for_another(order: Mapping[str, Any], body: bytes) -> bytes:
    """Nothing, when the pattern can be compiled."""
    try:
        regex.compile(order["pattern"])
    except (regex.error, OverflowError, RecursionError) as error:
        raise UsageError(f"'{order['pattern'][:200]}' is not a regular expression ({error}); correct it") from None
    return b""


def _read_exactly(stream: BinaryIO, count: int) -> bytes:
    found = stream.read(count)
    if len(found) < count:
        sys.exit(0)
    return found


def _allow(seconds: float) -> None:
    """Processor time from now on; it holds even where the parent is gone."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _answered(head: bytes, body: bytes) -> tuple[int, bytes]:
    order = json.loads(head)
    _allow(order.pop("seconds"))
    module, _, name = order.pop("work").partition(":")
    try:
        function: Callable[[Mapping[str, Any], bytes], bytes] = getattr(import_module(module), name)
        return _DONE, function(order, body)
    except UsageError as error:
        return _MISUSED, str(error).encode()
    except MemoryError:
        return _FAILED | _LAST, b"it needed too much memory"
    except Exception as error:
        return _FAILED, f"it failed ({type(error).__name__}: {str(error)[:200]})".encode("utf-8", "replace")


def _resident() -> int:
    """The memory that this process holds, 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() if status.exists() else 0


def main() -> int:
    """Works off what comes on standard input until nobody is there or nothing comes."""
    memory = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What libraries print must not stand among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    orders = sys.stdin.buffer
    while select.select([orders], [], [], _IDLE_SECONDS)[0]:
        lengths = _ORDER.unpack(_read_exactly(orders, _ORDER.size))
        head, body = (_read_exactly(orders, length) for length in lengths)
        status, said = _answered(head, body)
        if _resident() > _TIRED_BYTES:
            status |= _LAST
        answers.write(_ANSWER.pack(status, len(said)) + said)
        answers.flush()
        if status & _LAST:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
