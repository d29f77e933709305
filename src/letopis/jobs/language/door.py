"""The job language as a door to operations: a step for every operation that names one."""

from __future__ import annotations

from typing import Any

from lxml import etree

from letopis.jobs.language.documents import row_elements
from letopis.jobs.language.schema import text_parameter
from letopis.jobs.language.steps import QueryRun, Step
from letopis.model.rights import OWN, READ, WRITE
from letopis.operations import Answer, Context, Document, Operation, Value, bind, json_value


class _JobProgress:
    """The progress of an operation inside a job: only whether to stop is asked."""

    def __init__(self, run: QueryRun) -> None:
        self._run = run

    def show(self, done: int, what: str = "") -> None:
        """Items are no share of a step."""

    def cancelled(self) -> bool:
        """Whether the job was stopped."""
        return self._run.around.progress.cancelled()


def step_of(operation: Operation[Any, Any]) -> Step:
    """The step of an operation: attributes and child elements in, one element with its rows out."""

    def step(element: etree._Element, run: QueryRun) -> bytes:
        asked = bind(operation.parameters, _given(operation, element), run.around.clock())
        context = Context(
            run.archive, user=run.around.user, rights=READ | WRITE | OWN,
            private_ok=run.around.private_allowed, form="xml", progress=_JobProgress(run),
        )  # fmt: skip
        return _result(operation, operation(context, asked))

    return step


def _given(operation: Operation[Any, Any], element: etree._Element) -> dict[str, Any]:
    """Raw values by alias: attributes, and the texts of child elements."""
    given: dict[str, Any] = {str(name): value for name, value in element.attrib.items()}
    for one in operation.parameters_in("job"):
        children = [(child.text or "").strip() for child in element.iterchildren(one.alias)]
        if children:
            given[one.alias] = children if one.repeated else children[-1]
        elif one is text_parameter(operation) and one.alias not in given and (element.text or "").strip():
            given[one.alias] = (element.text or "").strip()
    return given


def _result(operation: Operation[Any, Any], answer: Answer) -> bytes:
    if isinstance(answer, Document):
        data = b"".join(answer.bytes())
        return (data.partition(b"?>\n")[2] if data.startswith(b"<?xml") else data).rstrip(b"\n")
    if isinstance(answer, Value):
        return row_elements(operation.step, json_value(answer.value), operation.element, ())
    return row_elements(operation.step, answer.about, operation.element, map(json_value, answer))
