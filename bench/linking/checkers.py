"""Link checkers as whole processes, from nothing to the list of what is broken."""

from __future__ import annotations

import csv
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.measuring import Spent, measured

_LONGEST = 1200
"""Seconds after which a checker is stopped: politeness must not hold up a measurement for ever."""


class Checked(NamedTuple):
    """CPU seconds of each part, and the broken links: where they stand (empty if not told) and what is not there."""

    parts: dict[str, float]
    broken: set[tuple[str, str]]

    @property
    def seconds(self) -> float:
        """Of all parts."""
        return sum(self.parts.values())


def by_letopis(base: str) -> Checked:
    """A crawl of the site, then the question for its broken links."""
    with tempfile.TemporaryDirectory() as folder:
        letopis = [sys.executable, "-m", "letopis.cli", "--archive", str(Path(folder) / "a")]
        crawled = _run([*letopis, "crawl", base, "--once", "--delay", "0", "-q"])
        asked = _run([*letopis, "broken", base, "--json", "-q"])
    rows = [json.loads(line) for line in asked.out.splitlines()]
    parts = {"the crawl": crawled.seconds, "reading links and the answer": asked.seconds}
    return Checked(parts, {(row["source"], row["target"]) for row in rows})


def by_linkchecker(base: str, python: Path) -> Checked:
    """LinkChecker without its waits: they are no CPU time, but make a run last half an hour."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "linkcheckerrc"
        settings.write_text("[checking]\nmaxrequestspersecond=100000\nthreads=10\n")
        Path(folder).chmod(0o755)
        told = _run([str(python), "-m", "linkcheck", "-f", str(settings), "-o", "csv", "--no-status", base])
    lines = [line for line in told.out.splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter=";")
    return Checked({"": told.seconds}, {(row["parentname"], row["url"]) for row in rows if row["valid"] == "False"})


def by_wget(base: str) -> Checked:
    """`wget --spider -r`, which tells what is broken but not where."""
    with tempfile.TemporaryDirectory() as folder:
        told = _run(["wget", "--spider", "-r", "-l", "inf", "-nv", "-o", "/dev/stdout", base], Path(folder))
    listed = re.split(r"^Found \d+ broken links?\.", told.out, maxsplit=1, flags=re.MULTILINE)[-1]
    return Checked({"": told.seconds}, {("", target) for target in re.findall(r"^https?://\S+$", listed, re.MULTILINE)})


def _run(command: Sequence[str], cwd: Path | None = None) -> Spent:
    """Status 1 of a link checker says that something is broken, 8 is wget's word for it."""
    spent = measured(["timeout", str(_LONGEST), *command], cwd)
    if spent.status not in (0, 1, 8):
        print(f"{' '.join(command[:6])} ended with status {spent.status}", file=sys.stderr)
    return spent
