"""Errors say what to do in the words of whoever reads them: calls in Python, verbs at the terminal and over HTTP."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from served_archive import running

import letopis
from letopis import Archive, errors
from letopis.cli.main import main
from letopis.errors import LetopisError, Remedy, shell_words
from letopis.operations.operation import all_operations

SOURCE = Path(letopis.__file__).parent
DOORS = ("cli", "api", "web", "replay", "operations", "jobs/language", "daemon.py")
"""What only people at a terminal or a browser reach."""
ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, LetopisError)}
SPOKEN_VERB = re.compile(r"['`]letopis [a-z]|(?<![\w-])--[a-z]")
URL = "http://example.org/unknown"


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        if not name.startswith(DOORS):
            yield name, ast.parse(file.read_text())


def called(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def words_of(node: ast.AST) -> Iterator[str]:
    """The texts inside an error, but not those of its remedy."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        elif not called(child, {"Remedy"}):
            yield from words_of(child)


def remedies() -> Iterator[tuple[str, str]]:
    """Verb and call of every remedy that is written out; what stands in braces is left out."""
    for _, tree in modules():
        for node in ast.walk(tree):
            if called(node, {"Remedy"}):
                assert isinstance(node, ast.Call)
                yield tuple(map(text_of, node.args[:2]))  # type: ignore[misc]


def text_of(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    return str(node.value) if isinstance(node, ast.Constant) else ""


def test_no_error_below_the_doors_names_a_verb_or_an_option() -> None:
    spoken = [
        (name, node.lineno, text)
        for name, tree in modules()
        for node in ast.walk(tree)
        if called(node, ERRORS) and isinstance(node, ast.Call)
        for text in words_of(node)
        if SPOKEN_VERB.search(text)
    ]
    assert spoken == []


def test_every_remedy_names_a_verb_and_a_call_that_there_are() -> None:
    verbs = {each.verb.split()[0] for each in all_operations().values() if each.verb} | {"crawl", "zrec"}
    found = list(remedies())
    assert len(found) > 10
    for verb, call in found:
        assert verb.split()[0] in verbs, verb
        if call.startswith("letopis."):
            resolve(call.partition("(")[0])


def resolve(path: str) -> object:
    """What a dotted name of Python leads to."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            found = getattr(found, name)
        return found
    raise AssertionError(path)


def test_a_page_that_is_not_known_is_told_in_the_words_of_each_door(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Archive(tmp_path / "a") as archive:
        with pytest.raises(errors.UnknownUrl, match=r"letopis\.Monitor\(archive\)\.get") as raised:
            archive.get(URL)
        assert "letopis check" not in str(raised.value)
        with running(archive) as web:
            told = web.get(f"/api/v1/history?url={URL}").json()["detail"]
    assert told.endswith(f"try 'letopis check {URL}'")
    assert main(["--archive", str(tmp_path / "a"), "history", URL]) == 3
    assert capsys.readouterr().err == f"letopis: {told}\n"


def test_an_error_keeps_its_remedy_on_its_way_to_another_process() -> None:
    error = errors.Busy("somebody writes", Remedy("stats", "letopis.Archive.stats()"))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), shell_words(again)) == (
        "somebody writes; try letopis.Archive.stats()",
        "somebody writes; try 'letopis stats'",
    )
