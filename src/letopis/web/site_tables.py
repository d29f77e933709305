"""The tables of a site: their columns and rows, and the words for what is found, in the order of the lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import SimpleNamespace

from letopis.archive import Archive
from letopis.archive.activity import PageRow
from letopis.archive.reader import RecordReader
from letopis.archive.verdicts import replaced_texts
from letopis.errors import NotFound
from letopis.index.link_reports import BrokenRow
from letopis.index.page_places import PageSources, with_places
from letopis.index.site_events import SiteEvent
from letopis.index.site_maps import MapPage
from letopis.model import FailureKind, stamp14
from letopis.operations.links import change_of_event
from letopis.operations.site_listings import AuditCounts, PageFacts
from letopis.tuples import NamedTuple
from letopis.web.languages import translatable
from letopis.web.tables import TableColumn

FINDING_NAMES = {
    "orphan": translatable("no links to it"),
    "unreachable": translatable("not reachable from the home page"),
    "chain": translatable("long redirect"),
    "loop": translatable("redirect loop"),
    "duplicate-title": translatable("same title"),
    "duplicate-content": translatable("same content"),
}
ISSUE_NAMES = {
    "error": translatable("error status"),
    "noindex": translatable("hidden from search engines (noindex)"),
    "nofollow": translatable("its links are not followed (nofollow)"),
    "title-missing": translatable("title missing"),
    "title-long": translatable("title too long"),
    "title-duplicate": translatable("duplicate title"),
    "description-missing": translatable("description missing"),
    "description-long": translatable("description too long"),
    "description-duplicate": translatable("duplicate description"),
    "heading-missing": translatable("main heading missing"),
    "headings-several": translatable("several main headings"),
    "canonical-missing": translatable("canonical address missing"),
    "canonical-elsewhere": translatable("canonical address differs"),
    "hreflang-not-mutual": translatable("hreflang without return link"),
    "image-without-alt": translatable("image without alt text"),
    "mixed-content": translatable("loads resources without HTTPS"),
    "large": translatable("very large"),
    "deep": translatable("many clicks away"),
    "orphan": translatable("no links to it"),
    "unreachable": translatable("not reachable from the home page"),
    "redirect-chain": translatable("long redirect"),
    "redirect-loop": translatable("redirect loop"),
    "content-duplicate": translatable("same content"),
}
AUDIT_COLUMNS = (
    TableColumn("url", translatable("Page"), "page"),
    TableColumn("status", translatable("Status"), "status"),
    TableColumn("issues", translatable("Issues"), "badges", called=ISSUE_NAMES),
    TableColumn("title", translatable("Title"), aside=True),
    TableColumn("description", translatable("Description"), hidden=True),
    TableColumn("heading", translatable("Main heading"), hidden=True),
    TableColumn("headings", translatable("Main headings"), "number", hidden=True),
    TableColumn("robots", translatable("Robots"), hidden=True),
    TableColumn("canonical", translatable("Canonical address"), hidden=True),
    TableColumn("alternates", translatable("Languages"), "number", hidden=True),
    TableColumn("depth", translatable("Clicks"), "number", aside=True),
    TableColumn("words", translatable("Words"), "number", aside=True),
    TableColumn("bytes", translatable("Size"), "size", aside=True),
    TableColumn("images", translatable("Images"), "number", hidden=True),
    TableColumn("without_alt", translatable("Images without alt text"), "number", hidden=True),
    TableColumn("insecure", translatable("Resources without HTTPS"), "number", hidden=True),
)
BROKEN_COLUMNS = (
    TableColumn("target", translatable("Leads to"), "page"),
    TableColumn("status", translatable("Status"), "custom"),
    TableColumn("since", translatable("Since"), "ago"),
    TableColumn("source", translatable("Found on"), "page"),
    TableColumn("line", translatable("Line to change"), "custom", aside=True),
    TableColumn("markup", translatable("Text of the line"), hidden=True),
    TableColumn("text", translatable("Text of the link"), hidden=True),
    TableColumn("final", translatable("Final address"), hidden=True),
    TableColumn("failure", translatable("Reason"), hidden=True),
    TableColumn("replacement", translatable("Replacement"), "custom", aside=True),
    TableColumn("last_good", translatable("Last good version"), "time", hidden=True),
    TableColumn("actions", translatable("Actions"), "actions"),
)
EVENT_NAMES = {
    "appeared": translatable("appeared"),
    "vanished": translatable("vanished"),
    "moved": translatable("moved"),
    "renamed": translatable("renamed"),
    "broken": translatable("broken"),
    "mended": translatable("fixed"),
    "changed": translatable("changed"),
}
EVENT_COLUMNS = (
    TableColumn("time", translatable("Last change"), "ago"),
    TableColumn("event", translatable("What"), "custom", called=EVENT_NAMES),
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("title", translatable("Title"), hidden=True),
    TableColumn("details", translatable("Details"), "custom"),
    TableColumn("status", translatable("Status"), "status", hidden=True),
    TableColumn("links", translatable("Linked from"), "number", hidden=True),
)
FINDING_COLUMNS = (
    TableColumn("finding", translatable("Finding"), "named", called=FINDING_NAMES),
    TableColumn("detail", translatable("Details"), "custom"),
    TableColumn("urls", translatable("Pages"), "custom"),
)
PAGE_COLUMNS = (
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("title", translatable("Title"), hidden=True),
    TableColumn("status", translatable("Status"), "status"),
    TableColumn("leads_to", translatable("Leads to"), "page", hidden=True),
    TableColumn("type", translatable("Kind"), hidden=True),
    TableColumn("clicks", translatable("Clicks"), "number", aside=True),
    TableColumn("links_in", translatable("Linked from"), "number", aside=True),
    TableColumn("links_out", translatable("Links to"), "number", aside=True),
    TableColumn("bytes", translatable("Size"), "size", aside=True),
    TableColumn("versions", translatable("Versions"), "number"),
    TableColumn("changed", translatable("Newest version"), "ago"),
    TableColumn("checked", translatable("Last check"), "ago", aside=True),
)
ANSWER_NAMES = {
    "page": translatable("pages"),
    "file": translatable("other files"),
    "redirect": translatable("redirects"),
    "error": translatable("errors"),
    "none": translatable("without an answer yet"),
}
LINK_COLUMNS = (
    TableColumn("url", translatable("Page"), "page"),
    TableColumn("name", translatable("Title")),
    TableColumn("rank", translatable("Rank"), "decimal"),
    TableColumn("links_in", translatable("Linked from"), "number"),
    TableColumn("links_out", translatable("Links to"), "number"),
)
RANK_COLUMNS = (
    TableColumn("place", translatable("Place"), "number"),
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("title", translatable("Title"), hidden=True),
    TableColumn("rank", translatable("Rank"), "custom"),
    TableColumn("rise", translatable("Change of rank"), "custom"),
    TableColumn("links_in", translatable("Linked from"), "number", aside=True),
    TableColumn("clicks", translatable("Clicks"), "number", aside=True),
)


def audit_table(audits: Sequence[AuditCounts]) -> tuple[list[TableColumn], list[SimpleNamespace]]:
    """Audits in figures, the newest first, with a column for every issue that one of them has."""
    known = [issue for issue in ISSUE_NAMES if any(issue in one.issues for one in audits)]
    columns = [
        TableColumn("at", translatable("When"), "time"),
        TableColumn("pages", translatable("Pages and errors"), "number"),
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


def page_line(row: PageRow, facts: PageFacts | None, dated: bool) -> SimpleNamespace:
    """A page of a site as the table shows it; of an earlier time with the version of then."""
    nothing = dict.fromkeys((*MapPage._fields, *PageFacts._fields))
    known = {**facts.page._asdict(), **facts._asdict()} if facts else {**nothing, "answer": "none"}
    changed = facts.page.time if facts and dated else row.changed
    return SimpleNamespace(**{**known, **row._asdict(), "changed": changed})


class RankLine(NamedTuple):
    """A page by its place, with its rank and how that rose since an earlier time; null for a page that is new."""

    place: int
    url: str
    title: str
    rank: float
    rise: float | None
    links_in: int
    clicks: int | None


def event_line(row: SiteEvent) -> SimpleNamespace:
    """An event as the table shows it; its details are for the filter and for files, the page words them."""
    details = " ".join(filter(None, (row.to, row.parent, row.before)))
    return SimpleNamespace(**row._asdict(), details=details, found=row, texts=())


def with_replaced_texts(
    archive: Archive, first: datetime, last: datetime, rows: Sequence[SimpleNamespace]
) -> list[SimpleNamespace]:
    """The rows with the texts that went and came between two dates, which costs a look at both versions."""
    for row in rows:
        change = change_of_event(archive, row.found, first, last)
        if change is not None:
            row.texts, row.verdict = replaced_texts(change), change.verdict
            said = (f"{text.removed} → {text.added}" for text in row.texts)
            row.details = "; ".join(filter(None, (row.details, *said)))
    return list(rows)


def with_lines(sources: PageSources, answers: RecordReader, rows: Sequence[SimpleNamespace]) -> list[SimpleNamespace]:
    """The rows with where their links stand and why nothing answered, which costs a look at each of their pages."""
    for row, found in zip(rows, with_places((row.found for row in rows), sources), strict=True):
        row.line, row.column = found.line, found.column
        row.markup = sources.line(row.source, found.line, found.column)
        row.failure = _failure_of(answers, row)
    return list(rows)


def _failure_of(answers: RecordReader, row: SimpleNamespace) -> str:
    """Why the target of a link gave no answer; redirects that end at a redirect go round in a circle."""
    if row.status:
        return FailureKind.REDIRECT_LOOP if 300 <= row.status < 400 else ""
    try:
        return answers.newest_checks(row.target, 1)[-1].failure
    except NotFound:
        return ""


def broken_line(home: str, row: BrokenRow) -> SimpleNamespace:
    """A broken link as the table shows it, with where our archive shows what it led to; empty when it never worked."""
    copy = f"{home}/web/{stamp14(row.last_good)}/{row.final or row.target}" if row.last_good else ""
    return SimpleNamespace(**row._asdict(), found=row, markup="", replacement=copy, failure="")
