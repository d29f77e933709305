"""Runs in words: what one does, how far it is and what it waits for, why it failed, and what came of it.

A result is XML of the engine. Here each of its steps becomes a heading, figures, a table with words for its columns and
values, and the pages that show more of the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import Request

from letopis.errors import UsageError
from letopis.jobs.documents import read_xml
from letopis.model import as_moment
from letopis.operations.job_rows import Job
from letopis.schedule.policies import format_span
from letopis.tuples import NamedTuple
from letopis.web.languages import grouped, translatable, translate
from letopis.web.pages import url_in_path
from letopis.web.site_tables import EVENT_NAMES, FINDING_NAMES, ISSUE_NAMES
from letopis.web.tables import TableColumn, TableView, make_table

if TYPE_CHECKING:
    from lxml.etree import _Element

_CRAWL_FIGURES = translatable("{fetched} fetched, {waiting} waiting")
_NOT_KNOWN = translatable("{fetched} fetched, total not known yet")
_ALL_FETCHED = translatable("{fetched} fetched")
_HOST_RESTS = translatable("next request to {host} in {span}")
_HOST_BUSY = translatable("{host} answered with {status}; next request in {span}")
_CRAWLED = re.compile(r"(\d+) fetched(?:, (\d+) waiting(?:, (\S+) again at (\S+) \((\d+|pause)\))?)?")
_STEP_NAMES = {
    "download": translatable("download"),
    "crawler": translatable("indexing"),
    "export": translatable("creating the file"),
    "import": translatable("importing the file"),
    "verify": translatable("verifying"),
    "compact": translatable("compacting"),
    "broken": translatable("checking links"),
}
"""What people call the steps of runs; one that is not named here has its own name."""


def step_words(job: Job) -> str:
    """The step of a job in words: its number where it has several, how far a crawl is, and what it waits for."""
    name, _, figures = job.step.partition(": ")
    number, _, step = name.rpartition(" ")
    step = translate(_STEP_NAMES.get(step, step))
    alone, said = number in ("", "1/1"), _figures(figures, job)
    if alone and _CRAWLED.fullmatch(figures):
        return said
    called = step if alone else f"{number} {step}"
    return f"{called}: {said}" if said else called


def run_progress(job: Job) -> float | None:
    """How far a run is, from 0 to 1; None for a crawl that works and does not know yet of anything that waits."""
    known = _CRAWLED.search(job.step)
    return None if known and known[2] == "0" and job.state == "running" else job.progress


def _figures(figures: str, job: Job) -> str:
    known = _CRAWLED.fullmatch(figures)
    if known is None:
        return figures
    fetched, waiting, host, until, status = known.groups()
    if job.ended or waiting is None:
        return translate(_ALL_FETCHED, fetched=fetched)
    said = translate(_CRAWL_FIGURES if int(waiting) else _NOT_KNOWN, fetched=fetched, waiting=waiting)
    if job.state == "paused":
        return said
    now = datetime.now(UTC)
    left = (as_moment(until, now) - now).total_seconds() if until else 0.0
    if left <= 0:
        return said
    words = {"host": host, "span": format_span(round(left + 0.5)), "status": status}
    return f"{said}; {translate(_HOST_RESTS if status == 'pause' else _HOST_BUSY, **words)}"


_TITLES = {
    "crawl": translatable("Crawl of {what}"),
    "audit": translatable("Audit of {what}"),
    "broken": translatable("Link check of {what}"),
    "export": translatable("Download of {what}"),
    "import": translatable("Import of {what}"),
    "map": translatable("Map of {what}"),
}
_WHOLE_TITLES = {
    "export": translatable("Download of the whole archive"),
    "verify": translatable("Verification of the archive"),
    "compact": translatable("Compaction of the archive"),
}
_OWN_NAME = re.compile(rf"({'|'.join(_TITLES)}) of (\S.*)|({'|'.join(_WHOLE_TITLES)})")
_STEP_BEFORE = re.compile(r"^step (\d+), <(\w+)>: ")
_FOR_OTHERS = re.compile(r"; [^;]*'letopis [^']*'[^;]*$")


def run_title(job: Job) -> str:
    """What a run does, for people: the name that somebody gave it, or the words for what a form started."""
    return called_run(job.name) or translate(_NUMBERED, number=job.id)


def called_run(name: str) -> str:
    """The name of a run in the words of its form, if one has made it."""
    found = _OWN_NAME.fullmatch(name)
    if found is None:
        return name
    return translate(_TITLES[found[1]], what=found[2]) if found[1] else translate(_WHOLE_TITLES[found[3]])


_NUMBERED = translatable("Run {number}")


def takes_sent_file(name: str) -> bool:
    """Whether a run of this name takes in a file that was sent with it."""
    found = _OWN_NAME.fullmatch(name)
    return found is not None and found[1] == "import"


def begins_anew(name: str) -> bool:
    """Whether a run of this name, once it has ended, can only run again: a crawl goes on where it was."""
    found = _OWN_NAME.fullmatch(name)
    return found is not None and found[1] != "crawl"


def clock_time(seconds: int) -> str:
    """`1:05`, or `2:01:05`."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def failure_words(job: Job) -> str:
    """Why a run failed, without what a page says otherwise: names of elements, and commands."""
    return _FOR_OTHERS.sub("", _STEP_BEFORE.sub("", job.message))


