"""The reference of the HTTP interface is what the code says."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_http_reference_is_up_to_date() -> None:
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "http_reference.py"))
    assert tool["TARGET"].read_text() == tool["text"](), "run tools/http_reference.py"
