"""The pages that lead into a copy: an index of sites, and lists of all pages."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import NamedTuple

from letopis.model import Check, rfc3339

MOST_LINES = 2000
"""Pages in one list."""

_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem}li{overflow-wrap:anywhere}small{opacity:.7}"
)


class Listed(NamedTuple):
    """A page of the copy as lists name it."""

    name: str
    url: str
    title: str
    time: str


def document(title: str, body: str) -> bytes:
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


class Listing:
    """Gathers the pages of a copy and writes lists of them as they fill."""

    def __init__(self, write: Callable[[str, bytes], None]) -> None:
        self._write = write
        self._lines: list[Listed] = []
        self._lists = 0
        self._sites: dict[str, tuple[Listed, int]] = {}

    def add(self, page: Listed) -> None:
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
        self._write("index.html", document(title, f"<h1>{escape(title)}</h1>\n<ul>{sites}</ul>\n<ul>{lists}</ul>"))

    def _flush(self) -> None:
        self._lists += 1
        lines = "".join(
            f"<li><a href='{escape(page.name)}'>{escape(page.title)}</a> "
            f"<small>{escape(page.url)}, {page.time}</small></li>\n"
            for page in self._lines
        )
        self._lines = []
        name = _list_name(self._lists)
        self._write(name, document("Pages", f"<p><a href='index.html'>All sites</a></p>\n<ul>{lines}</ul>"))


def _list_name(number: int) -> str:
    return f"pages-{number:04}.html"
