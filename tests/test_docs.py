"""What the docs say is true: the reference is fresh, what they name is there, and the commands they show work."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted_site import ScriptedSite

import letopis
import letopis.errors
from letopis.cli.main import VERBS, load_verb
from letopis.cli.main import root_command as cli
from letopis.config import settings_table
from letopis.monitor.monitor import Monitor, MonitoredResource
from letopis.operations.operation import all_operations

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "letopis"
DOCS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
INTERNALS = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "internals").glob("*.md"))]
INTERNALS += sorted((ROOT / "docs" / "decisions").glob("*.md"))
TOOL = runpy.run_path(str(ROOT / "tools" / "reference.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text()


@pytest.mark.parametrize("page", list(TOOL["PAGES"]))
def test_pages_of_the_reference_are_what_the_code_says(page: str) -> None:
    assert reference(page) == TOOL["PAGES"][page](), "run tools/reference.py"


def test_every_verb_of_an_operation_is_in_the_table_of_verbs() -> None:
    assert {one.verb.partition(" ")[0] for one in all_operations().values() if one.verb} <= set(VERBS)


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
    help_text = CliRunner().invoke(cli, [name, "--help"], prog_name="letopis").output
    assert f"letopis {name}" in help_text.split("Examples", 1)[-1]


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
    return subprocess.run(
        [sys.executable, "-m", "letopis.cli", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=300,
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
    assert understood(line), where


def understood(line: str) -> list[str]:
    """The words of a command as the command line took them; raises where it does not take one."""
    words = shlex.split(line.split(" | ")[0].split(" > ")[0].removesuffix(" &"), comments=True)[1:]
    context = cli.make_context("letopis", list(words), obj=_given())
    name, command, rest = cli.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    taken = command.make_context(name or "", rest, parent=context)
    return [*taken.command_path.split()[1:], *map(str, taken.params)]


def equivalents() -> list[str]:
    """Commands of the tables of the page for people who come from other tools."""
    text = (ROOT / "docs" / "guide" / "migrate.md").read_text().split("## What is called what")[1]
    rows = [row.rpartition(" | ")[2] for row in re.findall(r"^\| (.+) \|$", text, re.MULTILINE)]
    return [command for row in rows for command in re.findall(r"`(letopis [^`]+)`", row)]


@pytest.mark.parametrize("line", equivalents())
def test_every_equivalent_of_another_tool_is_a_command(line: str) -> None:
    assert understood(line)[0] == line.split()[1]


def test_every_peer_has_equivalents_and_what_it_does_better() -> None:
    text = (ROOT / "docs" / "guide" / "migrate.md").read_text().split("## What is called what")[1]
    sections = text.split("\n### ")[1:]
    assert [part.partition("\n")[0] for part in sections if "What they do better: " not in part] == []
    titles = " ".join(part.partition("\n")[0] for part in sections)
    peers = (
        "urlwatch", "changedetection.io", "Scrapy", "Heritrix", "wget", "pywb", "ArchiveBox", "Browsertrix",
        "LinkChecker", "Screaming Frog", "rsync", "zsync", "zchunk", "Wayback",
    )  # fmt: skip
    assert [peer for peer in peers if peer not in titles] == []
    assert len(equivalents()) >= 45


def _given() -> object:
    from letopis.cli.context import CliContext

    return CliContext()


def links(path: Path) -> list[str]:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text())
    return [target for target in targets if "://" not in target and not target.startswith("mailto:")]


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    assert [target for target in links(path) if not (path.parent / target).exists()] == []


def anchors(path: Path) -> set[str]:
    """What links may name on a page: its headings, as sites of documents write them."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    words = (
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ +(.*)$", prose, re.MULTILINE)
    )
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower())) for heading in words}


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_links_to_headings_lead_to_one(path: Path) -> None:
    named = re.findall(r"\]\(([^)#\s:]*)#([\w-]+)\)", path.read_text())
    pages = [((path.parent / target) if target else path, heading) for target, heading in named]
    assert [
        (page.name, heading) for page, heading in pages if page.suffix == ".md" and heading not in anchors(page)
    ] == []


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", [path for path in DOCS if python_blocks(path)], ids=name_of)
def test_python_shown_in_the_docs_imports_what_is_there(path: Path) -> None:
    shown = [node for block in python_blocks(path) for node in ast.walk(ast.parse(block))]
    imports = [node for node in shown if isinstance(node, ast.ImportFrom) and str(node.module).startswith("letopis")]
    missing = [
        f"{node.module}.{alias.name}"
        for node in imports
        for alias in node.names
        if not resolves(f"{node.module}.{alias.name}")
    ]
    assert missing == []


