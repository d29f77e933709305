"""One capture as an archive, a database or a folder of others tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from letopis.model import Headers


@dataclass(frozen=True, slots=True)
class Capture:
    """`date` is ISO 8601; `decoded` bodies stand without the codings that their headers name.

    `facts` are those of a check of ours that has no record of its own, or
    that belong to the capture before.
    """

    url: str
    date: str
    status: int
    headers: Headers
    body: bytes
    is_revisit: bool = False
    facts: dict[str, Any] | None = None
    decoded: bool = False


def failed(url: str, date: str, why: str) -> Capture:
    """A look that got no answer."""
    facts = {"redirects": [], "final_url": url, "error": why, "warnings": [], "outcome": "unavailable", "status": 0}
    return Capture(url, date, 0, (), b"", facts=facts)
