"""What is installed: the package holds all it needs and nothing of its workshop, and starts with few modules."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from letopis.cli.main import VERBS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "letopis"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_BUILDING = PROJECT["tool"]["setuptools"]
MOST_PACKAGE_BYTES = 4_770_000
MOST_MODULES = {"import letopis": 35, "import letopis.cli.main": 110}
"""Modules beyond those that the interpreter itself brings."""


def packaged() -> list[Path]:
    """Files below the package, but for what the interpreter wrote there."""
    return [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_every_file_of_the_package_gets_into_the_wheel() -> None:
    patterns = [pattern.removeprefix("**/") for pattern in _BUILDING["package-data"]["letopis"]]
    left_out = [
        str(path.relative_to(PACKAGE))
        for path in packaged()
        if path.suffix != ".py" and not any(fnmatch(path.name, pattern) for pattern in patterns)
    ]
    assert left_out == []


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in packaged() if path.suffix == ".py"}
    assert [str(folder.relative_to(PACKAGE)) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_the_wheel_holds_nothing_of_the_workshop() -> None:
    assert _BUILDING["packages"]["find"] == {"where": ["src"]}
    assert [
        path.name for path in (ROOT / "src").iterdir() if path.is_dir() and not path.name.endswith(".egg-info")
    ] == ["letopis"]
    assert [path.name for path in packaged() if re.match(r"test_|conftest|.*_test\.py", path.name)] == []
    assert sum(path.stat().st_size for path in packaged()) < MOST_PACKAGE_BYTES


def test_the_manual_page_is_installed_with_it() -> None:
    [page] = _BUILDING["data-files"]["share/man/man1"]
    assert (ROOT / page).read_text().startswith(".TH LETOPIS 1")


@pytest.mark.parametrize("start", list(MOST_MODULES))
def test_starting_reads_few_modules(start: str) -> None:
    code = f"import sys\nbefore = set(sys.modules)\n{start}\nprint(len(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert int(done.stdout) <= MOST_MODULES[start]


def test_help_reads_no_module_of_a_verb() -> None:
    code = (
        "import sys\nfrom letopis.cli.main import main\nmain(['--help'])\n"
        "print([name for name in sys.modules if name.startswith(('letopis.operations', 'letopis.archive'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines()[-1] == "[]"
    assert len(VERBS) > 50
