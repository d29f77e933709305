"""The audit of a site: every page with its issues, as of any date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from letopis.archive import READ
from letopis.errors import UsageError
from letopis.index.site_audit import AUDIT_ISSUES, AuditedPage, MarkupReader, audit_site
from letopis.index.site_maps import site_map
from letopis.model import to_millis
from letopis.operations.answers import Rows
from letopis.operations.context import Context
from letopis.operations.indexes import known_site
from letopis.operations.operation import operation
from letopis.operations.parameters import Parameters, parameter
from letopis.tuples import NamedTuple


class SiteAuditQuery(Parameters):
    """Of which site, when, and which issues."""

    site: str = parameter("A host, or the address of a page to start from.", argument=True)
    at: datetime | None = parameter("As of this time.", default=None, ends_day=True)
    issue: str | None = parameter(
        f"Only pages with this issue: {', '.join(AUDIT_ISSUES)}.", default=None, longest=40, metavar="ISSUE"
    )
    limit: int = parameter("Most pages that are read.", default=5000, at_least=1, at_most=100_000)


@operation(
    "site_audit",
    right=READ,
    row_key=("url", "issues"),
    verb="map audit",
    route=("GET", "/map/audit"),
    step="audit",
    listed="pages",
    element="page",
    columns=("url", "status", "depth", "title", "issues"),
    about={"site": str, "at": datetime, "issues": dict[str, int], "pages": int, "indexable": int},
    errors=(404,),
    examples=(
        "letopis map audit example.org",
        "letopis map audit example.org --issue title-missing --at 2024-01-31 --json",
    ),
)
def site_audit(context: Context, asked: SiteAuditQuery) -> Rows[AuditedPage]:
    """Audit a site: titles, descriptions, headings, canonical addresses, images, redirects, orphans of every page.

    Each page stands with its issues; beside the pages stands how many have each, and how many pages search engines
    may list. Pages are read as they were then.
    """
    if asked.issue is not None and asked.issue not in AUDIT_ISSUES:
        raise UsageError(f"'{asked.issue}' is no issue; choose one of {', '.join(AUDIT_ISSUES)}")
    name, graph = known_site(context, asked.site)
    when = context.moment(asked.at)
    found = site_map(graph, asked.site, to_millis(when), errors=True)
    reader = MarkupReader(context.archive)
    rows = list(audit_site(reader, found, asked.limit, context.steps_of("pages")))
    about = {"site": name, "at": when, "issues": _issue_counts(rows), "indexable": sum(row.indexable for row in rows)}
    kept = rows if asked.issue is None else [row for row in rows if asked.issue in row.issues]
    return Rows(kept, {**about, "pages": len(rows)}, remark="" if kept else "no page has such an issue")


def _issue_counts(rows: Sequence[AuditedPage]) -> dict[str, int]:
    """How many pages have each issue, those that none has left out."""
    found = Counter(issue for row in rows for issue in row.issues)
    return {issue: found[issue] for issue in AUDIT_ISSUES if issue in found}


class AuditCounts(NamedTuple):
    """An audit in figures: when, of how many pages, how many of them have issues, and how many have each."""

    at: datetime
    pages: int
    faulty: int
    issues: dict[str, int]


def audit_history(context: Context, site: str, times: Iterable[datetime], most: int) -> list[AuditCounts]:
    """The audits of a site at some times in figures; at most so many pages are read, each version of them once."""
    _, graph = known_site(context, site)
    reader = MarkupReader(context.archive)
    found = []
    for when in times:
        rows = list(audit_site(reader, site_map(graph, site, to_millis(when), errors=True), most))
        faulty = sum(bool(row.issues) for row in rows)
        found.append(AuditCounts(when, len(rows), faulty, _issue_counts(rows)))
    return found
