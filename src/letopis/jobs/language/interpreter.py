"""Runs a query: its package says which steps it means, and each step writes one element of the result."""

from __future__ import annotations

from lxml import etree

from letopis.config import Settings
from letopis.errors import UsageError
from letopis.jobs.language.crawl_steps import (
    copyfromcache_step,
    copytocache_step,
    crawler_step,
    download_step,
    urltransform_step,
)
from letopis.jobs.language.door import step_of
from letopis.jobs.language.job_file import query_root, steps_of
from letopis.jobs.language.packages import STYLESHEETS, package_named
from letopis.jobs.language.steps import (
    QueryRun,
    Step,
    check_step,
    cleaner_step,
    compact_step,
    diff_step,
    export_step,
    run_steps,
    search_step,
    wordfigure_step,
    wordprefix_step,
)
from letopis.jobs.query import JobContext, JobQuery
from letopis.operations.registry import all_operations
from letopis.urls import UrlRules, rules_from_element

STEPS: dict[str, Step] = {
    "copyfromcache": copyfromcache_step,
    "download": download_step,
    "copytocache": copytocache_step,
    "urltransform": urltransform_step,
    "crawler": crawler_step,
    "wordfigure": wordfigure_step,
    "wordprefix": wordprefix_step,
    "cleaner": cleaner_step,
    "search": search_step,
    "check": check_step,
    "diff": diff_step,
    "export": export_step,
    "compact": compact_step,
    **{operation.step: step_of(operation) for operation in all_operations().values() if operation.step},
}
"""All steps by the names of their elements; the schema knows the same."""


def run_query(query: JobQuery, around: JobContext) -> bytes:
    """Works a query off and answers the XML of its result: one element a step, in order, without a root.

    Raises Cancelled when `around.progress` says so, and the error of the step
    that failed, with the name of the step in its sentence. Blocks; not to be
    called from an event loop.
    """
    package = package_named(query.package, around.settings)
    if package.perform is not None:
        return package.perform(query, around)
    steps = steps_of(query_root(query), package)
    return run_steps(steps, _query_run(steps, around), STEPS)


def _query_run(steps: list[etree._Element], around: JobContext) -> QueryRun:
    """What holds for the whole query, wherever in it it stands."""
    rules = sum((rules_from_element(step) for step in steps if step.tag == "urltransform"), UrlRules())
    modes = [step.get("mode", "full") for step in steps if step.tag == "crawler"]
    return QueryRun(around, rules, "basic" if modes and set(modes) == {"basic"} else "full")


def stylesheet_of(query: JobQuery, settings: Settings) -> bytes | str | None:
    """The stylesheet for a query's result where nobody names another: the query's own, else its package's.

    `xslt` of a query names a file of its package, given whole here, or a stylesheet
    that Letopis brings, given by its name; `transform` takes both.
    """
    package = package_named(query.package, settings)
    name = query_root(query).get("xslt")
    if name is None:
        return package.result
    own = package.stylesheet(name)
    if own is None and name not in STYLESHEETS:
        raise UsageError(f"there is no stylesheet '{name}' in package '{package.name}'; name one of its files or "
                         f"{', '.join(STYLESHEETS)}")  # fmt: skip
    return name if own is None else own
