"""`make metrics`: the shape of the code in figures, each beside the bound that the design sets.

Counts the package in `src/letopis`: files, lines, the median of a module, imports
inside functions, public class names that stand twice, core dependencies and what
they take once installed. Files and lines grow with what the package can do: their
bound is what is there, and each feature that raises it says so (docs/decisions/0015).
Exits with 1 when a bound is broken;
`tests/gates` asks the same figures.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "letopis"


class Figure(NamedTuple):
    """One figure with the least and the most that it may be, and the goal where that is not reached yet."""

    name: str
    value: float
    least: float | None
    most: float | None
    goal: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it keeps its bounds."""
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)


def modules(package: Path = PACKAGE) -> dict[Path, str]:
    """Every module of the package with its text."""
    return {path: path.read_text() for path in sorted(package.rglob("*.py"))}


def late_imports(tree: ast.Module) -> Iterator[ast.stmt]:
    """Imports inside functions."""
    outside: list[ast.AST] = [tree]
    while outside:
        node = outside.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom))
        else:
            outside += ast.iter_child_nodes(node)


def class_names(trees: list[ast.Module]) -> Counter[str]:
    """How often each public class name stands in the package."""
    names = (node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return Counter(name for name in names if not name.startswith("_"))


def dependencies() -> list[Requirement]:
    """What the core needs on this interpreter."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(line) for line in project["dependencies"]]
    return [one for one in wanted if one.marker is None or one.marker.evaluate()]


def core_distributions() -> list[Distribution]:
    """The core's dependencies, and theirs, as far as they are installed."""
    seen: dict[str, Distribution | None] = {}
    waiting = [one.name for one in dependencies()]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        found = seen[name] = _found(name)
        if found is not None:
            waiting += [one.name for one in map(Requirement, found.requires or ()) if _applies(one)]
    return [found for found in seen.values() if found is not None]


def installed_bytes() -> int:
    """What they take on disk, without what the interpreter compiles."""
    files = ((found, str(file)) for found in core_distributions() for file in found.files or ())
    return sum(_size(found, file) for found, file in files if "__pycache__" not in file)


def _found(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _applies(wanted: Requirement) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": ""})


def _size(found: Distribution, file: str) -> int:
    path = Path(str(found.locate_file(file)))
    return path.stat().st_size if path.is_file() else 0


def figures() -> list[Figure]:
    """All figures of the tree as it stands."""
    texts = modules()
    trees = [ast.parse(text) for text in texts.values()]
    sizes = [text.count("\n") for path, text in texts.items() if path.name != "__init__.py"]
    late = sum(1 for tree in trees for _ in late_imports(tree))
    repeated = [name for name, count in class_names(trees).items() if count > 1]
    return [
        Figure("files", len(texts), None, 390, 300),
        Figure("lines", sum(text.count("\n") for text in texts.values()), None, 97_300, 54_000),
        Figure("lines of a module, median", median(sizes), 130, 250),
        Figure("lines of a module, most", max(sizes), None, 600),
        Figure("imports inside functions", late, None, 15),
        Figure("class names that stand twice", len(repeated), None, 0),
        Figure("core dependencies", len(dependencies()), None, 22),
        Figure("installed size, MB", round(installed_bytes() / 1e6, 1), None, 192),
    ]


def main() -> int:
    """Prints the table, or JSON lines."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--json", action="store_true", help="one JSON object a figure")
    as_json = reader.parse_args().json
    found = figures()
    for figure in found:
        print(json.dumps({**figure._asdict(), "holds": figure.holds}) if as_json else _line(figure))
    return 0 if all(figure.holds for figure in found) else 1


def _line(figure: Figure) -> str:
    bounds: list[Any] = [f"at least {figure.least:g}"] if figure.least is not None else []
    bounds += [f"at most {figure.most:g}"] if figure.most is not None else []
    missed = figure.goal is not None and figure.value > figure.goal
    remark = "BROKEN" if not figure.holds else f"goal {figure.goal:g} missed" if missed else ""
    return f"{figure.name:32} {figure.value:>10g}   {' and '.join(bounds):28} {remark}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
