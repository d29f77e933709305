"""The shape of the code: imports point down, the record has one door, public names stay."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import letopis

SOURCE = Path(letopis.__file__).parent

LAYERS = [
    {"cli", "api", "web", "replay", "jobs.language"},
    {"operations"},
    {"daemon", "crawl", "monitor", "exchange", "jobs"},
    {"frontier", "look", "schedule"},
    {"index"},
    {"archive"},
    {"store", "catalog"},
    {"fetch", "extract", "change", "codec", "zrec"},
    {"urls", "model", "config", "errors", "binary", "plugins", "zstandard", "lazy", "bounded", "tuples"},
]
RANK = {unit: rank for rank, layer in enumerate(LAYERS) for unit in layer}
FREE_NEIGHBOURS = {
    ("cli", "api"), ("api", "web"), ("api", "replay"), ("web", "api"), ("replay", "api"),
    ("web", "replay"), ("replay", "web"),
    ("urls", "model"), ("urls", "errors"), ("model", "errors"), ("config", "errors"), ("config", "model"),
    ("binary", "errors"), ("bounded", "errors"), ("bounded", "lazy"), ("urls", "bounded"), ("plugins", "errors"),
    ("config", "lazy"), ("urls", "lazy"), ("plugins", "lazy"), ("daemon", "crawl"), ("daemon", "monitor"),
    ("frontier", "look"), ("frontier", "schedule"),
}  # fmt: skip
"""Within a layer only these may know each other."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def modules() -> list[tuple[str, Path]]:
    return [(unit_of(path), path) for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def unit_of(path: Path) -> str:
    return unit_named(path.relative_to(SOURCE).with_suffix("").parts)


def unit_named(parts: Sequence[str]) -> str:
    """Units are the packages of `letopis`; the steps of jobs are one of their own, above what runs them."""
    return "jobs.language" if tuple(parts[:2]) == ("jobs", "language") else parts[0]


def imported_units(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("letopis"):
            parts = node.module.split(".")
            names |= {unit_named(parts[1:])} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            inside = (alias.name for alias in node.names if alias.name.startswith("letopis."))
            names |= {unit_named(name.split(".")[1:]) for name in inside}
    return names & set(RANK)


def allowed(unit: str, other: str) -> bool:
    return unit == other or other == "tuples" or RANK[unit] < RANK[other] or (unit, other) in FREE_NEIGHBOURS


def test_every_module_belongs_to_a_unit_of_the_architecture() -> None:
    assert {unit for unit, _ in modules()} <= set(RANK)


def test_imports_point_down() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} imports {other}"
        for unit, path in modules()
        for other in imported_units(tree_of(path))
        if not allowed(unit, other)
    ]
    assert wrong == []


def module_name(path: Path) -> str:
    parts = list(path.relative_to(SOURCE.parent).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def direct_imports(path: Path, known: set[str]) -> set[str]:
    found = set()
    for node in tree_of(path).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (whole | {node.module}) & known
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & known
    return found


def test_modules_form_no_cycle() -> None:
    paths = {module_name(path): path for _, path in modules() if path.name != "__init__.py"}
    edges = {name: direct_imports(path, set(paths)) for name, path in paths.items()}
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail, name])
        if name not in done:
            for other in edges[name]:
                walk(other, (*trail, name))
            done.add(name)

    for name in edges:
        walk(name, ())


BELOW_ARCHIVE = frozenset().union(*LAYERS[LAYERS.index({"archive"}) :])
SQL = re.compile(r"\b(SELECT|INSERT INTO|DELETE FROM|CREATE TABLE)\s", re.ASCII)


def test_the_record_has_one_door() -> None:
    """Above the archive nobody imports the catalogue or the store, reaches into them, or words SQL."""
    wrong = []
    for unit, path in modules():
        if unit in BELOW_ARCHIVE:
            continue
        tree = tree_of(path)
        name = path.relative_to(SOURCE)
        wrong += [f"{name} imports {other}" for other in imported_units(tree) & {"catalog", "store"}]
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _reaches_in(node):
                wrong.append(f"{name}:{node.lineno} reaches for {ast.unparse(node)}")
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value):
                wrong.append(f"{name}:{node.lineno} words SQL")
    assert wrong == []


