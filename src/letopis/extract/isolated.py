"""Reads one document in a process of its own, bounded in time and memory, killed when it goes over.

The answer comes back as JSON: nothing that a broken library sends is run.
"""

from __future__ import annotations

import json
import subprocess
import sys

from letopis.extract.draft import Draft
from letopis.extract.render import page_from_json
from letopis.extract.source import Source
from letopis.model import Page

SECONDS = 20.0
"""Longest time that one document may take, start of the process included."""
MEMORY = 1536 * 1024 * 1024
"""Most address space of the process."""
_MOST_ANSWER = 64 * 1024 * 1024


def read_apart(source: Source, *, detect_language: bool = True, seconds: float = SECONDS) -> Page:
    """The Page of a document; a crash, a hang or a memory bomb gives a Page with a warning."""
    order = {
        "url": source.url,
        "content_type": source.content_type,
        "headers": source.headers,
        "mode": source.mode,
        "detect_language": detect_language,
        "seconds": seconds,
        "memory": MEMORY,
    }
    given = json.dumps(order).encode() + b"\n" + source.body
    command = [sys.executable, "-m", "letopis.extract.apart"]
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=seconds, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return _failed(source, f"reading it took longer than {seconds:g} s and was stopped")
    if done.returncode != 0 or len(done.stdout) > _MOST_ANSWER:
        return _failed(source, "reading it failed or needed too much memory and was stopped")
    try:
        return page_from_json(done.stdout)
    except (ValueError, TypeError, KeyError):
        return _failed(source, "reading it gave no usable answer")


def _failed(source: Source, reason: str) -> Page:
    draft = Draft(source)
    draft.warn(f"the document was not read: {reason}")
    return draft.page()
