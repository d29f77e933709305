"""The browsing view: pages with their links led to the same date, and the frame around them."""

from __future__ import annotations

import re
from datetime import datetime

from markupsafe import Markup

from letopis.catalog.moments import Around, Moment
from letopis.extract.rewriting import Rewriter
from letopis.model import from_millis, rfc3339
from letopis.serve.memento.addresses import Web
from letopis.serve.memento.stored import Stored
from letopis.serve.pages.languages import marked, say
from letopis.serve.pages.rendering import environment, short

_HTML = ("text/html", "application/xhtml+xml")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE | re.ASCII)
_WIDE = (b"\xff\xfe", b"\xfe\xff")
MAX_REWRITTEN = 16 * 1024 * 1024
"""Larger pages are shown as they are stored."""


def is_page(stored: Stored) -> bool:
    """Whether a browser would show it as a page."""
    return stored.content_type.partition(";")[0].strip().lower() in _HTML


def rewritten(web: Web, stored: Stored, moment: Moment) -> bytes:
    """The body with its links led to the same date; bytes that are no text of ours to read stay."""
    kind = stored.content_type.partition(";")[0].strip().lower()
    page, sheet = kind in _HTML, kind == "text/css"
    if not (page or sheet) or len(stored.body) > MAX_REWRITTEN or stored.body.startswith(_WIDE):
        return stored.body
    charset = _charset(stored)
    text = stored.body.decode(charset, "surrogateescape")
    folder = web.folder(moment.time)
    rewriter = Rewriter(moment.url, lambda target, _: folder + target)
    return (rewriter.html(text) if page else rewriter.css(text)).encode(charset, "surrogateescape")


def _charset(stored: Stored) -> str:
    """UTF-8 where it is told or fits; else one byte a character, which keeps every byte."""
    told = _CHARSET.search(stored.content_type)
    if told is None or told[1].lower() in ("utf-8", "utf8", "us-ascii"):
        return "utf-8"
    return "latin-1"


def frame(web: Web, near: Around, moment: Moment) -> str:
    """Our page around an archived one, in the language being spoken: what it is, when it was, what lies beside it."""
    at = from_millis(moment.time)
    values = {
        "url": moment.url,
        "at": at,
        "shown_at": Markup('<time datetime="{}">{}</time>').format(rfc3339(at), short(at)),
        "steps": _steps(web, near),
        "inner": web.origin + web.inside(moment.time, moment.url, "if_"),
        "calendar": f"{web.origin}/web/*/{moment.url}",
    }
    return environment.get_template("replay.html").render(values)


def _steps(web: Web, near: Around) -> list[tuple[str, str, datetime]]:
    """The ways to other captures; the first and the newest only where they are not the next ones anyway."""
    ways = [(marked("Earlier"), near.before), (marked("Later"), near.after)]
    if near.before is not None and near.first.time < near.before.time:
        ways.insert(0, (marked("First"), near.first))
    if near.after is not None and near.last.time > near.after.time:
        ways.append((marked("Newest"), near.last))
    return [(say(name), web.memento(to.time, to.url), from_millis(to.time)) for name, to in ways if to is not None]
