"""Folders of dated files: each file is a version of the page that its name without the date stands for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from letopis.errors import UsageError
from letopis.exchange.capture import Capture
from letopis.exchange.migrate.asked import Asked
from letopis.exchange.migrate.folder import Folder
from letopis.exchange.migrate.naming import address, content_type, dated
from letopis.exchange.report import ImportReport

LIST = "urls.tsv"
_MOST_LIST = 64 * 1024 * 1024


def dated_captures(root: Path, asked: Asked, report: ImportReport) -> Iterator[Capture]:
    """All files that have a date and an address, in the order of their paths."""
    folder = Folder(root, report)
    listed = _listed(root, asked, report)
    if not asked.url and not listed:
        raise UsageError(
            f"{root} does not tell addresses; give --url, or a {LIST} with a file or folder and its address a line"
        )
    for path in folder.files(skip=frozenset((".git",))):
        if path == LIST:
            continue
        found = dated(path)
        url = _url(path, found[1] if found else "", listed, asked.url) if found else ""
        if found is None or not url:
            report.refuse("no date in its name" if found is None else f"no line of {LIST} has it", path)
            continue
        body = folder.read(path)
        if body is not None:
            yield Capture(url, found[0], 200, content_type(path, body), body, decoded=True)


def _url(path: str, rest: str, listed: dict[str, str], told: str) -> str:
    """The address of a file: from the list by its path, by its name without the date, or by its folder."""
    for name in (path, rest, path.rpartition("/")[0]):
        if name in listed:
            return listed[name]
    if not told:
        return ""
    return address(told, rest) if told.endswith("/") else told


def _listed(root: Path, asked: Asked, report: ImportReport) -> dict[str, str]:
    place = asked.urls or root / LIST
    folder = Folder(place.parent, report)
    if not folder.has(place.name):
        if asked.urls:
            raise UsageError(f"cannot read {asked.urls}; give a file of lines with a path, a tab, and an address")
        return {}
    lines = (folder.read(place.name, _MOST_LIST) or b"").decode("utf-8", "replace").splitlines()
    pairs = (line.split("\t") for line in lines if line.strip() and not line.startswith("#"))
    return {pair[0].strip().strip("/"): pair[1].strip() for pair in pairs if len(pair) > 1}
