"""Verbs and options that come with packages of their own say which one to install."""

from __future__ import annotations

from pathlib import Path

import pytest
from bare_installation import run_without_packages

from letopis.archive import Archive
from letopis.config import Settings, StoreSettings


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


def test_nothing_of_ours_imports_the_packages_or_an_extra(tmp_path: Path) -> None:
    doors = "api.app api.server cli.main cli.door cli.verbs.daemon daemon web"
    modules = f"{doors} exchange.imports jobs.language.interpreter"
    names = ", ".join(f"letopis.{name}" for name in modules.split())
    script = f"import {names}\nfrom letopis.operations.operation import all_operations\nall_operations()\n"
    done = run_without_packages(tmp_path, "-c", script)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.files
@pytest.mark.parametrize("words", [["get", "http://example.org/", "--offline"], ["verify"], ["verify", "--repair"]])
def test_contents_of_a_method_that_is_not_installed_name_its_package_and_stay(tmp_path: Path, words: list[str]) -> None:
    body = b'<html><body class="a"><p class="b">one</p><p class="b">two</p></body></html>' * 20
    folder = tmp_path / "archive"
    with Archive(folder, settings=Settings(store=StoreSettings(methods=("mgz1",)))) as archive:
        archive.put("http://example.org/", body)
        assert archive.versions("http://example.org/")[0].method == "mgz1"
    done = run_without_packages(tmp_path, "-m", "letopis.cli", "--archive", str(folder), *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "mgz1 needs 'pip install letopis-codecs'" in done.stderr
    with Archive(folder) as archive:
        assert archive.get("http://example.org/").body == body
