"""`letopis doctor` knows every optional part and the command that brings it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from letopis.cli.main import main

ROOT = Path(__file__).parent.parent.parent


def test_every_extra_is_named_with_the_command_that_brings_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--archive", str(tmp_path / "archive"), "doctor", "--json"])
    found = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]) - {"dev"}
    assert extras <= set(found)
    for name in extras:
        assert found[name]["detail"] in ("installed", f"pip install letopis[{name}]")