def test_every_public_name_is_in_an_example_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted_site.set("/", b"<p>a page")
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(ROOT / "docs" / "reference" / "python.md")
    for block in blocks:
        exec(compile(block.replace("https://example.org/", scripted_site.url("/")), "python.md", "exec"), {})
    shown = capsys.readouterr().out
    for sentence in ("the server did not give it: ", "not in the archive: ", "this makes no sense: ", "1000000 30"):
        assert sentence in shown
    used = {node.id for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Name)}
    assert sorted(set(letopis.__all__) - used) == []
    called = {node.attr for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Attribute)}
    asked = {name for kind in (Monitor, MonitoredResource) for name in vars(kind) if not name.startswith("_")}
    assert sorted(asked - called - _NOT_IN_EXAMPLES) == []


_NOT_IN_EXAMPLES = {"close", "look", "use_browser"}
"""What `with` does, what the other questions are made of, and what needs Chromium."""


def test_the_python_of_the_readme_tells_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = python_blocks(ROOT / "README.md")
    asked = block.replace("https://example.org/", scripted_site.url("/"))
    asked = asked.replace("changes()", "changes(now=True)")  # within ten seconds the record would answer
    example = compile(asked, "README.md", "exec")
    told = []
    for page in (b"<p>open on Monday", b"<p>open on Monday", b"<p>open on Tuesday"):
        scripted_site.set("/", page)
        exec(example, {})
        told.append(capsys.readouterr().out)
    assert told[0].startswith("no change since my last look\nb'<p>open on Monday'")
    assert told[1] == told[0]
    assert "-open on Monday" in told[2]
    assert "+open on Tuesday" in told[2]


def quoted(path: Path) -> list[str]:
    """What stands between single backticks, outside of blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL))


@cache
def python_files() -> dict[str, str]:
    """All modules of this repository by their paths."""
    folders = (ROOT / "src", ROOT / "packages", ROOT / "tools", ROOT / "tests", ROOT / "bench")
    return {str(path.relative_to(ROOT)): path.read_text() for folder in folders for path in folder.rglob("*.py")}


@cache
def classes() -> dict[str, str]:
    """The text of every class of the packages by its name."""
    found = {}
    for path, text in python_files().items():
        if path.startswith(("src/", "packages/")):
            nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
            found |= {node.name: ast.get_source_segment(text, node) or "" for node in nodes}
    return found


@cache
def words() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", " ".join(python_files().values())))


def is_there(name: str) -> bool:
    """Whether what looks like a name of the code is one; everything else passes."""
    if re.fullmatch(r"[\w/\-]+\.py", name):
        return any(path == name or path.endswith("/" + name) for path in python_files())
    if re.fullmatch(r"letopis(\.[a-z_0-9]+)+(\.[A-Z]\w*)?(\(\))?", name):
        return resolves(name.removesuffix("()")) or any(f'"{name}"' in text for text in python_files().values())
    if match := re.fullmatch(r"([A-Z]\w*[a-z]\w*)\.(\w+)(\(.*\))?", name):
        return match[1] in classes() and re.search(rf"\b{match[2]}\b", classes()[match[1]]) is not None
    if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w*(\(.*\))?|[a-z]+_[a-z_]+(\(.*\))?", name):
        return name.partition("(")[0] in words()
    return True


def resolves(name: str) -> bool:
    """Whether a module, or an attribute of one, can be had."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return all(hasattr(found, part) for part in parts[length : length + 1])
    return False


