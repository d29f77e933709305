"""Shells complete verbs, options and values; the manual is a page that man reads."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from letopis.cli.main import VERBS

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "reference.py"))


def completed(*words: str) -> list[str]:
    """What the shell offers for the last of these words."""
    asking = {"_LETOPIS_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    code = "import sys; from letopis.cli.main import main; sys.argv = ['letopis']; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asking}, capture_output=True, text=True, timeout=300
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_asks_letopis(shell: str) -> None:
    words = [sys.executable, "-m", "letopis.cli", "completion", shell]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    assert f"_LETOPIS_COMPLETE={shell}_complete" in done.stdout
    program = shutil.which(shell)
    if program:
        subprocess.run([program, "-n"], input=done.stdout, text=True, check=True, timeout=300)


def test_verbs_options_and_values_are_completed() -> None:
    assert completed("letopis", "") == list(VERBS)
    assert completed("letopis", "ver") == ["versions", "verify"]
    assert completed("letopis", "watch", "al") == ["alerts"]
    assert completed("letopis", "watch", "add", "--ev") == ["--every"]
    assert completed("letopis", "map", "example.org", "--format", "s") == ["sitemap", "svg", "snippet"]
    assert completed("letopis", "completion", "z") == ["zsh"]


def test_verbs_are_completed_without_reading_their_modules() -> None:
    code = (
        "import sys, click\nfrom letopis.cli.main import root_command\n"
        "found = root_command.shell_complete(click.Context(root_command), '')\n"
        "print(len(found), [name for name in sys.modules if name.startswith('letopis.operations')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == f"{len(VERBS)} []\n"


def test_the_manual_holds_every_verb_and_exit_status_and_roff_has_nothing_to_say(tmp_path: Path) -> None:
    text = TOOL["manual"]()
    assert [verb for verb in VERBS if f"\n.SS {verb.replace('-', chr(92) + '-')}\n" not in text] == []
    assert [status for status in TOOL["exit_statuses"]() if f"\n.B {status}\n" not in text] == []
    if shutil.which("groff"):
        page = tmp_path / "letopis.1"
        page.write_text(text)
        words = ["groff", "-man", "-Tascii", "-Kutf8", "-wall", str(page)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")


def test_exit_statuses_are_one_each() -> None:
    assert list(TOOL["exit_statuses"]()) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 130]