def _reaches_in(node: ast.Attribute) -> bool:
    """Whether something of the archive's inside is taken hold of; settings have sections of the same names."""
    owner = ast.unparse(node.value)
    inside = node.attr in ("catalog", "_catalog", "database") or (
        node.attr in ("store", "_store") and "archive" in owner
    )
    return inside and "settings" not in owner and "Settings" not in owner


def test_zstandard_comes_from_one_place() -> None:
    others = [path.name for _, path in modules() if "backports" in path.read_text() and path.stem != "zstandard"]
    assert others == []


def repeated_possessively(pattern: str) -> list[str]:
    """How each group begins that the pattern repeats without giving back."""
    bare = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", pattern, flags=re.DOTALL)
    opened, found = [], []
    for place, sign in enumerate(bare):
        if sign == "(":
            opened.append(place)
        elif sign == ")" and opened:
            begin = opened.pop()
            if bare[place + 1 : place + 3] in ("*+", "++", "?+"):
                found.append(bare[begin : begin + 3])
    return found


def test_a_browser_is_driven_without_a_driver_of_others() -> None:
    """What playwright and its process in node do for a page costs a third of the page again."""
    assert [
        path.name for _, path in modules() if re.search(r"^\s*(import|from) playwright", path.read_text(), re.M)
    ] == []


def test_only_atomic_groups_are_repeated_possessively() -> None:
    """Python before 3.11.5, that of Debian 12 too, gives wrong places where a possessive repeat could turn back."""
    assert repeated_possessively(r"a(?:[)]b(?>c|\))*+)?+") == ["(?>", "(?:"]
    files = [*SOURCE.rglob("*.py"), *(SOURCE.parents[1] / "packages").rglob("src/**/*.py")]
    begins = [
        (path.name, node.lineno, begin)
        for path in files
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        for begin in repeated_possessively(
            node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
        )
    ]
    assert len(begins) > 15
    signs = "()*"  # a set of characters that an address may hold
    assert [where for *where, begin in begins if begin not in ("(?>", signs)] == []


def test_no_module_gives_a_name_to_two_values() -> None:
    """The second would take the place of the first in all functions, also in those above it."""
    twice = [
        f"{path.relative_to(SOURCE)}: {name}"
        for _, path in modules()
        for name, count in Counter(
            target.id
            for node in tree_of(path).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ).items()
        if count > 1
    ]
    assert twice == []


def test_no_drawer_called_utils() -> None:
    drawers = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py", "tools.py"}
    assert [path for _, path in modules() if path.name in drawers] == []


def long_functions(path: Path) -> list[str]:
    tree = tree_of(path)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [f"{path.name}:{f.name}" for f in functions if (f.end_lineno or 0) - f.lineno + 1 > 50]


def test_functions_and_modules_stay_small() -> None:
    assert [name for _, path in modules() for name in long_functions(path)] == []
    assert [path.name for _, path in modules() if len(path.read_text().splitlines()) > 500] == []


def test_public_names_are_frozen() -> None:
    wanted = {
        "Archive", "Monitor", "Put", "LetopisError", "NotFound", "Unavailable", "DocumentTooLarge", "Refused",
        "Damaged",
    }  # fmt: skip
    assert wanted <= set(letopis.__all__)
    assert all(hasattr(letopis, name) for name in letopis.__all__)


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """A module that is loaded becomes an attribute of its package: one of the same name would hide the other."""
    assert not {path.stem for path in SOURCE.iterdir()} & set(letopis.__all__)


def test_errors_carry_the_exit_status_of_the_command_line() -> None:
    statuses = {"UsageError": 2, "NotFound": 3, "Unavailable": 4, "DocumentTooLarge": 5, "Damaged": 6, "Refused": 7}
    errors = __import__("letopis.errors", fromlist=["errors"])
    assert {name: getattr(errors, name).exit_status for name in statuses} == statuses
