"""A job's result as one XML document, whatever became of the job."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from letopis.catalog.jobs import DONE, JobRow
from letopis.model import from_millis, rfc3339


def result_xml(job: JobRow, steps: bytes) -> bytes:
    """`<result id= package= started= finished= state=>` around one element a step; a failure is told in `<error>`."""
    facts = {
        "id": str(job.id),
        "package": job.package,
        "name": job.name,
        "started": _time(job.started),
        "finished": _time(job.finished),
        "state": job.state,
    }
    given = " ".join(f"{name}={quoteattr(_clean(value))}" for name, value in facts.items() if value)
    error = "" if job.state == DONE or not job.message else f"<error>{escape(_clean(job.message))}</error>\n"
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<result {given}>\n'
    return head.encode() + _lined(steps) + error.encode() + b"</result>\n"


def _time(millis: int | None) -> str:
    return rfc3339(from_millis(millis)) if millis is not None else ""


def _lined(steps: bytes) -> bytes:
    return steps.rstrip(b"\n") + b"\n" if steps else b""


def _clean(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(sign for sign in text if sign >= " " or sign in "\t\n").encode("utf-8", "replace").decode()
