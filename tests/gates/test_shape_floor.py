"""The shape of the code keeps the bounds of its design; `make metrics` prints the same figures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tools"))

from metrics import Figure, figures


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.name.replace(" ", "-"))
def test_the_code_keeps_its_bounds(figure: Figure) -> None:
    assert figure.holds, f"{figure.name}: {figure.value:g}, at least {figure.least}, at most {figure.most}"
