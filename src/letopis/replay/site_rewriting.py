"""Archived pages, styles and scripts for the replay origin: addresses of other hosts lead to their archived sites.

Relative addresses stay as they are, and so do links that are only followed when somebody follows them: the script in
the head of each page leads those. Whatever is missed here fails closed, by the policy of the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from letopis.extract.rewriter import ATTRIBUTE_VALUE, Rewriter, carried_text
from letopis.replay.origin import ReplayOrigin

OURS = "/.letopis/"
"""The folder on each archived site that is answered by us and not by the archive."""
_SCRIPTS = Path(__file__).parent / "browser"
_ABSOLUTE = ("http://", "https://", "//")
_FOLLOWED = frozenset({"a", "area", "blockquote", "q", "ins", "del"})
_POLICY = re.compile(r"http-equiv(?=\s*+=\s*+[\"']?\s*+content-security-policy)", re.IGNORECASE)
_SANDBOX = re.compile(rf"([\s\"'/])(sandbox|csp)(?:{ATTRIBUTE_VALUE}|(?=[\s>/]))", re.IGNORECASE)
_IMPORT = re.compile(r"(\b(?:from|import)\s*+\(?\s*+)([\"'])((?:https?:)?//[^\"'\s]++)(?=\2)", re.ASCII)
_HEAD = re.compile(
    r"(?>\xef\xbb\xbf)?+(?>\s++|<\?xml[^>]*+>|<!--.*?-->)*+(?><!doctype[^>]*+>)?+(?>\s++|<!--.*?-->)*+(?><html\b[^>]*+>)?+"
    r"(?>\s++|<!--.*?-->)*+(?><head(?=[\s>])[^>]*+>)?+",
    re.IGNORECASE | re.DOTALL,
)


class SiteRewriter(Rewriter):
    """Leads absolute addresses to the replay origin, at the time of the page."""

    def __init__(self, url: str, lead: Callable[[str], str | None], read: Callable[[str], str] = str) -> None:
        super().__init__(url, lambda target, _: target, read)
        self._led = lead
        self._kind = ""

    def _linked(self, address: str, needed: bool) -> str:
        plain = address.strip()
        if not plain.lower().startswith(_ABSOLUTE) or self._kind in _FOLLOWED:
            return address
        return self._led(plain) or address

    def link(self, address: str, needed: bool = False) -> str:
        """One address as it stands in a page; the same one may lead elsewhere in another tag."""
        return self._linked(address, needed)

    def _tag(self, match: re.Match[str]) -> str:
        self._kind = (match["raw"] or match["name"] or "").lower()
        if self._kind == "script":
            start = match.start("body") - match.start()
            return self._attributes(str(match[0])[:start], "script") + self.script(match["body"])
        return super()._tag(match)

    def _attributes(self, tag: str, name: str) -> str:
        if self._kind == "meta":
            tag = _POLICY.sub("data-http-equiv", tag)
        elif self._kind in ("iframe", "frame"):
            tag = _SANDBOX.sub(r"\1data-archived-\2", tag)
        return super()._attributes(tag, name)

    def css(self, text: str) -> str:
        """A style sheet, or a style attribute of whatever tag."""
        kind, self._kind = self._kind, ""
        styled = super().css(text)
        self._kind = kind
        return styled

    def script(self, text: str) -> str:
        """A script: modules that it names by whole addresses."""
        return _IMPORT.sub(lambda found: f"{found[1]}{found[2]}{self._led(found[3]) or found[3]}", text)


def rewrite_for_site(order: Mapping[str, Any], body: bytes) -> bytes:
    """A body for the replay origin; `kind` is `page`, `style` or `script`."""
    text, carrier, read = carried_text(body, order["content_type"])
    origin, time = ReplayOrigin(*order["origin"]), order["time"]
    rewriter = SiteRewriter(order["url"], lambda target: origin.address(target, time), read)
    change = {"page": rewriter.html, "style": rewriter.css, "script": rewriter.script}[order["kind"]]
    return change(text).encode(carrier, "surrogateescape")


@cache
def browser_script(name: str) -> bytes:
    """One of our scripts for archived pages."""
    return (_SCRIPTS / name).read_bytes()


def with_head_script(page: bytes, attributes: str) -> bytes:
    """A page in which our script runs before anything of its own."""
    text = page.decode("latin-1")
    found = _HEAD.match(text)
    at = found.end() if found is not None else 0
    script = f'<script src="{OURS}head.js"{attributes}></script>'.encode()
    return page[:at] + script + page[at:]
