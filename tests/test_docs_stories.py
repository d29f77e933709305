"""The stories of the guide are true: their commands run over the archive they speak of and say what is shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from letopis import Archive

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "site"))

from remembered_world import end_of, remember, small_world  # noqa: E402

STORIES = ("map.md", "search.md")


class Told(NamedTuple):
    """A command of a story and the lines that are shown of its answer."""

    story: str
    command: str
    shown: tuple[str, ...]


def told() -> Iterator[Told]:
    for story in STORIES:
        text = (ROOT / "docs" / "guide" / story).read_text()
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
            for part in block.split("$ ")[1:]:
                command, *shown = part.strip().splitlines()
                yield Told(story, command, tuple(shown))


@pytest.fixture(scope="module")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stories") / "archive"
    world = small_world()
    with Archive(folder, clock=lambda: end_of(world)) as archive:
        remember(archive, world)
    return folder


def folded(text: str) -> str:
    """Columns are as wide as their widest value, which no reader counts."""
    return re.sub(r"[ \t]+", " ", text)


@pytest.mark.parametrize("case", list(told()), ids=lambda case: f"{case.story}: {case.command}")
def test_commands_of_the_stories_say_what_is_shown(case: Told, remembered: Path, tmp_path: Path) -> None:
    words = shlex.split(case.command)
    assert words[0] == "letopis"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
    environment["LETOPIS_ARCHIVE"] = str(remembered)
    done = subprocess.run(
        [sys.executable, "-m", "letopis.cli", *words[1:]],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    at, answer = 0, folded(done.stdout)
    for line in case.shown:
        place = answer.find(folded(line.strip()), at)
        assert place >= 0, f"{line!r} is not in the answer (in this order):\n{done.stdout}"
        at = place + 1
    if "-o" in words:
        assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 0


def test_the_stories_use_the_verbs_they_are_about() -> None:
    used = {shlex.split(case.command)[1] for case in told()}
    assert used >= {"map", "links", "broken", "rank", "search", "near", "when", "categories", "duplicates"}
