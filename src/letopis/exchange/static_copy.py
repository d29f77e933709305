"""A browsable copy of an archive as plain files: links between them relative, lists of all pages, everything else left
as it was. A second run writes only what changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from html import escape, unescape
from pathlib import Path

from letopis.archive import Archive
from letopis.errors import NotFound, NotReady, UsageError
from letopis.exchange.selection import ExportSelection
from letopis.exchange.static_names import file_name, is_file_name, link_to
from letopis.extract import decode, read_page
from letopis.extract.charsets import in_page_charset, python_codec
from letopis.extract.extraction import HTML_TYPES, bare_type
from letopis.extract.pages import charset_of
from letopis.extract.rewriter import ATTRIBUTE_VALUE, Rewriter, quoted_attribute
from letopis.model import Check, Outcome, header, rfc3339
from letopis.tuples import NamedTuple
from letopis.urls import join

COPY_LIST = "letopis-copy.txt"
"""Names of all files of the copy; it also marks the folder as one to write into."""
_PART = "letopis-copy.part"


class CopyFolder:
    """Takes files of one run. A run that was stopped leaves whole files, and the next one continues from them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: set[str] = set()
        self._old = self._begin()
        self.written = 0

    def _begin(self) -> frozenset[str]:
        """Names of the run before; a folder with other things in it is not touched."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            listed = self._root / COPY_LIST
            if not listed.exists():
                if any(self._root.iterdir()):
                    raise UsageError(f"{self._root} holds other files; name a new or empty folder with -o")
                listed.touch()
            return frozenset(filter(is_file_name, listed.read_text("utf-8").splitlines()))
        except OSError as error:
            raise NotReady(f"cannot write to {self._root}: {error.strerror}; choose another folder with -o") from None

    @property
    def count(self) -> int:
        """Files of the copy so far."""
        return len(self._names)

    def write(self, name: str, data: bytes) -> None:
        """Puts a file there, unless the very same already is."""
        self._names.add(name)
        path = self._root / name
        try:
            if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
                return
            if name not in self._old:
                # Listed before it exists, so that a run which is stopped leaves no unknown file.
                with (self._root / COPY_LIST).open("a", encoding="utf-8") as listed:
                    listed.write(name + "\n")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._replace(path, data)
        except OSError as error:
            raise NotReady(f"cannot write {path}: {error.strerror}; the copy can be resumed") from None
        self.written += 1

    def finish(self) -> int:
        """Removes files of earlier runs that are no longer part of the copy; returns how many."""
        gone = sorted(self._old - self._names)
        for name in gone:
            (self._root / name).unlink(missing_ok=True)
        for folder in sorted({str(Path(name).parent) for name in gone}, reverse=True):
            _remove_empty(self._root, self._root / folder)
        text = "".join(f"{name}\n" for name in sorted(self._names)).encode()
        if (self._root / COPY_LIST).read_bytes() != text:
            self._replace(self._root / COPY_LIST, text)
        return len(gone)

    def _replace(self, path: Path, data: bytes) -> None:
        """Through one file with a fixed name: a run that was killed leaves at most that one, and the next takes it."""
        part = self._root / _PART
        try:
            part.write_bytes(data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _remove_empty(root: Path, folder: Path) -> None:
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        os.rmdir(folder)
        folder = folder.parent


MOST_LINES = 2000
"""Pages in one list."""

_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem}li{overflow-wrap:anywhere}small{opacity:.7}"
)


class ListedPage(NamedTuple):
    """A page of the copy as lists name it."""

    name: str
    url: str
    title: str
    time: str


def html_document(title: str, body: str) -> bytes:
    """A small page of our own."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body>{body}</body></html>\n"
    ).encode("utf-8", "replace")


def redirect_page(check: Check, target: str) -> bytes:
    """Stands for a redirect, which no file can give."""
    link = f'<a href="{escape(target)}">{escape(target)}</a>'
    text = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Moved</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(target)}"></head>\n'
        f"<body><p>{escape(check.url)} led to {link} on {rfc3339(check.checked_at)}.</p></body></html>\n"
    )
    return text.encode("utf-8", "replace")