SCOPE_NAMES = {
    "page": translatable("only this page"),
    "prefix": translatable("pages below this address"),
    "host": translatable("the whole host"),
    "domain": translatable("all hosts of the domain"),
    "any": translatable("anywhere"),
}


def asked_words(query: bytes) -> list[str]:
    """What was asked of a crawl, in the words of its form; of other runs their titles say it."""
    try:
        step = next(read_xml(query, "the query").iter("download"), None)
    except UsageError:
        return []
    if step is None:
        return []
    given = {str(name): str(value) for name, value in step.attrib.items()}
    depth, limit, delay = given.get("maxlevel", ""), given.get("limit", ""), given.get("delay", "")
    scope = SCOPE_NAMES.get(given.get("scope", "host"))
    said = [
        translate(scope) if scope else "",
        translate(_DEPTH, depth=depth) if depth.isdecimal() else "",
        translate(_LIMIT, limit=grouped(int(limit))) if limit.isdecimal() else "",
        translate(_DELAY, span=re.sub(r"(?<=\d)(?=[a-z])", " ", delay)) if delay else "",
        translate(_REQUISITES) if given.get("requisites") == "true" else "",
        translate(_BROWSER) if given.get("browser") == "true" else "",
    ]
    return [words for words in said if words]


_DEPTH, _LIMIT = translatable("depth {depth}"), translatable("page limit {limit}")
_DELAY = translatable("{span} between requests")
_REQUISITES = translatable("with images, styles and scripts")
_BROWSER = translatable("rendered in a browser")


_FORM_FIELDS = {
    "scope": "scope", "maxlevel": "depth", "limit": "limit", "delay": "delay", "site": "site", "kind": "format"
}  # fmt: skip
"""The attributes of the steps that forms start, and the fields of the forms that say the same."""


def sent_form(query: bytes) -> dict[str, str]:
    """The form that starts what a query asks; empty for a query that no form could make."""
    try:
        steps = list(read_xml(query, "the query"))
    except UsageError:
        return {}
    kinds = {"download": "crawl", "export": "export", "audit": "audit", "broken": "broken"}
    if len(steps) != 1 or str(steps[0].tag) not in kinds or len(steps[0]) > 1:
        return {}
    step = steps[0]
    given = {str(name): str(value) for name, value in step.attrib.items()}
    fields = {_FORM_FIELDS[name]: value for name, value in given.items() if name in _FORM_FIELDS}
    chosen = {name: "1" for name in ("requisites", "browser") if given.get(name) == "true"}
    url = {"site": step[0].text or ""} if len(step) else {}
    return {"kind": kinds[str(step.tag)], **fields, **chosen, **url}


class RunFigure(NamedTuple):
    """A count or a size that a step found."""

    label: str
    value: float
    kind: str


class MoreLink(NamedTuple):
    """A page that shows more, and its label, which may name what it is about."""

    address: str
    label: str
    what: str = ""


class RunResult(NamedTuple):
    """What came of one step; `nothing` says so where it looked for something and there was none."""

    step: str
    heading: str
    site: str
    figures: Sequence[RunFigure]
    issues: Mapping[str, int]
    table: TableView | None
    nothing: str
    more: tuple[MoreLink, ...]

    @property
    def known(self) -> bool:
        """Whether people can read it here, without its XML."""
        return bool(self.figures or self.table or self.nothing)


