"""The browsing view: pages with their links led to the same date, and the frame around them."""

from __future__ import annotations

import re
from html import escape

from letopis.catalog.moments import Moment
from letopis.serve.memento.addresses import Web
from letopis.serve.memento.rewriting import Rewriter
from letopis.serve.memento.stored import Stored
from letopis.serve.stamps import http_stamp, stamp

_HTML = ("text/html", "application/xhtml+xml")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE | re.ASCII)
_WIDE = (b"\xff\xfe", b"\xfe\xff")
MAX_REWRITTEN = 16 * 1024 * 1024
"""Larger pages are shown as they are stored."""


def is_page(stored: Stored) -> bool:
    """Whether a browser would show it as a page."""
    return stored.content_type.partition(";")[0].strip().lower() in _HTML


def rewritten(stored: Stored, moment: Moment) -> bytes:
    """The body with its links led to the same date; bytes that are no text of ours to read stay."""
    kind = stored.content_type.partition(";")[0].strip().lower()
    page, sheet = kind in _HTML, kind == "text/css"
    if not (page or sheet) or len(stored.body) > MAX_REWRITTEN or stored.body.startswith(_WIDE):
        return stored.body
    charset = _charset(stored)
    text = stored.body.decode(charset, "surrogateescape")
    rewriter = Rewriter(moment.url, f"/web/{stamp(moment.time)}/")
    return (rewriter.html(text) if page else rewriter.css(text)).encode(charset, "surrogateescape")


def _charset(stored: Stored) -> str:
    """UTF-8 where it is told or fits; else one byte a character, which keeps every byte."""
    told = _CHARSET.search(stored.content_type)
    if told is None or told[1].lower() in ("utf-8", "utf8", "us-ascii"):
        return "utf-8"
    return "latin-1"


def frame(web: Web, moment: Moment, before: Moment | None, behind: Moment | None) -> str:
    """Our page around an archived one: what it is, when it was, and the captures beside it."""
    url, time = escape(moment.url), http_stamp(moment.time)
    inner = escape(web.memento(moment.time, moment.url, "if_"))
    steps = "".join(
        f'<a href="{escape(web.memento(other.time, other.url))}">{word}</a>'
        for word, other in (("Earlier", before), ("Later", behind))
        if other is not None
    )
    calendar = escape(f"{web.origin}/web/*/{moment.url}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{url} · {time}</title>"
        '<link rel="stylesheet" href="/static/letopis.css"><style>'
        "html,body{height:100%;margin:0}body{display:flex;flex-direction:column;max-width:none;padding:0}"
        ".replay{display:flex;gap:1rem;flex-wrap:wrap;padding:.4rem 1rem;font-size:.9rem}"
        "iframe{flex:1;border:0;width:100%;background:#fff}</style></head><body>"
        f'<header class="replay"><a href="/">Letopis</a><span>{url}</span><time>{time}</time>'
        f'<nav aria-label="Captures">{steps} <a href="{calendar}">All captures</a></nav></header>'
        f'<iframe sandbox="allow-popups allow-scripts" title="{url}" src="{inner}"></iframe></body></html>'
    )
