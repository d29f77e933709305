"""Writes docs/reference from the code: `python tools/reference.py`. A test fails when it is out of date."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click

import letopis.errors
from letopis.cli.main import VERBS, load_verb
from letopis.cli.main import root_command as root
from letopis.config import settings_table

TARGET = Path(__file__).parent.parent / "docs" / "reference"


def commands() -> str:
    """One chapter a verb: its help as the terminal shows it."""
    parts = ["# Commands\n\nMade from the command line itself by `tools/reference.py`.\n"]
    top = click.Context(root, info_name="letopis")
    for name in VERBS:
        context = click.Context(load_verb(name), info_name=name, parent=top, max_content_width=100)
        parts.append(f"## {name}\n\n```text\n{_help(context)}\n```\n")
    return "\n".join(parts)


def _help(context: click.Context) -> str:
    text = context.command.get_help(context)
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            inner = context.command.get_command(context, name)
            assert inner is not None
            text += "\n\n" + _help(click.Context(inner, info_name=name, parent=context, max_content_width=100))
    return "\n".join(line.rstrip() for line in text.splitlines())


def settings() -> str:
    """One table a section."""
    lines = [
        "# Settings\n",
        "Made from `letopis.config` by `tools/reference.py`. A setting stands in `letopis.toml`",
        "",
    ]
    lines[1] += " under its section, or in the environment as `LETOPIS_SECTION_NAME`.\n"
    section = ""
    for row in settings_table().values():
        if row.name.split(".")[0] != section:
            section = row.name.split(".")[0]
            lines += [f"\n## {section}\n", "| setting | default | meaning |", "| --- | --- | --- |"]
        unit = f" {row.unit}" if row.unit else ""
        lines.append(f"| `{row.name}` | `{row.default!r}`{unit} | {row.help} |")
    return "\n".join(lines) + "\n"


def errors() -> str:
    """The tree of errors with exit statuses."""
    lines = ["# Errors and exit statuses\n", "| error | exit status | meaning |", "| --- | --- | --- |"]
    for name, error in inspect.getmembers(letopis.errors, inspect.isclass):
        if issubclass(error, letopis.errors.LetopisError):
            lines.append(f"| `{name}` | {error.exit_status} | {inspect.getdoc(error)} |")
    return "\n".join(lines) + "\n"


PAGES = {"commands.md": commands, "settings.md": settings, "errors.md": errors}


def main(argv: list[str]) -> int:
    """Writes the pages; with --check only says which are out of date."""
    stale = [name for name, make in PAGES.items() if not _is_fresh(name, make())]
    if "--check" in argv:
        sys.stderr.writelines(f"docs/reference/{name} is out of date; run tools/reference.py\n" for name in stale)
        return len(stale)
    for name in stale:
        (TARGET / name).write_text(PAGES[name]())
    return 0


def _is_fresh(name: str, text: str) -> bool:
    page = TARGET / name
    return page.exists() and page.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
