"""Runs a query: its package turns it into steps, and each step writes one element of the result.

`python -m letopis.jobs.language.interpreter` is a worker process, which the supervisor starts.
"""

from __future__ import annotations

import sys

from lxml import etree

from letopis.archive.jobs import JobQuery
from letopis.errors import LetopisError
from letopis.jobs.execution import JobContext, JobLanguage, run_worker
from letopis.jobs.language.crawl_steps import (
    copyfromcache_step,
    copytocache_step,
    crawler_step,
    download_step,
    urltransform_step,
)
from letopis.jobs.language.steps import QueryRun, Step, step_of
from letopis.jobs.packages import package_named
from letopis.operations import Cancelled
from letopis.operations.job_files import parse_job_file, query_steps, step_operations
from letopis.urls.rules import UrlRules, rules_from_element

STEPS: dict[str, Step] = {
    "copyfromcache": copyfromcache_step,
    "download": download_step,
    "copytocache": copytocache_step,
    "urltransform": urltransform_step,
    "crawler": crawler_step,
    **{name: step_of(operation) for name, operation in step_operations().items()},
}
"""All steps by the names of their elements; the schema knows the same."""


def run_query(query: JobQuery, context: JobContext) -> bytes:
    """Works a query off and answers the XML of its result: one element a step, in order, without a root.

    Raises Cancelled when `context.progress` says so, and the error of the step that failed, with the name of the step
    in its sentence. Blocks; not to be called from an event loop.
    """
    package = package_named(query.package, context.settings)
    if package.perform is not None:
        return package.perform(query, context)
    steps = query_steps(query, package)
    return _run_steps(steps, _query_run(steps, context))


def _query_run(steps: list[etree._Element], context: JobContext) -> QueryRun:
    """What applies to the whole query, wherever it is written."""
    rules = sum((rules_from_element(step) for step in steps if step.tag == "urltransform"), UrlRules())
    modes = [step.get("mode", "full") for step in steps if step.tag == "crawler"]
    return QueryRun(context, rules, "basic" if modes and set(modes) == {"basic"} else "full")


def _run_steps(steps: list[etree._Element], run: QueryRun) -> bytes:
    """One element a step, in their order. A failing step fails the query, with its name in the sentence."""
    done: list[bytes] = []
    for place, step in enumerate(steps, 1):
        name = str(step.tag)
        run.context.progress.step(place, len(steps), name)
        run.raise_if_cancelled()
        try:
            done.append(STEPS[name](step, run))
        except Cancelled:
            raise
        except LetopisError as fault:
            fault.args = (f"step {place}, <{name}>: {fault.message}",)
            raise
        run.context.progress.share(1.0)
    return b"\n".join(done)


if __name__ == "__main__":
    sys.exit(run_worker(JobLanguage(parse_job_file, run_query)))
