"""One page of an answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from letopis.search.ranking import Explanation
from letopis.search.snippets import Snippet


class Hit(NamedTuple):
    """One page of an answer; `until` is None while the version is the newest. A tuple, since making them is hot."""

    url: str
    title: str
    snippet: Snippet
    time: datetime
    until: datetime | None
    version: int
    language: str
    why: Explanation

    @property
    def score(self) -> float:
        """What hits are ordered by."""
        return self.why.score


def hit_row(hit: Hit) -> dict[str, Any]:
    """A hit with the names that people's scripts rely on."""
    return {
        "url": hit.url,
        "title": hit.title,
        "snippet": hit.snippet.html,
        "score": round(hit.score, 4),
        "time": hit.time,
        "version": hit.version,
        "until": hit.until,
        "language": hit.language,
    }