_HEADINGS = {
    "audit": translatable("Pages"),
    "broken": translatable("Broken links"),
    "check": translatable("Checks"),
    "compact": translatable("Storage"),
    "download": translatable("Crawl"),
    "duplicates": translatable("Duplicates"),
    "export": translatable("Files"),
    "import": translatable("Import"),
    "links": translatable("Links"),
    "map": translatable("Pages"),
    "mapdiff": translatable("Changes"),
    "pagerank": translatable("Ranks"),
    "report": translatable("Findings"),
    "search": translatable("Pages found"),
    "usage": translatable("Statistics"),
    "verify": translatable("Problems"),
}
"""What people call the results of steps; one that is not named here has its own name."""
_NOTHING = {
    "broken": translatable("No broken link was found."),
    "import": translatable("Everything in this file is already in the archive; nothing was added twice."),
    "mapdiff": translatable("Nothing changed in that period."),
    "verify": translatable("No problems found: every byte and every reference is intact."),
}
_COUNTED = ("broken", "check", "duplicates", "links", "mapdiff", "report", "verify")
"""Steps whose rows are what they were asked for, so that their number is a figure."""
_FIGURES: dict[str, tuple[str, str]] = {
    "pages": (translatable("Pages"), "number"),
    "indexable": (translatable("Open to search engines"), "number"),
    "fetched": (translatable("Fetched"), "number"),
    "links": (translatable("Links"), "number"),
    "bytes": (translatable("Size"), "size"),
    "captures": (translatable("Captures"), "number"),
    "taken": (translatable("Imported"), "number"),
    "records": (translatable("Records"), "number"),
    "checks": (translatable("Checks"), "number"),
    "versions": (translatable("Versions"), "number"),
    "same": (translatable("Already known"), "number"),
    "refused": (translatable("Rejected"), "number"),
    "queued": (translatable("Queued"), "number"),
    "watches": (translatable("Watches"), "number"),
    "files": (translatable("Files"), "number"),
    "documents": (translatable("Recompressed"), "number"),
    "dropped_versions": (translatable("Versions dropped"), "number"),
    "bytes_before": (translatable("Before"), "size"),
    "bytes_after": (translatable("Afterwards"), "size"),
    "total": (translatable("Pages found"), "number"),
}
"""Attributes of steps that are figures; those of 0 are said only where they answer the question."""
_ALWAYS = ("pages", "indexable", "fetched", "total", "taken")
FIELD_NAMES = {
    "url": translatable("Page"), "title": translatable("Title"), "status": translatable("Status"),
    "lang": translatable("Language"), "language": translatable("Language"), "bytes": translatable("Size"),
    "length": translatable("Size"), "type": translatable("Kind"), "content_type": translatable("Kind"),
    "images": translatable("Images"), "time": translatable("When"), "checked_at": translatable("When"),
    "source": translatable("Found on"), "target": translatable("Leads to"), "text": translatable("Text of the link"),
    "since": translatable("Since"), "issues": translatable("Issues"), "depth": translatable("Clicks"),
    "description": translatable("Description"), "rank": translatable("Rank"), "heading": translatable("Main heading"),
    "headings": translatable("Main headings"), "canonical": translatable("Canonical address"),
    "alternates": translatable("Languages"), "without_alt": translatable("Images without alt text"),
    "insecure": translatable("Resources without HTTPS"), "robots": translatable("Robots"),
    "words": translatable("Words"), "line": translatable("Line to change"), "column": translatable("Column"),
    "last_good": translatable("Last good version"), "final": translatable("Final address"),
    "final_url": translatable("Final address"), "event": translatable("What"), "to": translatable("Moved to"),
    "before": translatable("Before"), "links": translatable("Linked from"), "parent": translatable("Below"),
    "removed": translatable("Removed"), "added": translatable("Added"), "verdict": translatable("Outcome"),
    "outcome": translatable("Outcome"), "version": translatable("Version"), "finding": translatable("Finding"),
    "detail": translatable("Details"), "urls": translatable("Pages"), "other": translatable("Same as"),
    "likeness": translatable("Likeness"), "snippet": translatable("Text"), "where": translatable("Where"),
    "problem": translatable("Problem"), "day": translatable("Day"), "name": translatable("Name"),
    "pages": translatable("Pages"), "reason": translatable("Reason"), "failure": translatable("Reason"),
    "error": translatable("Reason"), "rel": translatable("Relation"),
}  # fmt: skip
"""What people call the fields of results; one that is not named here has its own name."""
_FIRST_COLUMNS = {
    "audit": ("url", "status", "issues", "title", "depth", "words", "bytes"),
    "broken": ("target", "status", "since", "source", "line", "text"),
    "check": ("url", "outcome", "status", "checked_at", "reason"),
    "links": ("source", "target", "text", "status"),
    "map": ("url", "title", "status", "lang", "bytes", "time"),
    "mapdiff": ("url", "event", "time", "removed", "added"),
    "search": ("url", "title", "snippet", "time"),
}
"""Those that are seen at first, in their order; the others can be shown."""
_SEEN, _SEEN_NARROW = 8, 3
VALUE_NAMES = ISSUE_NAMES | FINDING_NAMES | EVENT_NAMES | {"true": translatable("yes"), "false": translatable("no")}
VALUE_NAMES |= {"depth": translatable("Clicks from the home page")}
_KINDS = {
    "lang": "language", "language": "language", "status": "status", "issues": "badges", "urls": "pages",
    "bytes": "size", "length": "size",
}  # fmt: skip
_KINDS |= dict.fromkeys(("outcome", "verdict"), "outcome")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", re.ASCII)
_MOST_RESULT_ROWS = 10_000
_RESULT_ROWS = 20
_Cell = str | int | float | datetime | tuple[str, ...]