@pytest.mark.parametrize("path", INTERNALS, ids=name_of)
def test_modules_and_classes_that_are_named_are_there(path: Path) -> None:
    made = set(re.findall(r"^New file `([^`]+)`", path.read_text(), re.MULTILINE))
    assert [name for name in quoted(path) if name not in made and not is_there(name)] == []


NO_SETTINGS = {"jobs.language"}
"""Names of code that look like settings."""
_FILES = ("html", "md", "py", "toml", "xml", "txt", "json", "db", "js")


def named_settings(path: Path) -> Iterator[str]:
    sections = {name.partition(".")[0] for name in settings_table()}
    for text in quoted(path):
        match = re.match(r"([a-z]+)\.([a-z_0-9]+)(?: =|$)", text)
        if match and match[1] in sections and match[2] not in _FILES:
            yield f"{match[1]}.{match[2]}"


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_settings_that_are_named_are_there(path: Path) -> None:
    assert [name for name in named_settings(path) if name not in settings_table() and name not in NO_SETTINGS] == []


def test_optional_parts_that_are_named_are_there() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        extra
        for path in DOCS
        for part in re.findall(r"letopis\[([\w,\-]+)\]", path.read_text())
        for extra in part.split(",")
    }
    assert named <= set(known)


@pytest.mark.parametrize("path", DOCS, ids=name_of)
def test_docs_speak_of_what_there_is_and_not_of_pages_that_asked_for_it(path: Path) -> None:
    assert re.findall(r"\bUC ?\d+|\buse case \d|\bspec(?:ification)? page|\(page \d\d\)", path.read_text()) == []


# How it is built


def architecture() -> str:
    return (ROOT / "docs" / "internals" / "architecture.md").read_text()


def test_the_picture_of_the_layers_is_what_the_tests_hold_the_code_to() -> None:
    layers = runpy.run_path(str(ROOT / "tests" / "test_architecture.py"))["LAYERS"]
    picture = re.search(r"## Layers\n.*?```\n(.*?)```", architecture(), re.DOTALL)
    assert picture is not None
    units = set().union(*layers)
    shown = [{word for word in re.split(r"\s{2,}", line.strip()) if word in units} for line in picture[1].splitlines()]
    assert shown == layers


def test_every_unit_is_described_once() -> None:
    layers = runpy.run_path(str(ROOT / "tests" / "test_architecture.py"))["LAYERS"]
    table = architecture().split("## What each unit knows")[1].split("\n## ")[0]
    named = [
        unit for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE) for unit in re.findall(r"`([^`]+)`", row)
    ]
    assert sorted(named) == sorted(set().union(*layers))


def walk() -> str:
    return architecture().split("## One page, walked")[1].split("\n## ")[0].split("\nFour envelopes")[0]


def test_the_walk_names_the_files_that_a_page_passes() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "site" / "page_walk.py")], capture_output=True, text=True, check=True
    )
    passed = set(json.loads(done.stderr.splitlines()[-1]))
    assert set(re.findall(r"`([\w/]+\.py)`", walk())) == passed
    values = {path for path in passed if path.startswith(("urls/", "model/"))}
    assert len(passed) <= 40
    assert f"{len(passed)}, of which {len(values)} belong to the lowest layer" in " ".join(walk().split())


def test_the_walk_names_the_shapes_of_a_page_in_their_order() -> None:
    shapes = runpy.run_path(str(ROOT / "tests" / "site" / "page_walk.py"))["SHAPES"]
    assert re.findall(r"\*\*`(\w+)`\*\*", walk()) == [shape.__name__ for shape in shapes]
    assert len(shapes) <= 8
