"""The shape of the code keeps the bounds of its design; `make metrics` prints the same figures."""

from __future__ import annotations

from metrics import figures


def test_the_code_keeps_its_bounds() -> None:
    found = figures()
    assert len(found) >= 8
    assert [str(figure) for figure in found if not figure.holds] == []
