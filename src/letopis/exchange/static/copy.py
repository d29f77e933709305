"""A browsable copy: each address as a file, links between them relative, everything else left as it was."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from letopis.archive import Archive
from letopis.errors import NotFound
from letopis.exchange.selecting import Selected
from letopis.exchange.static.folder import CopyFolder
from letopis.exchange.static.listing import Listed, Listing, redirect_page
from letopis.exchange.static.names import file_name, link_to
from letopis.exchange.static.rewriting import FileRewriter
from letopis.extract import decode, page
from letopis.extract.sniff import bare_type
from letopis.extract.source import charset_of
from letopis.model import Check, Outcome, header, rfc3339
from letopis.urls import join

_HTML = ("text/html", "application/xhtml+xml")
_NEWS = (Outcome.NEW, Outcome.CHANGED)
_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class CopyReport:
    """Files of the copy; how many of them this run wrote, and how many it removed."""

    files: int
    written: int
    removed: int


class _Shown(NamedTuple):
    """What stands for an address: a version, or a redirect to `target`."""

    name: str
    check: Check
    target: str = ""


def export_static(
    archive: Archive, target: Path, selected: Selected, progress: Callable[[int], None] = lambda done: None
) -> CopyReport:
    """Writes the selected part as it was at the end of its span. A second run writes only what changed."""
    folder = CopyFolder(target)
    copy = _Copy(archive, folder, replace(selected, latest=False))
    for count, shown in enumerate(copy.pages(), 1):
        copy.write(shown)
        progress(count)
    copy.finish()
    return CopyReport(folder.count, folder.written, folder.finish())


class _Copy:
    """Knows which addresses are part of the copy, and writes them."""

    def __init__(self, archive: Archive, folder: CopyFolder, selected: Selected) -> None:
        self._archive = archive
        self._folder = folder
        self._selected = selected
        self._listing = Listing(folder.write)
        self._known: dict[str, _Shown | None] = {}
        self._everything = not (selected.site or selected.project)
        self._chosen: set[str] = set()
        self._needed: list[str] = []

    def pages(self) -> Iterator[_Shown]:
        """All of the selection, then what its pages need from elsewhere, until nothing more is needed."""
        if not self._everything:
            self._chosen = {row.url for row in self._selected.resources(self._archive)}
        for row in self._selected.resources(self._archive):
            shown = self._of(row.url)
            if shown is not None:
                yield shown
        while self._needed:
            shown = self._of(self._needed.pop())
            if shown is not None:
                yield shown

    def write(self, shown: _Shown) -> None:
        """Writes one address."""
        if shown.target:
            target = self._lead(shown.name)(shown.target, False) or shown.target
            self._folder.write(shown.name, redirect_page(shown.check, target))
            return
        check = shown.check
        assert check.version is not None
        body = self._archive.get(check.url, version=check.version).body
        kind = bare_type(check.content_type)
        if kind in _HTML:
            title = page(body, check.url, check.headers, mode="basic").title or check.url
            self._listing.add(Listed(shown.name, check.url, title, rfc3339(check.checked_at)))
            body = self._rewritten(shown, body, is_page=True)
        elif kind == "text/css":
            body = self._rewritten(shown, body, is_page=False)
        self._folder.write(shown.name, body)

    def finish(self) -> None:
        """Writes the pages that lead into the copy."""
        self._listing.finish(self._selected.site or self._selected.project or self._archive.folder.resolve().name)

    def _rewritten(self, shown: _Shown, body: bytes, *, is_page: bool) -> bytes:
        text, charset = decode(body, charset_of(shown.check.content_type))
        if charset.startswith("utf-16"):
            charset = "utf-8"
        rewriter = FileRewriter(shown.check.final_url, self._lead(shown.name))
        changed = rewriter.page(text, charset) if is_page else rewriter.css(text)
        return changed.encode(codecs.lookup(charset).name, "xmlcharrefreplace" if is_page else "replace")

    def _lead(self, page_name: str) -> Callable[[str, bool], str | None]:
        """Where links of a file go: to another file of the copy, or nowhere else than before."""

        def lead(url: str, needed: bool) -> str | None:
            if not self._everything and url not in self._chosen:
                if not needed or self._of(url) is None:
                    return None
                self._chosen.add(url)
                self._needed.append(url)
            shown = self._of(url)
            return link_to(shown.name, page_name) if shown is not None else None

        return lead

    def _of(self, url: str) -> _Shown | None:
        if url not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[url] = self._look_up(url)
        return self._known[url]

    def _look_up(self, url: str) -> _Shown | None:
        """The last version in the span, or a redirect when the last answer was one."""
        try:
            checks = self._selected.checks(self._archive, url)
        except NotFound:
            return None
        answered = [check for check in checks if check.status]
        target = _redirect(answered[-1]) if answered else ""
        if target:
            return _Shown(file_name(url, "text/html"), answered[-1], target)
        found = next((check for check in reversed(checks) if check.outcome in _NEWS), None)
        return _Shown(file_name(url, found.content_type), found) if found else None


def _redirect(check: Check) -> str:
    if not 300 <= check.status < 400 or check.status == 304:
        return ""
    return join(check.url, header(check.headers, "location")) or ""
