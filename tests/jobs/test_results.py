"""Result documents: always well-formed, whatever they hold, and readable as JSON."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.archive.jobs import JobRow
from letopis.jobs.documents import result_json, result_xml

JOB = JobRow(7, None, "p", "n", "anna", "cli", 0, 0, 0, 1, "done", 0, 1000, 2500, "", 1.0, "", 0, 7, "")


@given(st.text(), st.text(), st.sampled_from(["failed", "cancelled"]))
@settings(max_examples=150)
def test_names_and_messages_cannot_break_a_result(name: str, message: str, state: str) -> None:
    job = JOB._replace(name=name, message=message, state=state)
    root = ElementTree.fromstring(result_xml(job, b"<step/>"))
    assert [child.tag for child in root] == (["step", "error"] if message else ["step"])
    assert json.loads(result_json(result_xml(job, b"<step/>")))["state"] == state


def test_the_root_tells_what_became_of_the_job() -> None:
    assert result_xml(JOB, b"<a/>\n<b/>") == (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<result id="7" package="p" name="n" started="1970-01-01T00:00:01Z" '
        b'finished="1970-01-01T00:00:02.500Z" state="done">\n<a/>\n<b/>\n</result>\n'
    )
