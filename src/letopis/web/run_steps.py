"""The step that a run is at, in words: what it does, how far it is, and what it waits for."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from letopis.model import as_moment
from letopis.operations.job_rows import Job
from letopis.schedule.policies import format_span
from letopis.web.languages import translatable, translate

_CRAWL_FIGURES = translatable("{fetched} fetched, {waiting} waiting")
_ALL_FETCHED = translatable("{fetched} fetched")
_HOST_RESTS = translatable("the next request to {host} is in {span}")
_HOST_BUSY = translatable("{host} answered with {status} and is asked again in {span}")
_CRAWLED = re.compile(r"(\d+) fetched(?:, (\d+) waiting(?:, (\S+) again at (\S+) \((\d+|pause)\))?)?")
_STEP_NAMES = {
    "download": translatable("download"),
    "crawler": translatable("indexing"),
    "export": translatable("making the file"),
    "import": translatable("taking the file in"),
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
    called = f"{number} {step}" if number not in ("", "1/1") else step
    said = _figures(figures, job)
    return f"{called}: {said}" if said else called


def _figures(figures: str, job: Job) -> str:
    known = _CRAWLED.fullmatch(figures)
    if known is None:
        return figures
    fetched, waiting, host, until, status = known.groups()
    if job.ended or waiting is None:
        return translate(_ALL_FETCHED, fetched=fetched)
    said = translate(_CRAWL_FIGURES, fetched=fetched, waiting=waiting)
    now = datetime.now(UTC)
    left = (as_moment(until, now) - now).total_seconds() if until else 0.0
    if left <= 0:
        return said
    words = {"host": host, "span": format_span(round(left + 0.5)), "status": status}
    return f"{said}; {translate(_HOST_RESTS if status == 'pause' else _HOST_BUSY, **words)}"
