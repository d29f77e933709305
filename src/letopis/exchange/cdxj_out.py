"""CDXJ out: the list of captures, sorted as indexes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from letopis.archive import Archive, identify
from letopis.exchange.cdx_lines import EMPTY_DIGEST, capture_line, is_revisit
from letopis.exchange.selecting import Selected
from letopis.exchange.sorted_lines import SortedLines
from letopis.model import Check, Outcome

_NEWS = (Outcome.NEW, Outcome.CHANGED)


def export_cdxj(
    archive: Archive, out: BinaryIO, selected: Selected, progress: Callable[[int], None] = lambda done: None
) -> int:
    """Writes a line for each selected check that got an answer; answers how many."""
    lines = SortedLines()
    count = 0
    try:
        for row in selected.resources(archive):
            for check in selected.checks(archive, row.url):
                if check.status:
                    lines.add(capture_line(check, *_content(archive, check)))
                    count += 1
            progress(count)
        out.writelines(lines)
    finally:
        lines.close()
    return count


def _content(archive: Archive, check: Check) -> tuple[str, int]:
    """Digest and size of what a check carried."""
    if check.outcome in _NEWS or is_revisit(check):
        return check.digest, check.length
    body = archive.answers.error_body(check.url, check.checked_at)
    if body:
        return identify(body).text, len(body)
    return ("-" if check.outcome is Outcome.TOO_LARGE else EMPTY_DIGEST), 0
