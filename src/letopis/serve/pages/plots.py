"""`/plots/plotly.min.js`: the plotting library, straight from its installed package."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse

from letopis.errors import MissingExtra
from letopis.serve.pages.answering import PageRoute

router = APIRouter(route_class=PageRoute)

_GUARD = re.compile(rb'document\.getElementById\("([0-9a-f]{40,64})"\)')


def _file() -> Path:
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise MissingExtra("plots need the package plotly; install Letopis with all its dependencies")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"


@router.get("/plots/plotly.min.js")
def plotly() -> Response:
    """The file; browsers keep it for a day."""
    return FileResponse(_file(), media_type="text/javascript", headers={"cache-control": "public, max-age=86400"})


@cache
def style_guards() -> tuple[str, ...]:
    """Ids of elements whose presence keeps the library from adding style sheets, which our policy forbids."""
    return tuple(sorted({found.decode() for found in _GUARD.findall(_file().read_bytes())}))
