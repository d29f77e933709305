"""What the campaign against faults has tried and found so far: one JSON file to which every run adds.

The file is `docs/reliability.json`; `tools/campaign.py page` makes `docs/reliability.md` of it.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = Path(os.environ.get("CAMPAIGN_RESULTS", Path(__file__).parents[1] / "docs" / "reliability.json"))


@dataclass
class Tried:
    """All runs of one row together: tries, faults found, those of them mended (said by whoever mends), and figures."""

    count: int = 0
    found: int = 0
    mended: int = 0
    last: str = ""
    figures: dict[str, float] = field(default_factory=dict)


def read_results() -> dict[str, Tried]:
    """All rows; none where nothing was tried."""
    if not RESULTS.exists():
        return {}
    return {row: Tried(**fields) for row, fields in json.loads(RESULTS.read_text()).items()}


def add_result(row: str, count: int, found: int = 0, **figures: float) -> Tried:
    """Adds tries to a row; figures are those of the newest run. Several processes may add at once."""
    file = RESULTS
    with _held(file):
        rows = read_results()
        tried = rows.setdefault(row, Tried())
        tried.count += count
        tried.found += found
        tried.last = datetime.now(UTC).date().isoformat()
        tried.figures |= figures
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps({name: asdict(rows[name]) for name in sorted(rows)}, indent=1) + "\n")
        draft.replace(file)
    return tried


@contextmanager
def _held(file: Path) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
