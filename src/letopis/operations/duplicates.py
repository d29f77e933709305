"""Duplicates: one document under several addresses, of one page, within a site, or in the whole archive."""

from __future__ import annotations

from letopis.archive import READ, Archive
from letopis.archive.cluster import spread_over
from letopis.archive.index_facts import equal_contents, require_site
from letopis.errors import UnknownUrl, UsageError
from letopis.index.near_duplicates import MIN_LIKENESS, DuplicatePair, duplicates_in_site, duplicates_of_page
from letopis.operations.context import Context
from letopis.operations.operation import Rows, operation
from letopis.operations.parameters import CLI_ONLY, Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

_MAX_COPIES = 200
_URLS_OF_COPY = 12


class DuplicatesQuery(Parameters):
    """Of which page, or within which site."""

    what: str | None = parameter(
        "A page, or a host for all of its pages.", default=None, argument=True, metavar="[URL|SITE]", doors=CLI_ONLY
    )
    url: str | None = parameter("A page: other addresses with its document.", default=None, metavar="URL")
    site: str | None = parameter(
        "A host, or the host of this URL: pairs among its pages.", default=None, metavar="SITE"
    )
    least: float = parameter("Minimum likeness.", default=MIN_LIKENESS, at_least=0.1, at_most=1)

    def __post_init__(self) -> None:
        """One thing at a time."""
        if sum(text is not None for text in (self.what, self.url, self.site)) != 1:
            raise UsageError("give either the URL of a page or a site")


@operation(
    "duplicates", right=READ, row_key=("url", "other"), verb="duplicates", route=("GET", "/duplicates"),
    step="duplicates", element="pair", about={"site": str | None, "url": str | None}, on_cluster=True, errors=(404,),
    examples=(
        "letopis duplicates https://example.org/page",
        "letopis duplicates example.org --json",
        "letopis duplicates example.org --cluster tcp://scheduler.example:8786",
    ),
)  # fmt: skip
def duplicates(context: Context, asked: DuplicatesQuery) -> Rows[DuplicatePair]:
    """Find other addresses with the same or nearly the same document: of one page, or within a site."""
    archive, url, site = context.archive, asked.url, asked.site
    if asked.what is not None:
        url, site = (asked.what, None) if _is_page(archive, asked.what) else (None, asked.what)
    with spread_over(archive.settings, where_shared=True) as runner:
        if site is not None:
            site = require_site(archive, site)
            rows = duplicates_in_site(archive, site, asked.least, context.steps_of("pages"), runner)
        else:
            url = parse_user_url(url or "")
            rows = duplicates_of_page(archive, url, asked.least, context.steps_of("pages"), runner)
    return Rows(rows, {"site": site, "url": url}, remark="" if rows else "no duplicates found")


def _is_page(archive: Archive, what: str) -> bool:
    """An address with a path, or one that is a known page, is meant as a page, everything else as a site."""
    if "/" in what.partition("://")[2].rstrip("/") or ("://" not in what and "/" in what):
        return True
    try:
        archive.get(parse_user_url(what))
    except (UnknownUrl, UsageError):
        return False
    return "://" in what


class CopiesQuery(Parameters):
    """How many documents to list."""

    limit: int = parameter("Maximum number of documents.", default=_MAX_COPIES, at_least=1, at_most=10_000)


class DocumentCopies(NamedTuple):
    """A document that is the newest version of several addresses, with some of these."""

    title: str
    bytes: int
    copies: int
    urls: tuple[str, ...]


@operation(
    "copies", right=READ, verb="duplicates copies", route=("GET", "/duplicates/copies"),
    columns=("copies", "bytes", "title", "urls"), examples=("letopis duplicates copies --limit 20",),
)  # fmt: skip
def copies(context: Context, asked: CopiesQuery) -> Rows[DocumentCopies]:
    """List documents of the archive that several addresses serve, byte for byte."""
    found = equal_contents(context.archive, asked.limit, _URLS_OF_COPY)
    rows = [DocumentCopies(row.title, row.raw_bytes, row.copies, tuple(urls)) for row, urls in found]
    return Rows(rows, remark="" if rows else "no two addresses have the same document now")