class CopyListing:
    """Gathers the pages of a copy and writes lists of them as they fill."""

    def __init__(self, write: Callable[[str, bytes], None]) -> None:
        self._write = write
        self._lines: list[ListedPage] = []
        self._lists = 0
        self._sites: dict[str, tuple[ListedPage, int]] = {}

    def add(self, page: ListedPage) -> None:
        """Notes a page; the first one of a site leads to it."""
        site = page.name.partition("/")[0]
        first, count = self._sites.get(site, (page, 0))
        self._sites[site] = (first, count + 1)
        self._lines.append(page)
        if len(self._lines) >= MOST_LINES:
            self._flush()

    def finish(self, title: str) -> None:
        """Writes the last list and the index."""
        if self._lines:
            self._flush()
        sites = "".join(
            f"<li><a href='{escape(first.name)}'>{escape(first.title)}</a> <small>{escape(first.url)}, "
            f"{count} page{'s' if count != 1 else ''}</small></li>\n"
            for first, count in self._sites.values()
        )
        lists = "".join(
            f"<li><a href='{_list_name(number)}'>Pages, part {number}</a></li>\n"
            for number in range(1, self._lists + 1)
        )
        self._write("index.html", html_document(title, f"<h1>{escape(title)}</h1>\n<ul>{sites}</ul>\n<ul>{lists}</ul>"))

    def _flush(self) -> None:
        self._lists += 1
        lines = "".join(
            f"<li><a href='{escape(page.name)}'>{escape(page.title)}</a> "
            f"<small>{escape(page.url)}, {page.time}</small></li>\n"
            for page in self._lines
        )
        self._lines = []
        name = _list_name(self._lists)
        self._write(name, html_document("Pages", f"<p><a href='index.html'>All sites</a></p>\n<ul>{lines}</ul>"))


def _list_name(number: int) -> str:
    return f"pages-{number:04}.html"


