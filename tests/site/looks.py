"""How readers see the pages: windows and colour schemes. LETOPIS_LONG=1 looks at all four, else at the two extremes."""

from __future__ import annotations

import os
from typing import Any

import pytest

WIDE, NARROW = {"width": 1280, "height": 850}, {"width": 390, "height": 844}
_LONG = bool(os.environ.get("LETOPIS_LONG"))
_NARROW_DARK = "narrow-dark"
_USUAL = {"wide-light": (WIDE, "light"), _NARROW_DARK: (NARROW, "dark")}
_FURTHER = {"wide-dark": (WIDE, "dark"), "narrow-light": (NARROW, "light")} if _LONG else {}

LOOKS = {name: {"viewport": size, "color_scheme": scheme} for name, (size, scheme) in {**_USUAL, **_FURTHER}.items()}
in_every_look: Any = pytest.mark.parametrize("look", [pytest.param(look, id=name) for name, look in LOOKS.items()])

_STORY_LOOKS = LOOKS if _LONG else {_NARROW_DARK: LOOKS[_NARROW_DARK]}
in_a_look: Any = pytest.mark.parametrize("look", [pytest.param(look, id=name) for name, look in _STORY_LOOKS.items()])
"""For what takes long: on a telephone, where room is least; `wear` shows a page of it in the other looks."""
_TONGUES = [("wide-light", "en-GB"), (_NARROW_DARK, "cs-CZ")]
if _LONG:
    _TONGUES = [(name, tongue) for tongue in ("en-GB", "cs-CZ") for name in LOOKS]
in_every_look_and_language: Any = pytest.mark.parametrize(
    "look", [pytest.param({**LOOKS[name], "locale": tongue}, id=f"{name}-{tongue}") for name, tongue in _TONGUES]
)
"""For the stories that the interface is made for."""


def wear(tab: Any, look: dict[str, Any]) -> None:
    """Shows an open page in another look."""
    tab.set_viewport_size(look["viewport"])
    tab.emulate_media(color_scheme=look["color_scheme"])
