"""CDXJ out: the list of captures, sorted as indexes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from letopis.archive import Archive, identify
from letopis.archive.spreading import Here, Spread
from letopis.exchange.cdx_lines import EMPTY_DIGEST, capture_line, is_revisit
from letopis.exchange.parts import Part, parts
from letopis.exchange.selecting import Selected
from letopis.exchange.sorted_lines import SortedLines
from letopis.model import Check, Outcome

_NEWS = (Outcome.NEW, Outcome.CHANGED)


def export_cdxj(
    archive: Archive,
    out: BinaryIO,
    selected: Selected,
    progress: Callable[[int], None] = lambda done: None,
    spread: Spread | None = None,
) -> int:
    """Writes a line for each selected check that got an answer; answers how many. `spread` may work them out."""
    lines = SortedLines()
    count = 0
    try:
        for found in (spread or Here(archive)).each(_part_lines, parts(archive, selected)):
            for line in found:
                lines.add(line)
            count += len(found)
            progress(count)
        out.writelines(lines)
    finally:
        lines.close()
    return count


def _part_lines(archive: Archive, part: Part) -> list[str]:
    checks = (check for url in part.urls for check in part.selected.checks(archive, url)[part.start : part.end])
    return [capture_line(check, *_content(archive, check)) for check in checks if check.status]


def _content(archive: Archive, check: Check) -> tuple[str, int]:
    """Digest and size of what a check carried."""
    if check.outcome in _NEWS or is_revisit(check):
        return check.digest, check.length
    body = archive.answers.error_body(check.url, check.checked_at)
    if body:
        return identify(body).text, len(body)
    return ("-" if check.outcome is Outcome.TOO_LARGE else EMPTY_DIGEST), 0
