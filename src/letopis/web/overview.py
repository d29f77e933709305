"""`/`: what the archive holds and what changed lately. `/find`: from a text to a page. `/storage`, `/settings`."""

from __future__ import annotations

import os
import re
import shutil
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from letopis.api.access import PrincipalDep
from letopis.api.requests import ArchiveDep
from letopis.archive import Archive
from letopis.catalog.activity import DAY, Activity
from letopis.config import Settings, settings_table
from letopis.errors import BadUrl
from letopis.model import from_millis, to_millis
from letopis.model.rights import OWN
from letopis.schedule.policies import format_span
from letopis.urls import host, parse_user_url
from letopis.web.cache import page_cache_of
from letopis.web.charts import Bar, bars
from letopis.web.languages import translatable
from letopis.web.pages import PageRoute, human_size, iso_day, render_page, url_in_path

router = APIRouter(route_class=PageRoute)

DAYS = 30
"""Days that the overview looks back."""
_LISTED = 30


class CrawlBacklog(NamedTuple):
    """What waits. `fresh` is the share of visited pages that are not overdue, None when none is planned."""

    new: int
    again: int
    due: int
    fresh: float | None


@router.get("/")
def overview(request: Request, archive: ArchiveDep, before: str = "") -> Response:
    """Totals, freshness, activity, hosts, latest changes; `before` goes further back in the list."""
    known = page_cache_of(request)
    now = to_millis(archive.clock())
    queue = known.get("queue", 2, lambda: _backlog(archive, now))
    changes = archive.catalog.recent.changes(_LISTED + 1, _position(before))
    return render_page(
        request,
        "overview.html",
        stats=known.soon("stats", 10, archive.stats),
        queue=queue,
        days=known.get("days", 10, lambda: _days(archive, now)),
        hosts=known.soon("hosts", 10, lambda: archive.catalog.recent.hosts(12)),
        changes=changes[:_LISTED],
        older=changes[_LISTED - 1].id if len(changes) > _LISTED else None,
        before=before,
        first_start=not changes and not before and queue.new == 0,
    )


def _position(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def _backlog(archive: Archive, now: int) -> CrawlBacklog:
    waiting = archive.catalog.queues.waiting()
    due = archive.catalog.queues.due_again(now)
    return CrawlBacklog(waiting.new, waiting.again, due, 1 - due / waiting.again if waiting.again else None)


def _days(archive: Archive, now: int) -> list[Bar]:
    """The last days, each with its bar; those without anything have an empty one."""
    first = now // DAY - DAYS + 1
    found = {row.day: row for row in Activity(archive.catalog.database).by_day(first * DAY)}
    rows = []
    for number in range(first, first + DAYS):
        row = found.get(number)
        label = iso_day(from_millis(number * DAY))
        rows.append((label, row.changed if row else 0, row.new if row else 0))
    return bars(rows)


@router.get("/find")
def find(archive: ArchiveDep, q: str = "") -> Response:
    """A known address leads to its page, a known host to its site, anything else to the search."""
    text = q.strip()
    address = _known_address(archive, text)
    if address is not None:
        return RedirectResponse(f"/url/{url_in_path(address)}", 303)
    if text and " " not in text and Activity(archive.catalog.database).count_pages(_host(text), 1):
        return RedirectResponse(f"/site/{_host(text)}", 303)
    return RedirectResponse(f"/search?{urlencode({'q': text})}", 303)


def _known_address(archive: Archive, text: str) -> str | None:
    if not text or " " in text or not ("/" in text or "." in text or ":" in text):
        return None
    for candidate in (text, f"https://{text}"):
        try:
            url = parse_user_url(candidate)
        except BadUrl:
            continue
        row = archive.catalog.resources.find(url)
        if row is not None and row.checked is not None:
            return url
    return None


def _host(text: str) -> str:
    try:
        return host(parse_user_url(text))
    except BadUrl:
        return ""


storage_router = APIRouter(route_class=PageRoute)

_PARTS = {
    translatable("packs"): translatable("Contents of all versions"),
    translatable("index"): translatable("Links and words; can be deleted and is built again"),
}


class StoragePart(NamedTuple):
    """A part of the archive on disk."""

    name: str
    what: str
    files: int
    bytes: int
    share: float


@storage_router.get("/storage")
def storage(request: Request, archive: ArchiveDep, principal: PrincipalDep) -> Response:
    """Raw and stored sizes, packs, methods, retention."""
    known = page_cache_of(request)
    return render_page(
        request,
        "storage.html",
        stats=known.soon("stats", 10, archive.stats),
        methods=known.soon("methods", 30, Activity(archive.catalog.database).methods),
        folders=known.get("folders", 30, lambda: _storage_parts(archive)),
        keep=archive.settings.store,
        fetch=archive.settings.fetch,
        serve=archive.settings.serve,
        room=shutil.disk_usage(archive.folder) if principal.may(OWN) else None,
        command=Markup("<code>letopis compact</code>"),
    )


def _storage_parts(archive: Archive) -> list[StoragePart]:
    sizes = {name: _disk_usage(archive.folder / name) for name in _PARTS}
    rows = [(name, _PARTS[name], *sizes[name]) for name in _PARTS]
    rows.insert(
        1, (translatable("catalogue"), translatable("Facts: every check, version, header"), 1, archive.catalog.bytes())
    )
    total = sum(row[3] for row in rows) or 1
    return [StoragePart(*row, row[3] / total) for row in rows]


def _disk_usage(folder: Path) -> tuple[int, int]:
    """Files below a folder and their bytes; what vanishes meanwhile is not counted."""
    files = total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name)).st_size
            except FileNotFoundError:
                continue
            files += 1
    return files, total


settings_router = APIRouter(route_class=PageRoute)

_SECRET = ("key", "password", "secret", "token", "headers")
_PASSWORD = re.compile(r"(://[^/@:\s]*:)[^/@\s]+@")
_PRIVATE = ("url", "path", "proxy", "endpoint", "ca_file", "address", "trusted_proxies")
"""Settings that tell about the machine or hold credentials: for owners only."""


class ShownSetting(NamedTuple):
    """A setting as the page shows it."""

    name: str
    help: str
    value: str
    default: str
    changed: bool
    variable: str


@settings_router.get("/settings")
def settings(request: Request, archive: ArchiveDep, principal: PrincipalDep) -> Response:
    """The settings this service runs with; secrets are never shown."""
    rows = shown_settings(archive.settings, owner=principal.may(OWN))
    sections = [(name, list(group)) for name, group in groupby(rows, lambda row: row.name.partition(".")[0])]
    return render_page(request, "settings.html", sections=sections, file=Markup("<code>letopis.toml</code>"))


def shown_settings(given: Settings, *, owner: bool) -> list[ShownSetting]:
    """All settings; what only owners may see is masked for others."""
    rows = []
    for row in settings_table().values():
        section, _, name = row.name.partition(".")
        value = getattr(getattr(given, section), name)
        text = _PASSWORD.sub(r"\1…@", _setting_text(value, row.unit))
        if value and any(word in name for word in _SECRET):
            text = "set"
        elif value and name in _PRIVATE and not owner:
            text = "set; only owners see it"
        rows.append(
            ShownSetting(
                row.name, row.help, text, _setting_text(row.default, row.unit), value != row.default, row.variable
            )
        )
    return rows


def _setting_text(value: Any, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if unit and value:
        return human_size(value) if unit == "bytes" else format_span(float(value))
    return str(value) if value != "" else "none"
