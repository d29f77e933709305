"""`docs/reliability.md` of what the campaign has counted."""

from __future__ import annotations

from campaign_results import Tried

GOALS = {"histories": 10_000, "kills": 1000, "damages": 1000}


def write_page(rows: dict[str, Tried]) -> None:
    """Filled in below."""
