"""The walks of the guide are true: every command runs in its order over the demo web and says what is shown.

A comment `<!-- web: story 145 -->` before a block says what the web is by then: the five sites of the story on that
day, or `<!-- web: world 4 300 -->`, a simulated web of four hosts with 300 pages each. `…` stands for what differs
from run to run.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from free_port import free_port

from letopis_demo import START, DemoServer, World, running
from letopis_demo.story_web import StoryWorld

ROOT = Path(__file__).parent.parent
WALKS = sorted((ROOT / "docs" / "guide").glob("walk-*.md"))
_PART = re.compile(
    r"<!-- web: (?P<web>[^>]*) -->|^```(?P<kind>\w+)(?: title=\"(?P<name>[^\"]+)\")?\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_CALM_DAY = 10 + 1 / 1440
"""A minute in which the busy page of a simulated web has time."""


class Command(NamedTuple):
    """A command of a walk, the lines that are shown of its answer, and the status it ends with."""

    line: str
    shown: tuple[str, ...]
    status: int


def commands_of(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, *shown = part.strip().splitlines()
        line, _, comment = line.partition("  # status ")
        yield Command(line, tuple(shown), int(comment or 0))


def folded(text: str) -> str:
    return re.sub(r"[ \t]+", " ", text)


class Walk:
    """One person's folder, web and running server."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
        quick = {"LETOPIS_CRAWL_DELAY": "0", "LETOPIS_MONITOR_DELAY": "0", "LETOPIS_MONITOR_MIN_INTERVAL": "0"}
        self._environment = kept | quick | {"COLUMNS": "200"}
        self._port = free_port()
        self.verbs: set[str] = set()

    def change_web(self, words: list[str]) -> None:
        """Another web, or another day of it, takes the place of what was."""
        kind, *numbers = words
        if kind == "story":
            world: World = StoryWorld()
            days = float(numbers[0])
        else:
            hosts, pages = map(int, numbers)
            world, days = World(hosts=hosts, pages_per_host=pages, crawl_delay=0), _CALM_DAY
        moment = START + timedelta(days=days)
        server = self._stack.enter_context(running(DemoServer(world, lambda: moment, addresses="names")))
        self._environment["LETOPIS_FETCH_PROXY"] = f"http://{server.address}"

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)

    def run(self, command: Command) -> None:
        words = shlex.split(command.line.replace("8080", str(self._port)))
        self.verbs.add(" ".join(words[:2]))
        if words[-1] == "&":
            self._serve(words[:-1])
            return
        status, answer = self._asked(words) if words[0] == "curl" else self._ran(words)
        assert (status, "Traceback" in answer) == (command.status, False), f"{command.line}\n{answer}"
        at, answer = 0, folded(answer)
        for line in command.shown:
            wanted = ".*?".join(map(re.escape, folded(line.strip()).split("…"))).replace("8080", str(self._port))
            found = re.compile(wanted).search(answer, at)
            assert found, f"{command.line}\n{line!r} is not in the answer (in this order):\n{answer}"
            at = found.end()

    def _ran(self, words: list[str]) -> tuple[int, str]:
        if words[0] == "cat":
            return 0, (self._folder / words[1]).read_text()
        programs = {"letopis": [sys.executable, "-m", "letopis.cli"], "python": [sys.executable]}
        done = subprocess.run(
            programs[words[0]] + words[1:], cwd=self._folder, env=self._environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        )  # fmt: skip
        return done.returncode, done.stdout

    def _asked(self, words: list[str]) -> tuple[int, str]:
        """What curl would print, with `-H` for a header and `-d` for a body."""
        given = dict(zip(words[1:-1:2], words[2:-1:2], strict=True))
        name, _, value = given.get("-H", "Accept: */*").partition(": ")
        request = urllib.request.Request(words[-1], given["-d"].encode() if "-d" in given else None, {name: value})
        if "-d" in given:
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=300) as response:
            return 0, response.read().decode()

    def _serve(self, words: list[str]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "letopis.cli", *words[1:]], cwd=self._folder, env=self._environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            assert process.poll() is None, f"{words} ended"
            time.sleep(0.05)
        raise AssertionError(f"{words} does not answer")


@pytest.mark.files
@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.stem)
def test_a_walk_can_be_walked(page: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        walk = Walk(tmp_path, stack)
        for part in _PART.finditer(page.read_text()):
            if part["web"]:
                walk.change_web(part["web"].split())
            elif part["name"]:
                walk.write(part["name"], part["text"])
            elif part["kind"] == "console":
                for command in commands_of(part["text"]):
                    walk.run(command)
    assert len(walk.verbs) >= 3


def test_there_is_a_walk_for_each_of_five_people_and_the_readme_leads_there() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(WALKS) == 5
    assert [page.name for page in WALKS if f"docs/guide/{page.name}" not in readme] == []
