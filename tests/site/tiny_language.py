"""A language of one word a job, so that the queue can be tried without the real one.

`<query package="p" name="n" ...>WORD</query>`: `say` answers at once, `wait`
goes on until it is told to stop, `deaf` goes on whatever it is told, `fail`,
`crash`, `die`, `hog` and `large` do what they say. Every begin and end of a
job is a line in the file `trace` in the archive's folder.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
import threading
import time
from pathlib import Path

from letopis.archive import Archive
from letopis.config import load_settings
from letopis.errors import LetopisError, UsageError
from letopis.jobs import JobContext, JobQuery
from letopis.jobs.execution import JobLanguage, run_worker
from letopis.jobs.supervisor import Supervisor

COMMAND = (sys.executable, __file__)
_PLACES = ("LETOPIS_DATABASE_", "LETOPIS_STORE_")
_FORM = re.compile(rb"<query((?: \w+=\"[^\"]*\")*)>([a-z]+)( [\d.]+)?</query>")


def parse(data: bytes) -> JobQuery:
    found = _FORM.fullmatch(data)
    if found is None:
        raise UsageError("this is no job file; write <query>say</query>")
    given = dict(re.findall(r"(\w+)=\"([^\"]*)\"", found[1].decode()))
    return JobQuery(
        given.get("package", "p"),
        given.get("name", ""),
        int(given.get("priority", "0")),
        given.get("refresh", ""),
        int(given.get("permission", "1")),
        data,
    )


def perform(query: JobQuery, around: JobContext) -> bytes:
    found = _FORM.fullmatch(query.xml)
    assert found is not None
    word, amount = found[2].decode(), float(found[3] or 0)
    trace(around, f"begin {query.package} {query.name} {os.getpid()}")
    around.progress.step(1, 2, word)
    answer = _work(word, amount, around)
    around.progress.step(2, 2, "end")
    trace(around, f"end {query.package} {query.name} {os.getpid()}")
    return b"<say>%s</say>" % answer


def _work(word: str, amount: float, around: JobContext) -> bytes:
    if word == "wait":
        _until(around, amount or 1e9)
    elif word == "deaf":
        time.sleep(1e6)
    elif word == "fail":
        raise LetopisError("the site is closed; try tomorrow")
    elif word == "crash":
        raise KeyError("left out")
    elif word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "hog":
        return b"x" * len(bytearray(int(amount)))
    elif word == "large":
        return b"x" * int(amount)
    reach = b" private" if around.private_allowed else b" public"
    return word.encode() + reach + b" for " + around.requester.name.encode()


def _until(around: JobContext, seconds: float) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        around.progress.share((time.monotonic() - begun) / seconds)
        if around.progress.cancelled():
            raise LetopisError("told to stop")
        time.sleep(0.005)


def trace(around: JobContext, line: str) -> None:
    with Path(around.archive.folder, "trace").open("a") as file:
        file.write(line + "\n")


def _die_within(seconds: float) -> None:
    """kill -9 at a moment that nobody chose, told in the file TINY_DEATHS."""

    def die() -> None:
        with Path(os.environ["TINY_DEATHS"]).open("a") as file:
            file.write("dead\n")
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Timer(random.random() * seconds, die).start()


def _daemon(folder: str) -> None:
    """Looks after a queue until it is stopped or killed, wherever the environment says that its archive lies."""
    places = {name: value for name, value in os.environ.items() if name.startswith(_PLACES)}
    with Archive(folder, settings=load_settings(None, places, {})) as archive:
        supervisor = Supervisor(archive, command=COMMAND)

        async def run() -> None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
            await supervisor.run()

        asyncio.run(run())


if __name__ == "__main__":
    if sys.argv[1:]:
        _daemon(sys.argv[1])
        sys.exit()
    if "TINY_DIE_WITHIN" in os.environ:
        _die_within(float(os.environ["TINY_DIE_WITHIN"]))
    sys.exit(run_worker(JobLanguage(parse, perform), grace=0.5))
