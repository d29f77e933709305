"""What the docs say is true: every verb, setting and error is described, and the commands they show work."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import letopis.errors
from letopis.cli.main import VERBS, load_verb
from letopis.cli.main import root_command as cli
from letopis.config import settings_table

ROOT = Path(__file__).parent.parent
DOCS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text()


def test_every_verb_is_in_the_reference() -> None:
    text = reference("commands.md")
    assert [verb for verb in VERBS if f"## {verb}\n" not in text] == []


def test_every_setting_is_in_the_reference_with_its_default_and_help() -> None:
    text = reference("settings.md")
    assert [row.name for row in settings_table().values() if f"`{row.name}`" not in text or row.help not in text] == []


def test_every_error_is_in_the_reference_with_its_exit_status() -> None:
    text = reference("errors.md")
    errors = [
        (name, error.exit_status)
        for name, error in inspect.getmembers(letopis.errors, inspect.isclass)
        if issubclass(error, letopis.errors.LetopisError)
    ]
    assert [name for name, status in errors if f"| `{name}` | {status} |" not in text] == []


def test_help_lists_every_verb_with_one_line() -> None:
    shown = run("--help").stdout
    assert [name for name, verb in VERBS.items() if verb.help not in shown] == []


@pytest.mark.parametrize("name", list(VERBS))
def test_each_verb_has_help_with_an_example(name: str) -> None:
    command = load_verb(name)
    assert command.help
    help_text = run(name, "--help").stdout
    assert f"letopis {name}" in help_text.split("Examples", 1)[-1]


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
    return subprocess.run(
        [sys.executable, "-m", "letopis.cli", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=120,
    )


@pytest.mark.parametrize("words", [["pit"], ["put"], ["get", "--nonsense", "x"], ["get", "ftp://x/"]])
def test_wrong_usage_exits_2_with_a_sentence(words: list[str], tmp_path: Path) -> None:
    run("init", cwd=tmp_path)
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("letopis: ")


def shown_commands() -> list[tuple[str, str]]:
    """Every `letopis ...` line inside a console block of the docs."""
    found = []
    for path in DOCS:
        for block in re.findall(r"```console\n(.*?)```", path.read_text(), re.DOTALL):
            lines = [line[2:] for line in block.splitlines() if line.startswith("$ letopis")]
            found += [(str(path.relative_to(ROOT)), line) for line in lines]
    return found


@pytest.mark.parametrize(("where", "line"), shown_commands())
def test_commands_shown_in_the_docs_are_understood(where: str, line: str) -> None:
    words = shlex.split(line.split(" | ")[0].split(" > ")[0], comments=True)[1:]
    context = cli.make_context("letopis", list(words), obj=_given())
    name, command, rest = cli.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    command.make_context(name or "", rest, parent=context)


def _given() -> object:
    from letopis.cli.context import CliContext

    return CliContext()


def links(path: Path) -> list[str]:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text())
    return [target for target in targets if "://" not in target and not target.startswith("mailto:")]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    assert [target for target in links(path) if not (path.parent / target).exists()] == []
