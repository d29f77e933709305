"""`/settings`: every setting, what it means, and what it is now."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from letopis.catalog.accounts import OWN
from letopis.config import Settings, table
from letopis.schedule.why import span
from letopis.serve.access import ThePrincipal
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.rendering import size
from letopis.serve.shared import TheArchive

router = APIRouter(route_class=PageRoute)

_SECRET = ("key", "password", "secret", "token", "headers")
_PASSWORD = re.compile(r"(://[^/@:\s]*:)[^/@\s]+@")
_PRIVATE = ("url", "path", "proxy", "endpoint", "ca_file", "address", "trusted_proxies")
"""Settings that tell about the machine or hold credentials: for owners only."""


class Shown(NamedTuple):
    """A setting as the page shows it."""

    name: str
    help: str
    value: str
    default: str
    changed: bool
    variable: str


@router.get("/settings")
def settings(request: Request, archive: TheArchive, principal: ThePrincipal) -> Response:
    """The settings this service runs with; secrets are never shown."""
    rows = shown(archive.settings, owner=principal.may(OWN))
    sections = [(name, list(group)) for name, group in groupby(rows, lambda row: row.name.partition(".")[0])]
    return page(request, "settings.html", sections=sections, file=Markup("<code>letopis.toml</code>"))


def shown(given: Settings, *, owner: bool) -> list[Shown]:
    """All settings; what only owners may see is masked for others."""
    rows = []
    for row in table().values():
        section, _, name = row.name.partition(".")
        value = getattr(getattr(given, section), name)
        text = _PASSWORD.sub(r"\1…@", _text(value, row.unit))
        if value and any(word in name for word in _SECRET):
            text = "set"
        elif value and name in _PRIVATE and not owner:
            text = "set; only owners see it"
        rows.append(Shown(row.name, row.help, text, _text(row.default, row.unit), value != row.default, row.variable))
    return rows


def _text(value: Any, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if unit and value:
        return size(value) if unit == "bytes" else span(float(value))
    return str(value) if value != "" else "none"
