"""Bounds that the kernel holds a worker to, whatever the code it runs."""

from __future__ import annotations

import os
import resource

_SPARE_SECONDS = 30


def bound_memory(most: int) -> None:
    """Allocations beyond this fail; files that are only mapped do not count. 0 sets no bound."""
    if most > 0:
        _lower(resource.RLIMIT_DATA, most)


def bound_processor(seconds: float) -> None:
    """The process is ended when all its threads together compute for longer from now on.

    Meant for code that hears nothing else: a job that listens is told to stop long before.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1)) + _SPARE_SECONDS
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def no_core_files() -> None:
    """A worker that dies leaves no image of its memory behind."""
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (value, hard))
