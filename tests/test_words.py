"""Names and messages use the words of the field: docs/reference/glossary.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
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
SPEC_NUMBERS = re.compile(r"\bUC\d\b|\bpage \d\d\b|\bspec page\b", re.IGNORECASE)


def texts() -> Iterator[tuple[Path, str]]:
    for ending in ("*.py", "*.html", "*.po", "*.js", "*.xsl"):
        for path in sorted(SOURCE.rglob(ending)):
            yield path, path.read_text()


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
        for path, text in texts()
        if path.suffix == ".py"
        for name in OLD_NAMES.intersection(names_in(ast.parse(text)))
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


def test_public_class_names_are_unique() -> None:
    trees = [ast.parse(text) for path, text in texts() if path.suffix == ".py"]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1 and not name.startswith("_")] == []


def test_the_glossary_is_in_order_and_names_each_word_once() -> None:
    text = (Path(__file__).parent.parent / "docs" / "reference" / "glossary.md").read_text()
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", text, re.MULTILINE)
    assert len(words) >= 40
    assert words == sorted(set(words))
