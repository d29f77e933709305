"""What the steps of a query share, and the step that runs an operation: attributes in, an element of rows out."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from letopis.archive import Archive
from letopis.archive.job_control import CrawlJournal
from letopis.crawl import CrawlStats
from letopis.index.link_graph import Graph
from letopis.index.link_index import LinkIndex
from letopis.index.word_index import WordIndex
from letopis.jobs.documents import attributes_of, element, row_element, row_elements
from letopis.jobs.execution import JobContext
from letopis.model import parse_time, to_millis
from letopis.operations import Answer, Cancelled, Context, Document, Operation, Value, bind, json_value
from letopis.operations.indexes import link_index
from letopis.operations.job_files import given_values, require_right
from letopis.operations.words import word_index
from letopis.urls.rules import UrlRules, UrlRuleVerdict


class _JobProgress:
    """The progress of an operation inside a job."""

    def __init__(self, context: JobContext) -> None:
        self._context = context

    def show(self, done: int, what: str = "", of: int = 0) -> None:
        """Items are a share of the step where it is known how many there are."""
        if of:
            self._context.progress.share(done / of)

    def remark(self, sentence: str) -> None:
        """Writes a line to the log of the job."""
        self._context.progress.log(sentence)

    def cancelled(self) -> bool:
        """Whether the job was stopped."""
        return self._context.progress.cancelled()


@dataclass
class QueryRun:
    """What the steps of one query share.

    `mode` is how the query wants its pages indexed, `domains` what it selected from the cache, `figures` and `judged`
    what its downloads did so far, `crawls` how many there were.
    """

    context: JobContext
    rules: UrlRules
    mode: str = "full"
    domains: list[str] = field(default_factory=list)
    figures: CrawlStats = field(default_factory=CrawlStats)
    judged: dict[str, UrlRuleVerdict] = field(default_factory=dict)
    crawls: int = 0

    def next_journal(self) -> CrawlJournal | None:
        """Of the crawl that begins now, which may have begun before."""
        self.crawls += 1
        return self.context.journal(self.crawls) if self.context.journal is not None else None

    @property
    def archive(self) -> Archive:
        """The archive of the query."""
        return self.context.archive

    @property
    def links(self) -> LinkIndex:
        """The index of links, which may be out of date."""
        return link_index(self.archive)

    @property
    def words(self) -> WordIndex:
        """The index of words, which may be out of date."""
        return word_index(self.archive)

    def graph(self) -> Graph:
        """All links, up to date."""
        self.links.catch_up(lambda done: None, self.context.progress.cancelled)
        self.raise_if_cancelled()
        return self.links.graph()

    def operation_context(self) -> Context:
        """What operations may use on behalf of the requester of the job."""
        context, requester = self.context, self.context.requester
        return Context(
            context.archive, user=requester.name, rights=requester.rights, private_ok=context.private_allowed,
            origin=requester.origin, form="xml", progress=_JobProgress(context), output=context.output,
        )  # fmt: skip

    def raise_if_cancelled(self) -> None:
        """Raises Cancelled if the job is no longer wanted."""
        if self.context.progress.cancelled():
            raise Cancelled("the job was stopped; what it had recorded stays")

    def millis(self, step: etree._Element) -> int:
        """The time that a step names, in milliseconds; now where it names none."""
        now = self.context.clock()
        return to_millis(parse_time(step.get("at", ""), now) if "at" in step.attrib else now)


Step = Callable[[etree._Element, QueryRun], bytes]


def bool_attribute(step: etree._Element, name: str) -> bool:
    """Whether an attribute says yes."""
    return step.get(name, "false").strip() in ("true", "1")


def int_attribute(step: etree._Element, name: str) -> int | None:
    """A number that an attribute gives."""
    text = step.get(name)
    return None if text is None else int(text)


def element_text(step: etree._Element) -> str:
    """The text of an element without blanks around it."""
    return (step.text or "").strip()


def child_texts(step: etree._Element, name: str) -> list[str]:
    """The texts of the children of a name."""
    return [element_text(child) for child in step.iterchildren(name)]


def step_of(operation: Operation[Any, Any]) -> Step:
    """The step of an operation: attributes and child elements in, one element with its rows out."""

    def run_step(step: etree._Element, run: QueryRun) -> bytes:
        require_right(operation, run.context.requester.rights)
        parameters = bind(operation.parameters, given_values(operation, step), run.context.clock())
        return _result(operation, step, operation(run.operation_context(), parameters))

    return run_step


def _result(operation: Operation[Any, Any], step: etree._Element, answer: Answer) -> bytes:
    if isinstance(answer, Document):
        return _document(step, answer)
    if isinstance(answer, Value):
        return row_element(operation.step, json_value(answer.value)).encode()
    names = {one.alias: one.attribute for one in operation.parameters_in("job")}
    about = {names.get(name, name): json_value(value) for name, value in answer.about.items()}
    return row_elements(operation.step, about, operation.element, map(json_value, answer))


def _document(step: etree._Element, answer: Document) -> bytes:
    """XML as it is; any other text inside an element with what was asked for, bytes in base64."""
    data = b"".join(answer.bytes())
    kind = answer.media_type.partition(";")[0]
    if kind.endswith("xml"):
        return (data.partition(b"?>\n")[2] if data.startswith(b"<?xml") else data).rstrip(b"\n")
    if kind.startswith("text/") or kind == "application/json":
        return element(str(step.tag), attributes_of(step), data.decode("utf-8", "replace")).encode()
    return element(str(step.tag), attributes_of(step) | {"encoding": "base64"}, b64encode(data).decode()).encode()
