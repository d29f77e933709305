"""How the program ends, and that whoever only imports it ends as before."""

from __future__ import annotations

import subprocess
import sys

_FROZEN = "import atexit, gc\natexit.register(lambda: print('frozen', gc.get_freeze_count() > 0))\n"
"""Registered first, so that it is called last."""


def _end_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", _FROZEN + code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_the_program_does_not_walk_through_its_objects_at_its_end() -> None:
    words = "import sys\nsys.argv = ['letopis', '--version']\n"
    assert _end_of(words + "from letopis.cli import main\nmain()") == "frozen True"


def test_a_process_that_runs_a_command_by_hand_ends_as_it_always_does() -> None:
    assert _end_of("from letopis.cli import main\nmain(['--version'])") == "frozen False"
