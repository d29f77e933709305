"""What is installed can be listed without a network, and an audit that could not be made does not pass."""

from __future__ import annotations

from pathlib import Path

import audit
import pytest
from sbom import bill_of_materials


def test_the_bill_of_materials_names_every_core_dependency_once() -> None:
    made = bill_of_materials("letopis", set())
    names = [part["name"].lower() for part in made["components"]]
    assert {"lxml", "starlette", "brotli"} <= set(names)
    assert len(names) == len(set(names))
    refs = {made["metadata"]["component"]["bom-ref"], *(part["bom-ref"] for part in made["components"])}
    assert {one["ref"] for one in made["dependencies"]} == refs
    assert all(set(one["dependsOn"]) <= refs for one in made["dependencies"])
    assert made == bill_of_materials("letopis", set())


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ("no network", 2, "could not be asked"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "0 weaknesses"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}]}', 1, "CVE-1"),
        ('{"dependencies": [{"name": "a", "skip_reason": "unknown"}]}', 2, "nothing could be said of a"),
    ],
)
def test_an_audit_passes_only_where_it_was_answered(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], answer: str, status: int, said: str
) -> None:
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    program.chmod(0o755)
    assert audit.main(str(program), ["requirements.txt"]) == status
    assert said in "".join(capfd.readouterr())
