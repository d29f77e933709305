"""A page in one HTML file that needs nothing else, in the form of SingleFile: what it shows is inside as `data:` URLs.

Links lead to their original targets. Scripts stay in the text but never run, and nothing is requested: a policy in the
page forbids it. What the check of the page did not record stays a URL, which shows nothing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from letopis import __version__
from letopis.errors import UsageError
from letopis.exchange.page_export import PagePart
from letopis.exchange.saved_pages import is_singlefile
from letopis.exchange.sources import MOST_HEAD, MOST_READ
from letopis.exchange.static_copy import HEAD, FileRewriter
from letopis.extract import decode
from letopis.extract.charsets import in_page_charset
from letopis.extract.extraction import HTML_TYPES, bare_type, sniff
from letopis.extract.pages import charset_of
from letopis.model import rfc3339

_DEEPEST = 16
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127}", re.ASCII)
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline' data:; font-src data:; media-src data:; "
    "frame-src data:; object-src data:"
)


def single_file(parts: list[PagePart], most: int = MOST_READ) -> bytes:
    """The page that the first part is, with the others inside; the same look always gives the same bytes.

    A page that was imported as such a file goes out as it came in.
    """
    page = parts[0]
    if sniff(page.version.body, page.version.content_type) not in HTML_TYPES:
        raise UsageError(f"{page.check.url} is not an HTML page; export it as mhtml")
    if is_singlefile(page.version.body[:MOST_HEAD]):
        return page.version.body
    inside = _Inside({part.check.url: part for part in parts[1:]}, most)
    facts = (
        f"<!--\n Page saved with SingleFile, in its form by Letopis {__version__}\n"
        f" url: {page.check.url.replace('>', '%3E')}\n saved date: {rfc3339(page.check.checked_at)}\n-->"
    )
    return inside.document(page, facts).encode("utf-8", "replace")


class _Inside:
    """Makes `data:` URLs of the parts of a page, each once, and counts what they take."""

    def __init__(self, parts: Mapping[str, PagePart], most: int) -> None:
        self._parts = parts
        self._most = most
        self._made: dict[str, str] = {}
        self._within: list[str] = []

    def document(self, part: PagePart, facts: str = "") -> str:
        """A page with all that it shows, after its own charset, facts and policy."""
        text, rewriter = self._text(part)
        changed = rewriter.html(text)
        head = HEAD.match(changed)
        place = head.end() if head else 0
        policy = f'<meta http-equiv="content-security-policy" content="{_POLICY}">'
        return f'{changed[:place]}<meta charset="utf-8">{facts}{policy}{changed[place:]}'

    def data_url(self, url: str, needed: bool) -> str | None:
        """The replacement of a URL that a page shows; None for links, and for missing resources."""
        part = self._parts.get(url) if needed else None
        if part is None or url in self._within or len(self._within) >= _DEEPEST:
            return None
        if url not in self._made:
            self._within.append(url)
            self._made[url] = self._url_of(part)
            self._within.pop()
        return self._made[url]

    def spend(self, size: int) -> None:
        """Counts bytes: one picture may be in a page a million times."""
        self._most -= size
        if self._most < 0:
            raise UsageError("this page is too large to be one HTML file; export it as mhtml")

    def _url_of(self, part: PagePart) -> str:
        kind, body = bare_type(part.version.content_type), part.version.body
        if kind in HTML_TYPES:
            kind, body = "text/html", self.document(part).encode("utf-8", "replace")
        elif kind == "text/css":
            text, rewriter = self._text(part)
            kind, body = "text/css;charset=utf-8", rewriter.css(text).encode("utf-8", "replace")
        elif not _MEDIA_TYPE.fullmatch(kind):
            kind = "application/octet-stream"
        return f"data:{kind};base64,{base64.b64encode(body).decode()}"

    def _text(self, part: PagePart) -> tuple[str, _InliningRewriter]:
        text, charset = decode(part.version.body, charset_of(part.version.content_type))
        self.spend(len(part.version.body))
        return text, _InliningRewriter(self, part.check.final_url, charset)


class _InliningRewriter(FileRewriter):
    """Puts what a page or style sheet shows into its text."""

    unfit = (*FileRewriter.unfit, "refresh")

    def __init__(self, inside: _Inside, url: str, charset: str) -> None:
        super().__init__(url, inside.data_url, lambda reference: in_page_charset(reference, charset))
        self._inside = inside

    def link(self, address: str, needed: bool = False) -> str:
        """One address as it stands in a page, which what it led to may take the place of."""
        led = super().link(address, needed)
        self._inside.spend(len(led))
        return led

    def _attributes(self, tag: str, name: str) -> str:
        """Scripts stay as they are, since they do not run."""
        return tag if name.lower() == "script" else super()._attributes(tag, name)
