"""How readers see the pages: windows and colour schemes. LETOPIS_LONG=1 looks at all four, else at the two extremes."""

from __future__ import annotations

import os
from typing import Any

import pytest

WIDE, NARROW = {"width": 1280, "height": 850}, {"width": 390, "height": 844}
_USUAL = [("wide", WIDE, "light"), ("narrow", NARROW, "dark")]
_FURTHER = [("wide", WIDE, "dark"), ("narrow", NARROW, "light")] if os.environ.get("LETOPIS_LONG") else []

LOOKS = [
    pytest.param({"viewport": size, "color_scheme": scheme}, id=f"{name}-{scheme}")
    for name, size, scheme in _USUAL + _FURTHER
]
in_every_look: Any = pytest.mark.parametrize("look", LOOKS)
