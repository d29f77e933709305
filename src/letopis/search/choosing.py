"""What others know about pages: the links between them, and which answers people chose before.

Links count once `letopis rank` has ranked all pages. Choices are learned only
where the owner switched `search.learn` on; then pages that are chosen move
up, and the crawler comes back to them sooner.
"""

from __future__ import annotations

from collections.abc import Sequence

from letopis.archive import Archive
from letopis.archive.weights import Weights
from letopis.catalog.choices import Choices
from letopis.model import to_millis
from letopis.search.ranking import RankOf

_CAREFUL = 20
"""Times shown before a share of choices counts in full."""
_MOST = 1.0
"""What a page that is always chosen gets on top of its weight."""


def choice_weight(shown: int, chosen: int) -> float:
    """1 for a page that nobody chose, up to 2 for one that everybody does; few showings count little."""
    return 1.0 + _MOST * chosen / (max(shown, chosen) + _CAREFUL)


def learned_rank(archive: Archive) -> RankOf | None:
    """The weights of pages by all that is known; None when nothing is."""
    kept = Weights.load(archive.folder)
    counts = Choices(archive.catalog.database).often() if archive.settings.search.learn else {}
    if not counts:
        return kept.weight if kept is not None else None
    chosen = {page: choice_weight(*count) for page, count in counts.items()}

    def weight(page: int) -> float:
        return (1.0 if kept is None else kept.weight(page)) * chosen.get(page, 1.0)

    return weight


def note_shown(archive: Archive, urls: Sequence[str]) -> None:
    """An answer was shown to somebody."""
    if archive.settings.search.learn and urls:
        rows = [archive.catalog.resources.find(url) for url in urls]
        Choices(archive.catalog.database).shown([row.id for row in rows if row is not None])


def note_chosen(archive: Archive, url: str) -> None:
    """Somebody went to a page of an answer: it counts, and its next visit is not far."""
    row = archive.catalog.resources.find(url) if archive.settings.search.learn else None
    if row is None:
        return
    Choices(archive.catalog.database).chosen(row.id)
    soon = to_millis(archive.clock()) + round(archive.settings.schedule.min * 1000)
    with archive.catalog.transaction() as cursor:
        archive.catalog.queues.hasten(cursor, row.id, soon)
