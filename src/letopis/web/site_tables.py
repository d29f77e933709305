"""The tables of a site: their columns and rows, and the words for what is found, in the order of the lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import SimpleNamespace

from letopis.archive.reader import RecordReader
from letopis.errors import NotFound
from letopis.index.link_reports import BrokenRow
from letopis.index.page_places import PageSources, with_places
from letopis.index.site_events import SiteEvent
from letopis.model import stamp14
from letopis.operations.site_audits import AuditCounts
from letopis.tuples import NamedTuple
from letopis.web.languages import translatable
from letopis.web.tables import TableColumn

FINDING_NAMES = {
    "orphan": translatable("nobody links to it"),
    "unreachable": translatable("no way from the home page"),
    "chain": translatable("long redirect"),
    "loop": translatable("redirect in a circle"),
    "duplicate-title": translatable("same title"),
    "duplicate-content": translatable("same content"),
}
ISSUE_NAMES = {
    "error": translatable("error status"),
    "title-missing": translatable("title missing"),
    "title-long": translatable("title too long"),
    "title-duplicate": translatable("title of several pages"),
    "description-missing": translatable("description missing"),
    "description-long": translatable("description too long"),
    "description-duplicate": translatable("description of several pages"),
    "heading-missing": translatable("main heading missing"),
    "headings-several": translatable("several main headings"),
    "canonical-missing": translatable("canonical address missing"),
    "canonical-elsewhere": translatable("canonical address is another"),
    "hreflang-not-mutual": translatable("hreflang not answered"),
    "image-without-alt": translatable("image without alt text"),
    "mixed-content": translatable("loads parts without https"),
    "large": translatable("very large"),
    "deep": translatable("many clicks away"),
    "orphan": translatable("nobody links to it"),
    "unreachable": translatable("no way from the home page"),
    "redirect-chain": translatable("long redirect"),
    "redirect-loop": translatable("redirect in a circle"),
    "content-duplicate": translatable("same content"),
}
AUDIT_COLUMNS = (
    TableColumn("url", translatable("Page"), "page"),
    TableColumn("status", translatable("Status"), "status"),
    TableColumn("issues", translatable("Issues"), "badges"),
    TableColumn("title", translatable("Title")),
    TableColumn("description", translatable("Description")),
    TableColumn("heading", translatable("Main heading"), hidden=True),
    TableColumn("headings", translatable("Main headings"), "number", hidden=True),
    TableColumn("canonical", translatable("Canonical address"), hidden=True),
    TableColumn("alternates", translatable("Languages"), "number", hidden=True),
    TableColumn("depth", translatable("Clicks"), "number"),
    TableColumn("bytes", translatable("Size"), "size"),
    TableColumn("images", translatable("Images"), "number", hidden=True),
    TableColumn("without_alt", translatable("Images without alt text"), "number", hidden=True),
    TableColumn("insecure", translatable("Parts without https"), "number", hidden=True),
)
BROKEN_COLUMNS = (
    TableColumn("target", translatable("Leads to"), "page"),
    TableColumn("status", translatable("Status"), "custom"),
    TableColumn("since", translatable("Since"), "time"),
    TableColumn("source", translatable("Found on"), "page"),
    TableColumn("line", translatable("Line to change"), "custom"),
    TableColumn("markup", translatable("Text of the line"), hidden=True),
    TableColumn("text", translatable("Text of the link"), hidden=True),
    TableColumn("final", translatable("Ends at"), hidden=True),
    TableColumn("failure", translatable("Reason"), hidden=True),
    TableColumn("replacement", translatable("Replacement"), "custom"),
    TableColumn("last_good", translatable("Last good version"), "time", hidden=True),
    TableColumn("actions", translatable("Actions"), "actions"),
)
EVENT_COLUMNS = (
    TableColumn("event", translatable("What"), "custom"),
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("title", translatable("Title"), hidden=True),
    TableColumn("details", translatable("Details"), "custom"),
    TableColumn("status", translatable("Status"), "status", hidden=True),
    TableColumn("links", translatable("Linked from"), "number", hidden=True),
)
FINDING_COLUMNS = (
    TableColumn("finding", translatable("Finding"), "named"),
    TableColumn("detail", translatable("Details")),
    TableColumn("urls", translatable("Pages"), "custom"),
)
PAGE_COLUMNS = (
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("title", translatable("Title"), hidden=True),
    TableColumn("versions", translatable("Versions"), "number"),
    TableColumn("changed", translatable("Newest version"), "time"),
    TableColumn("checked", translatable("Last check"), "time"),
)
LINK_COLUMNS = (
    TableColumn("url", translatable("Page"), "page"),
    TableColumn("name", translatable("Title")),
    TableColumn("rank", translatable("Rank"), "decimal"),
    TableColumn("links_in", translatable("Linked from"), "number"),
    TableColumn("links_out", translatable("Links to"), "number"),
)
RANK_COLUMNS = (
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("title", translatable("Title"), hidden=True),
    TableColumn("rank", translatable("Rank"), "custom"),
)
EVENT_NAMES = {
    "appeared": translatable("appeared"),
    "vanished": translatable("vanished"),
    "moved": translatable("moved"),
    "renamed": translatable("renamed"),
    "broken": translatable("broken"),
    "mended": translatable("mended"),
    "changed": translatable("changed"),
}


def audit_table(audits: Sequence[AuditCounts]) -> tuple[list[TableColumn], list[SimpleNamespace]]:
    """Audits in figures, the newest first, with a column for every issue that one of them has."""
    known = [issue for issue in ISSUE_NAMES if any(issue in one.issues for one in audits)]
    columns = [
        TableColumn("at", translatable("When"), "time"),
        TableColumn("pages", translatable("Pages"), "number"),
        TableColumn("faulty", translatable("Pages with issues"), "number"),
        *(TableColumn(issue, ISSUE_NAMES[issue], "number") for issue in known),
    ]
    rows = [
        SimpleNamespace(
            at=one.at, pages=one.pages, faulty=one.faulty, **{name: one.issues.get(name, 0) for name in known}
        )
        for one in reversed(audits)
    ]
    return columns, rows


class RankLine(NamedTuple):
    """A page, what it is called, and its rank."""

    url: str
    title: str
    rank: float


class EventLine(NamedTuple):
    """An event of a site as the table shows it: its fields, and what they say together."""

    event: str
    url: str
    title: str
    to: str
    before: str
    status: int | None
    links: int | None
    parent: str
    parent_before: str
    details: str


def event_line(row: SiteEvent) -> EventLine:
    """Its details are for the filter and for files; the page words them."""
    return EventLine(*row, " ".join(filter(None, (row.to, row.parent, row.before))))


class BrokenLine(NamedTuple):
    """A broken link with the line of its page that is to be changed, and what it can lead to instead."""

    source: str
    target: str
    status: int
    since: datetime | None
    text: str
    last_good: datetime | None
    type: str
    final: str
    line: int
    column: int
    markup: str
    replacement: str
    failure: str


def with_lines(sources: PageSources, answers: RecordReader, rows: Sequence[BrokenLine]) -> list[BrokenLine]:
    """The rows with where their links stand and why nothing answered, which costs a look at each of their pages."""
    placed = with_places((BrokenRow(*row[:10]) for row in rows), sources)
    return [
        row._replace(
            line=found.line,
            column=found.column,
            markup=sources.line(row.source, found.line, found.column),
            failure="" if row.status else _failure_of(answers, row.target),
        )
        for row, found in zip(rows, placed, strict=True)
    ]


def _failure_of(answers: RecordReader, url: str) -> str:
    """Why the last check of an address got no answer."""
    try:
        return answers.newest_checks(url, 1)[-1].failure
    except NotFound:
        return ""


def broken_line(home: str, row: BrokenRow) -> BrokenLine:
    """With where our archive shows what the link led to, which is nothing when it never worked while we looked."""
    copy = f"{home}/web/{stamp14(row.last_good)}/{row.final or row.target}" if row.last_good else ""
    return BrokenLine(*row, "", copy, "")