_CHARSET = re.compile(r"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
HEAD = re.compile(
    r"(?>\ufeff?+\s*+(?><!--.*?-->\s*+)*+<!doctype[^>]*+>)?+(?>\s*+<html\b[^>]*+>)?+(?>\s*+<head\b[^>]*+>)?+",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of a page, up to where its own metadata may be."""
_PLACE = re.compile(r"([\s\"'/])(href)" + ATTRIBUTE_VALUE, re.IGNORECASE)
_POLICY = re.compile(r"([\s\"'/])(http-equiv)" + ATTRIBUTE_VALUE, re.IGNORECASE)


class FileRewriter(Rewriter):
    """Rewrites one page or style sheet for a folder of files."""

    unfit: tuple[str, ...] = ("content-security-policy",)
    """What a page can no longer ask of a browser."""

    def page(self, text: str, charset: str) -> str:
        """A page, which says its charset itself: there is no server any more to say it."""
        changed = self.html(text)
        declared = _CHARSET.search(changed[:1024])
        if declared and declared[1].lower() == charset.lower():
            return changed
        at = HEAD.match(changed)
        place = at.end() if at else 0
        return f'{changed[:place]}<meta charset="{charset}">{changed[place:]}'

    def _attributes(self, tag: str, name: str) -> str:
        """In its new place, the base and the policy of a page do not mean what they meant."""
        kind = name.lower()
        if kind == "base":
            return _PLACE.sub(_kept, tag)
        if kind == "meta" and any(word in tag.lower() for word in self.unfit):
            return _POLICY.sub(_kept, tag)
        return super()._attributes(tag, name)


def _kept(match: re.Match[str]) -> str:
    lead, attribute, equals, *values = match.groups()
    value = unescape(next(found for found in values if found is not None))
    return f"{lead}data-kept-{attribute}{equals}{quoted_attribute(value)}"


_NEWS = (Outcome.NEW, Outcome.CHANGED)
_REMEMBERED = 50_000


class CopyReport(NamedTuple):
    """Files of the copy; how many of them this run wrote, and how many it removed."""

    files: int
    written: int
    removed: int


class _CopiedPage(NamedTuple):
    """The content of a URL: a version, or a redirect to `target`."""

    name: str
    check: Check
    target: str = ""


def export_static(
    archive: Archive, target: Path, selected: ExportSelection, progress: Callable[[int], None] = lambda done: None
) -> CopyReport:
    """Writes the selected part as it was at the end of its span. A second run writes only what changed.

    A site or a project that is not known is NotFound before anything is written.
    """
    selected.resources(archive)
    folder = CopyFolder(target)
    copy = _CopyRun(archive, folder, selected._replace(latest=False))
    for count, shown in enumerate(copy.pages(), 1):
        copy.write(shown)
        progress(count)
    copy.finish()
    return CopyReport(folder.count, folder.written, folder.finish())


class _CopyRun:
    """Knows which addresses are part of the copy, and writes them."""

    def __init__(self, archive: Archive, folder: CopyFolder, selected: ExportSelection) -> None:
        self._archive = archive
        self._folder = folder
        self._selected = selected
        self._listing = CopyListing(folder.write)
        self._known: dict[str, _CopiedPage | None] = {}
        self._everything = not (selected.site or selected.project)
        self._chosen: set[str] = set()
        self._needed: list[str] = []

    def pages(self) -> Iterator[_CopiedPage]:
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

    def write(self, shown: _CopiedPage) -> None:
        """Writes one address."""
        if shown.target:
            target = self._lead(shown.name)(shown.target, False) or shown.target
            self._folder.write(shown.name, redirect_page(shown.check, target))
            return
        check = shown.check
        assert check.version is not None
        body = self._archive.get(check.url, version=check.version).body
        kind = bare_type(check.content_type)
        if kind in HTML_TYPES:
            title = read_page(body, check.url, check.headers, mode="basic").title or check.url
            self._listing.add(ListedPage(shown.name, check.url, title, rfc3339(check.checked_at)))
            body = self._rewritten(shown, body, is_page=True)
        elif kind == "text/css":
            body = self._rewritten(shown, body, is_page=False)
        self._folder.write(shown.name, body)

    def finish(self) -> None:
        """Writes the pages that lead into the copy."""
        self._listing.finish(self._selected.site or self._selected.project or self._archive.folder.resolve().name)

    def _rewritten(self, shown: _CopiedPage, body: bytes, *, is_page: bool) -> bytes:
        text, charset = decode(body, charset_of(shown.check.content_type))
        rewriter = FileRewriter(
            shown.check.final_url, self._lead(shown.name), lambda reference: in_page_charset(reference, charset)
        )
        written = "utf-8" if charset.startswith("utf-16") or charset == "x-user-defined" else charset
        changed = rewriter.page(text, written) if is_page else rewriter.css(text)
        return changed.encode(python_codec(written), "xmlcharrefreplace" if is_page else "replace")

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

    def _of(self, url: str) -> _CopiedPage | None:
        if url not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[url] = self._look_up(url)
        return self._known[url]

    def _look_up(self, url: str) -> _CopiedPage | None:
        """The last version in the span, or a redirect when the last answer was one."""
        try:
            checks = self._selected.checks(self._archive, url)
        except NotFound:
            return None
        answered = [check for check in checks if check.status]
        target = _redirect(answered[-1]) if answered else ""
        if target:
            return _CopiedPage(file_name(url, "text/html"), answered[-1], target)
        found = next((check for check in reversed(checks) if check.outcome in _NEWS), None)
        return _CopiedPage(file_name(url, found.content_type), found) if found else None


def _redirect(check: Check) -> str:
    if not 300 <= check.status < 400 or check.status == 304:
        return ""
    return join(check.url, header(check.headers, "location")) or ""
