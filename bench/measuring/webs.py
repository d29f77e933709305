"""The simulated web in a process of its own, so that what it costs is not counted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.measuring.commands import environment

_STILL = ("--port", "0", "--crawl-delay", "0", "--speed", "0", "--skip", "10")


@contextmanager
def simulated_web(hosts: int, pages: int, *more: str) -> Iterator[str]:
    """A web that stands still and asks for no pauses; the address of its first home page, ending in a slash."""
    words = ["--hosts", str(hosts), "--pages", str(pages), *_STILL, *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "letopis_demo", *words], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
