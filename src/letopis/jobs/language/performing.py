"""From a query to its result: the package says which steps it means, and each step does its work."""

from __future__ import annotations

from lxml import etree

from letopis.config import Settings
from letopis.errors import UsageError
from letopis.jobs.language.export_step import export_step
from letopis.jobs.language.link_steps import broken_step, links_step, map_step, mapdiff_step, pagerank_step
from letopis.jobs.language.packages import package_named
from letopis.jobs.language.page_steps import (
    copyfromcache_step,
    copytocache_step,
    crawler_step,
    download_step,
    urltransform_step,
)
from letopis.jobs.language.parsing import read_query, steps_of
from letopis.jobs.language.running import Run, Step, run_steps
from letopis.jobs.language.stylesheets import STYLESHEETS
from letopis.jobs.language.upkeep_steps import check_step, cleaner_step, compact_step, diff_step
from letopis.jobs.language.word_steps import search_step, wordfigure_step, wordprefix_step
from letopis.jobs.query import Query, Surroundings
from letopis.urls import Rules, rules_from_element

STEPS: dict[str, Step] = {
    "copyfromcache": copyfromcache_step,
    "download": download_step,
    "copytocache": copytocache_step,
    "urltransform": urltransform_step,
    "crawler": crawler_step,
    "wordfigure": wordfigure_step,
    "pagerank": pagerank_step,
    "wordprefix": wordprefix_step,
    "cleaner": cleaner_step,
    "map": map_step,
    "mapdiff": mapdiff_step,
    "broken": broken_step,
    "links": links_step,
    "search": search_step,
    "check": check_step,
    "diff": diff_step,
    "export": export_step,
    "compact": compact_step,
}
"""All steps by the names of their elements; the schema knows the same."""


def perform(query: Query, around: Surroundings) -> bytes:
    """Works a query off and answers the XML of its result: one element a step, in order, without a root.

    Raises Cancelled when `around.progress` says so, and the error of the step
    that failed, with the name of the step in its sentence. Blocks; not to be
    called from an event loop.
    """
    package = package_named(query.package, around.settings)
    if package.perform is not None:
        return package.perform(query, around)
    steps = steps_of(read_query(query), package)
    return run_steps(steps, _run(steps, around), STEPS)


def _run(steps: list[etree._Element], around: Surroundings) -> Run:
    """What holds for the whole query, wherever in it it stands."""
    rules = sum((rules_from_element(step) for step in steps if step.tag == "urltransform"), Rules())
    modes = [step.get("mode", "full") for step in steps if step.tag == "crawler"]
    return Run(around, rules, "basic" if modes and set(modes) == {"basic"} else "full")


def stylesheet_of(query: Query, settings: Settings) -> bytes | str | None:
    """The stylesheet for a query's result where nobody names another: the query's own, else its package's.

    `xslt` of a query names a file of its package, given whole here, or a stylesheet
    that Letopis brings, given by its name; `transform` takes both.
    """
    package = package_named(query.package, settings)
    name = read_query(query).get("xslt")
    if name is None:
        return package.result
    own = package.stylesheet(name)
    if own is None and name not in STYLESHEETS:
        raise UsageError(f"there is no stylesheet '{name}' in package '{package.name}'; name one of its files or "
                         f"{', '.join(STYLESHEETS)}")  # fmt: skip
    return name if own is None else own
