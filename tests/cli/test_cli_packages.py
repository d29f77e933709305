"""Verbs and options that come with packages of their own say which one to install."""

from __future__ import annotations

from pathlib import Path

import pytest
from bare_installation import run_without_packages


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["demo"], "letopis-demo"),
        (["demo", "--help"], "letopis-demo"),
        (["simulate", "--whole", "--policy", "uniform"], "letopis-demo"),
        (["import", ".", "--kind", "git", "--url", "https://example.org/"], "letopis-migrate"),
        (["import", "."], "letopis-migrate"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, words: list[str], package: str) -> None:
    done = run_without_packages(tmp_path, "-m", "letopis.cli", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"'pip install {package}'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_lists_verbs_of_packages_that_are_not_installed(tmp_path: Path) -> None:
    done = run_without_packages(tmp_path, "-m", "letopis.cli", "--help")
    assert done.returncode == 0
    assert "demo " in done.stdout


def test_nothing_of_ours_imports_the_packages(tmp_path: Path) -> None:
    modules = "api.app cli.main cli.door daemon exchange.imports jobs.language.interpreter operations.registry web"
    names = ", ".join(f"letopis.{name}" for name in modules.split())
    script = f"import {names}\nletopis.operations.registry.all_operations()\n"
    done = run_without_packages(tmp_path, "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
