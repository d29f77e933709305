"""`/storage`: where the bytes are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from letopis.archive import Archive
from letopis.catalog.accounts import OWN
from letopis.catalog.activity import Activity
from letopis.serve.access import ThePrincipal
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.languages import marked
from letopis.serve.pages.remembered import remembered_of
from letopis.serve.shared import TheArchive

router = APIRouter(route_class=PageRoute)

_PARTS = {
    marked("packs"): marked("Contents of all versions"),
    marked("index"): marked("Links and words; can be deleted and is built again"),
}


class Folder(NamedTuple):
    """A part of the archive on disk."""

    name: str
    what: str
    files: int
    bytes: int
    share: float


@router.get("/storage")
def storage(request: Request, archive: TheArchive, principal: ThePrincipal) -> Response:
    """Raw and stored sizes, packs, methods, retention."""
    known = remembered_of(request)
    return page(
        request,
        "storage.html",
        stats=known.soon("stats", 10, archive.stats),
        methods=known.soon("methods", 30, Activity(archive.catalog.database).methods),
        folders=known.get("folders", 30, lambda: _folders(archive)),
        keep=archive.settings.store,
        fetch=archive.settings.fetch,
        serve=archive.settings.serve,
        room=shutil.disk_usage(archive.folder) if principal.may(OWN) else None,
        command=Markup("<code>letopis compact</code>"),
    )


def _folders(archive: Archive) -> list[Folder]:
    sizes = {name: _size(archive.folder / name) for name in _PARTS}
    rows = [(name, _PARTS[name], *sizes[name]) for name in _PARTS]
    rows.insert(1, (marked("catalogue"), marked("Facts: every check, version, header"), 1, archive.catalog.bytes()))
    total = sum(row[3] for row in rows) or 1
    return [Folder(*row, row[3] / total) for row in rows]


def _size(folder: Path) -> tuple[int, int]:
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
