"""Names and messages use the words of the field: docs/reference/glossary.md."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import letopis

SOURCE = Path(letopis.__file__).parent
OLD_NAMES = {
    "Owed", "Holding", "plant", "Manner", "Manners", "Doubts", "Lessons", "Handover", "Handed", "Received", "Leads",
    "pour", "leaning", "Newsroom", "Desk", "Lookout", "Backstage", "DeedShape", "StoodShape", "PlantedShape",
    "Given", "_said", "told", "pulse", "cage", "manner", "manners", "owed", "lessons", "handover",
}  # fmt: skip
OLD_TEXTS = (
    "Tell whom", "What they told", "Stands on", "The account is there", "names a day that never comes",
    "a frame does not begin like one",
)  # fmt: skip
BACKTICKED = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`")
NOT_OURS = {
    "selectors.BaseSelector.select", "distributed.Client", "example.co.uk", "example.org", "CS", "HHMMSS",
    "max_", "preconnect",
}  # fmt: skip
"""Names of others, and examples."""
SPEC_NUMBERS = re.compile(r"\bUC\d\b|\bpage \d\d\b|\bspec page\b", re.IGNORECASE)


@cache
def texts() -> list[tuple[Path, str]]:
    endings = ("*.py", "*.html", "*.po", "*.js", "*.xsl")
    return [(path, path.read_text()) for ending in endings for path in sorted(SOURCE.rglob(ending))]


@cache
def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(text) for path, text in texts() if path.suffix == ".py"}


def names_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def test_no_old_name_is_left() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path, tree in modules().items()
        for name in OLD_NAMES.intersection(names_in(tree))
    }
    found |= {str(path) for path, _ in texts() if path.stem in OLD_NAMES}
    assert found == set()


def test_no_old_wording_is_left() -> None:
    found = [f"{path.relative_to(SOURCE)}: {old}" for path, text in texts() for old in OLD_TEXTS if old in text]
    assert found == []


def test_the_code_speaks_of_what_it_does_and_not_of_pages_that_asked_for_it() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {match[0]}"
        for path, text in texts()
        if path.suffix == ".py"
        for match in SPEC_NUMBERS.finditer(text)
    ]
    assert found == []


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Texts that stand alone, those behind constants among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def prose_of(text: str, tree: ast.Module) -> Iterator[str]:
    """What a module says to its readers."""
    yield from (str(found.value) for found in docstrings(tree))
    yield from re.findall(r"# .*", text)


def words_of(tree: ast.Module) -> Iterator[str]:
    """Every name that a module makes or uses, and the words of its texts: tables, fields, verbs, files."""
    said = set(map(id, docstrings(tree)))
    for node in ast.walk(tree):
        for part in ("name", "id", "attr", "arg", "module", "asname"):
            found = getattr(node, part, None)
            yield from found.split(".") if isinstance(found, str) else ()
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield from re.findall(r"\w+", node.value)


def members_of(trees: list[ast.Module]) -> dict[str, set[str]]:
    """What each class of the package itself names; classes that inherit are left out."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    plain = ("NamedTuple", "Protocol", "Exception")
    return {
        one.name: set(words_of(ast.Module([one], []))) for one in classes if {*map(ast.unparse, one.bases)} <= {*plain}
    }


def test_names_that_the_code_speaks_of_exist() -> None:
    known = {*dir(builtins), *sys.stdlib_module_names, *keyword.kwlist, "py"}
    known |= {part for path in modules() for part in path.relative_to(SOURCE).with_suffix("").parts}
    known |= {name for tree in modules().values() for name in words_of(tree)}
    members = members_of(list(modules().values()))
    stale = []
    for path, tree in modules().items():
        for name in {found for said in prose_of(path.read_text(), tree) for found in BACKTICKED.findall(said)}:
            parts = name.split(".")
            lost = not known.issuperset(parts) or (parts[0] in members and not members[parts[0]].issuperset(parts[1:]))
            if lost and name not in NOT_OURS:
                stale.append(f"{path.relative_to(SOURCE)}: {name}")
    assert stale == []


def test_public_class_names_are_unique() -> None:
    names = Counter(
        node.name for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1 and not name.startswith("_")] == []


def test_the_glossary_is_in_order_and_names_each_word_once() -> None:
    text = (Path(__file__).parent.parent / "docs" / "reference" / "glossary.md").read_text()
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", text, re.MULTILINE)
    assert len(words) >= 40
    assert words == sorted(set(words))