def run_results(request: Request, data: bytes) -> list[RunResult]:
    """What came of each step of a run; nothing of a result that is too large to be read here, or of none."""
    try:
        root = read_xml(data, "the result")
    except UsageError:
        return []
    names = [str(step.tag) for step in root]
    called = [name if names.index(name) == at else f"{name}-{at + 1}" for at, name in enumerate(names)]
    found = (
        _result(request, step, name, f"t{at}") for at, (step, name) in enumerate(zip(root, called, strict=True), 1)
    )
    return [one for one in found if one.step != "error"]


def _result(request: Request, step: _Element, name: str, key: str) -> RunResult:
    tag, given = str(step.tag), {str(name): str(value) for name, value in step.attrib.items()}
    table, issues = _table(request, step, key) if len(step) and tag != "download" else None, _issues(given)
    figures, empty = _figures_of(tag, given), len(step) == 0 and given.get("count") == "0"
    empty = empty or (tag == "import" and given.get("taken") == "0" and given.get("same", "0") != "0")
    if issues:
        faulty = sum(bool(row.get("issues")) for row in step)
        figures.insert(1, RunFigure(translatable("Pages with issues"), faulty, "number"))
    return RunResult(
        name, _HEADINGS.get(tag, tag), given.get("site", ""), figures, issues, table,
        _NOTHING.get(tag, "") if empty else "", _more(tag, given),
    )  # fmt: skip


def _figures_of(tag: str, given: Mapping[str, str]) -> list[RunFigure]:
    if tag == "import":  # people count captures, and the faults of all kinds
        rejected = sum(json.loads(given.get("refused") or "{}").values())
        given = {**given, "records": "", "checks": "", "refused": str(rejected)}
    counts = {name: int(given[name]) for name in _FIGURES if re.fullmatch(r"\d{1,18}", given.get(name, ""), re.ASCII)}
    said = [name for name, count in counts.items() if count or name in _ALWAYS]
    figures = [RunFigure(_FIGURES[name][0], counts[name], _FIGURES[name][1]) for name in said]
    rows = given.get("count", "")
    counted = rows.isdigit() and tag in _COUNTED
    return [RunFigure(_HEADINGS[tag], int(rows), "number")] if counted else figures


def _issues(given: Mapping[str, str]) -> dict[str, int]:
    """The issues of an audit, and on how many pages each is."""
    if not given.get("issues", "").startswith("{"):
        return {}
    counts: dict[str, int] = json.loads(given["issues"])
    return {name: count for name, count in counts.items() if name in ISSUE_NAMES}


