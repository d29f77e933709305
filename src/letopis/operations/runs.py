"""Runs: the common jobs without a job file: crawl a site, audit it, check its links, take it out, compact."""

from __future__ import annotations

from typing import Literal
from xml.etree import ElementTree

from letopis.archive import WRITE
from letopis.errors import UsageError
from letopis.operations.answers import Value
from letopis.operations.context import Context
from letopis.operations.job_rows import Job
from letopis.operations.jobs import SubmitCommand, submit_job
from letopis.operations.operation import operation
from letopis.operations.parameters import Parameters, parameter
from letopis.urls import parse_user_url
from letopis.urls import site as site_of

RunKind = Literal["crawl", "audit", "broken", "export", "compact"]
_NEED_PLACE = ("crawl", "audit", "broken")


class StartRun(Parameters):
    """What to do, where, and how far."""

    kind: RunKind = parameter("What to do.", argument=True)
    site: str | None = parameter("A host, or an address to start from; an export takes all without one.", default=None,
                                 argument=True, metavar="[SITE]")  # fmt: skip
    depth: int = parameter("Most links away from the start, of a crawl.", default=3, at_least=0, at_most=100)
    limit: int = parameter("Most addresses of a crawl.", default=1000, at_least=1, at_most=1_000_000)
    requisites: bool = parameter("Fetch pictures and styles of a crawl too.", default=True)
    form: str = parameter("Format of an export.", default="wacz", named="format", longest=20)

    def __post_init__(self) -> None:
        if self.kind in _NEED_PLACE and not self.site:
            raise UsageError(f"a run of the kind '{self.kind}' needs a site; give a host or an address")


@operation(
    "start_run",
    right=WRITE,
    verb="jobs start",
    route=("POST", "/runs"),
    status=201,
    errors=(403, 404, 429),
    audited="run started",
    subject=lambda asked: f"{asked.kind} {asked.site or ''}".strip(),
    sentence=lambda job: f"job {job.id}: {job.name}",
    examples=(
        "letopis jobs start crawl https://example.org/ --depth 2",
        "letopis jobs start audit example.org",
        "letopis jobs start export example.org --format wacz",
    ),
)
def start_run(context: Context, asked: StartRun) -> Value[Job]:
    """Put a common job into the queue: crawl or audit a site, check its links, write it to a file, compact.

    The answer is the job; its result and its files are those of every other one. Compacting is for owners.
    """
    made = submit_job(context, SubmitCommand(xml=_query(asked)))
    assert isinstance(made, Value), "nobody waits for it here"
    return Value(made.value)


def _query(asked: StartRun) -> bytes:
    """The job file that says the same."""
    place = asked.site or ""
    name = f"{asked.kind} of {site_of(place)}" if place else asked.kind
    query = ElementTree.Element("query", {"name": name[:100]})
    if asked.kind == "crawl":
        attributes = {"maxlevel": str(asked.depth), "limit": str(asked.limit)}
        step = ElementTree.SubElement(query, "download", {**attributes, "requisites": str(asked.requisites).lower()})
        ElementTree.SubElement(step, "url").text = parse_user_url(place)
    elif asked.kind == "export":
        where = {"site": site_of(place)} if place else {}
        ElementTree.SubElement(query, "export", {"kind": asked.form, **where})
    else:
        ElementTree.SubElement(query, asked.kind, {"site": site_of(place)} if asked.kind != "compact" else {})
    written: bytes = ElementTree.tostring(query, encoding="utf-8")
    return written
