"""The stories of whole pages are true: their commands run, one after the other, against a site like theirs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from patience import UNHURRIED_COMMANDS
from scripted_site import ScriptedSite

if not (shutil.which("chromium-headless-shell") or shutil.which("chromium")):
    pytest.skip("NO CHROMIUM: stories of whole pages did not run", allow_module_level=True)

GUIDE = Path(__file__).parents[1] / "docs" / "guide" / "capture.md"
HOME = b'<!doctype html><title>Town</title><link rel=stylesheet href=/a.css><p>Flood</p><a href="/next">next</a>'
SHOP = b"""<!doctype html><title>Ticket</title><button id=prices>Prices</button><p class=price></p><script>
prices.onclick = async () => {
  const sent = { method: "POST", body: new URLSearchParams({ id: 7 }) };
  document.querySelector(".price").textContent = await (await fetch("/api/price", sent)).text();
};</script>"""


class Run(NamedTuple):
    """A command of a story and what it answered."""

    words: list[str]
    done: subprocess.CompletedProcess[str]


def commands(story: str) -> Iterator[str]:
    text = GUIDE.read_text("utf-8").partition(f"## A {story}")[2].partition("\n## ")[0]
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        yield from (line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ "))


def play(lines: list[str], site: ScriptedSite, folder: Path) -> Iterator[Run]:
    """The commands with the addresses of the story led to the site, and its times to now."""
    host = site.url("").removeprefix("http://")
    for line in lines:
        moved = re.sub(r"https://(?:www\.town|shop)\.example", f"http://{host}", line)
        moved = moved.replace("--site www.town.example", f"--site {host}")
        moved = re.sub(r"--at \S+", f"--at {datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z", moved)
        words = [sys.executable, "-m", "letopis.cli", *shlex.split(moved)[1:], "--archive", str(folder / "archive")]
        # The looks of a story come sooner one after the other than those of a journalist.
        env = {**os.environ, **UNHURRIED_COMMANDS, "LETOPIS_MONITOR_MIN_INTERVAL": "0"}
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
        yield Run(words, done)


def test_the_story_of_the_librarian(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    scripted_site.set("/", HOME)
    scripted_site.set("/next", b"<title>Next</title><p>Notice")
    scripted_site.set("/a.css", b"p { color: red }", Content_Type="text/css")
    lines = [f"{line} --delay 0s" if " crawl " in line else line for line in commands("librarian")]
    assert [line.split()[1] for line in lines] == ["crawl", "export"]
    for run in play(lines, scripted_site, tmp_path):
        assert run.done.returncode == 0, (run.words, run.done)
    with zipfile.ZipFile(tmp_path / "town.wacz") as packed:
        assert scripted_site.url("/next") in packed.read("pages/pages.jsonl").decode()
    sets = list(play([f"letopis sets {scripted_site.url('/')} --json"], scripted_site, tmp_path))
    assert '"has_screenshot": true' in sets[0].done.stdout


def test_the_story_of_the_journalist(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    scripted_site.set("/ticket", SHOP)
    scripted_site.set("/api/price", b"19.90 EUR", Content_Type="text/plain")
    lines = [f"{line} --once" if line.endswith("watch run") else line for line in commands("journalist")]
    assert [line.split()[1:3] for line in lines[:3]] == [["watch", "add"], ["watch", "run"], ["watch", "alerts"]]
    add, look, *rest = lines
    runs = list(play([add, look], scripted_site, tmp_path))
    scripted_site.set("/api/price", b"24.90 EUR", Content_Type="text/plain")
    runs += play([f"letopis watch check {scripted_site.url('/ticket')}", look, *rest], scripted_site, tmp_path)
    for run in runs:
        assert run.done.returncode == 0, (run.words, run.done)
    alerts, members, answer = (run.done.stdout for run in runs[-3:])
    assert scripted_site.url("/ticket") in alerts
    assert "__wb_method=POST" in members
    assert answer.strip() == "24.90 EUR", "the very answer from which the page took its figure"
