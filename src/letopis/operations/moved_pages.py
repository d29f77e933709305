"""Where a page that is missing on its site may be found: by a redirect, in the archive, or under a similar address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from letopis import extract
from letopis.archive import READ, Archive
from letopis.archive.index_facts import captured_urls, gone_since, require_site
from letopis.errors import LetopisError, NotFound
from letopis.lazy import lazy
from letopis.operations.checks import redirected_to
from letopis.operations.context import Context
from letopis.operations.operation import Rows, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

if TYPE_CHECKING:
    from rapidfuzz import fuzz, process
else:
    fuzz, process = lazy("rapidfuzz.fuzz"), lazy("rapidfuzz.process")

_MOST_ADDRESSES = 20_000
"""Addresses of a site that are compared."""
_LEAST_LIKENESS = 60
_LEAST_LETTERS = 3
"""Of an address that may be like another: any name has one letter or two in it."""
_WORD = re.compile(r"[^\W_]+")


class MovedPageQuery(Parameters):
    """Which address is missing."""

    url: str = parameter("The address that is missing.", argument=True)
    limit: int = parameter("Maximum number of pages.", default=5, at_least=1, at_most=50)


class MovedPage(NamedTuple):
    """A page that may be the missing one.

    `found_by` says how it was found: `redirect`, the target of the address when it was last checked; `archive`, the
    address itself as it was at `time`; `likeness`, another page of the site with a similar address.
    """

    url: str
    title: str
    found_by: Literal["redirect", "archive", "likeness"]
    time: datetime


@operation(
    "moved", right=READ, verb="moved", route=("GET", "/moved"), listed="pages", about={"url": str},
    columns=("found_by", "url", "title", "time"), errors=(404,),
    examples=("letopis moved https://example.org/old/page.html", "letopis moved https://example.org/contakt --json"),
)  # fmt: skip
def moved(context: Context, asked: MovedPageQuery) -> Rows[MovedPage]:
    """Find where a missing page of a site may have moved.

    Matched against redirects, the versions of the archive and the addresses of pages of the site that are there.
    """
    url = parse_user_url(asked.url)
    site = require_site(context.archive, url)
    rows = [*_redirected(context.archive, url), *_archived(context.archive, url)]
    known = {row.url for row in rows} | {url}
    rows += _alike(context.archive, url, site, known, asked.limit)
    remark = "" if rows else "no page of this site is similar; see the map of the site"
    return Rows(rows[: asked.limit], {"url": url}, remark=remark)


def _redirected(archive: Archive, url: str) -> Iterator[MovedPage]:
    last = archive.answers.last_seen(url)
    target = redirected_to(last) if last is not None else ""
    if last is not None and target:
        yield MovedPage(target, _title(archive, url) or _title(archive, target), "redirect", last.checked_at)


def _archived(archive: Archive, url: str) -> Iterator[MovedPage]:
    try:
        version = archive.answers.newest(url)
    except NotFound:
        return
    yield MovedPage(url, _title(archive, url), "archive", version.time)


def _alike(archive: Archive, url: str, site: str, known: set[str], limit: int) -> Iterator[MovedPage]:
    """Pages of the site that are there, those with the likest address first."""
    others = [other for other in islice(captured_urls(archive, site), _MOST_ADDRESSES) if other not in known]
    names = {other: words for other in others if len(words := _address_words(other)) >= _LEAST_LETTERS}
    words = _address_words(url)
    likely = process.extract(
        words, names if len(words) >= _LEAST_LETTERS else {}, scorer=fuzz.WRatio, limit=4 * limit,
        score_cutoff=_LEAST_LIKENESS,
    )  # fmt: skip
    newest = {other: archive.answers.newest(other).time for _, _, other in likely}
    gone = gone_since(archive, newest)
    return (
        MovedPage(other, _title(archive, other), "likeness", newest[other]) for other in newest if other not in gone
    )


def _address_words(url: str) -> str:
    """The words of an address behind its host."""
    parts = urlsplit(url)
    return " ".join(_WORD.findall(unquote(f"{parts.path} {parts.query}").lower()))


def _title(archive: Archive, url: str) -> str:
    try:
        version = archive.answers.newest(url)
        return extract.read_page(version.body, version.url, version.headers, detect_language=False).title
    except LetopisError:
        return ""
