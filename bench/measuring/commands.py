"""CPU time of a command and of all it starts, run the way an installed program runs."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Spent(NamedTuple):
    """What a command cost and said."""

    seconds: float
    out: str
    status: int


def environment() -> dict[str, str]:
    """The environment of a user: compiled modules are kept, as an installed package has them.

    Without them a command that starts from a source tree compiles every
    module again, which its peers, being installed, do not.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measured(words: Sequence[str | Path], cwd: Path | None = None) -> Spent:
    """User and system seconds of one command; only one may be measured at a time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(spent, done.stdout, done.returncode)
