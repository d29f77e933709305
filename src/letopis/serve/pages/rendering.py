"""Templates: where they lie and what every page is given."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

_HERE = Path(__file__).parent.parent
STATIC = _HERE / "static"


def _short(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%d %H:%M") if moment else ""


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.1f} TB"


environment = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters["short"] = _short
environment.filters["size"] = _size


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A template rendered with its values; everything is escaped."""
    text = environment.get_template(template).render(path=request.url.path, **values)
    return HTMLResponse(text, status)