_SITE_VIEWS = {
    "audit": translatable("Audit of {what}"),
    "broken": translatable("Broken links of {what}"),
    "changes": translatable("Changes of {what}"),
    "map": translatable("Map of {what}"),
    "ranks": translatable("Ranks of {what}"),
    "report": translatable("Structure of {what}"),
}
_VIEWS_OF_STEPS = {"mapdiff": "changes", "pagerank": "ranks"}
_PAGES_OF_STEPS = {
    "compact": MoreLink("/storage", translatable("Storage")),
    "verify": MoreLink("/storage", translatable("Storage")),
    "usage": MoreLink("/statistics", translatable("Statistics")),
    "import": MoreLink("/sites", translatable("Sites")),
    "savedcheck": MoreLink("/saved", translatable("Saved searches")),
}

_PAGES_OF_LISTS = {
    "watches": MoreLink("/watches", translatable("Watches")),
    "queued": MoreLink("/crawl", translatable("Continuous crawl")),
}
"""Where what came of the addresses of a list is shown."""


def _more(tag: str, given: Mapping[str, str]) -> tuple[MoreLink, ...]:
    """Where the pages show more of what a step is about; of an import, the sites that came with it."""
    sites = given.get("sites", "").split() if tag == "import" else []
    links = [MoreLink(f"/site/{quote(site)}", _SITE_VIEWS["map"], site) for site in sites]
    return (*links, *filter(None, [None if links else _page_of_step(tag, given)]))


def _page_of_step(tag: str, given: Mapping[str, str]) -> MoreLink | None:
    site, view = given.get("site", ""), _VIEWS_OF_STEPS.get(tag, tag)
    if site and view in _SITE_VIEWS:
        return MoreLink(f"/site/{quote(site)}?view={view}", _SITE_VIEWS[view], site)
    if tag == "duplicates":
        return MoreLink(f"/duplicates?site={quote(site)}" if site else "/duplicates", translatable("Duplicates"))
    if tag == "search" and given.get("query"):
        return MoreLink(f"/search?q={quote(given['query'])}", translatable("Search for {what}"), given["query"])
    if given.get("url"):
        return MoreLink(f"/url/{url_in_path(given['url'])}", translatable("History of {what}"), given["url"])
    planned = next((name for name in _PAGES_OF_LISTS if int(given.get(name) or 0)), "")
    return _PAGES_OF_LISTS.get(planned) or _PAGES_OF_STEPS.get(tag)


def _table(request: Request, step: _Element, key: str) -> TableView | None:
    """The rows of a step, those of a tree in their order; None where rows hold more than attributes and such rows."""
    tags = {row.tag for row in step}
    rows = list(islice((row for row in step.iterdescendants() if row.tag in tags), _MOST_RESULT_ROWS))
    if any(child.tag not in tags for row in rows for child in row) or not any(row.attrib for row in rows):
        return None
    names = list(dict.fromkeys(str(name) for row in rows for name in row.attrib))
    first = [name for name in _FIRST_COLUMNS.get(str(step.tag), names[:_SEEN]) if name in names]
    cells = [{name: _cell(name, str(row.get(name, ""))) for name in names} for row in rows]
    columns = [
        TableColumn(
            name, FIELD_NAMES.get(name, name), _kind(name, [row[name] for row in cells]), hidden=name not in first,
            aside=name in first[_SEEN_NARROW:],
        )
        for name in (*first, *(one for one in names if one not in first))
    ]  # fmt: skip
    return make_table(request, columns, [SimpleNamespace(**row) for row in cells], key, _RESULT_ROWS)


def _cell(name: str, text: str) -> _Cell:
    """Numbers as numbers and times as times, so that they are sorted and written as such."""
    if name in ("issues", "urls"):
        return tuple(text.split())
    if _TIME.fullmatch(text):
        return as_moment(text, datetime.now(UTC))
    if re.fullmatch(r"-?\d{1,15}", text, re.ASCII):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", text, re.ASCII) else text


def _kind(name: str, values: Sequence[_Cell]) -> str:
    known = [value for value in values if value not in ("", ())]
    if name in _KINDS:
        return _KINDS[name]
    for kind, types in (("time", (datetime,)), ("number", (int,)), ("decimal", (float, int))):
        if known and all(isinstance(value, types) for value in known):
            return kind
    if known and all(value in VALUE_NAMES for value in known):
        return "named"
    pages = known and all(str(value).startswith(("http://", "https://")) for value in known)
    return "page" if pages else "text"
