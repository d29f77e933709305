"""Long lists, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One page of a list. `earlier` and `later` are numbers of the neighbouring pages, None at the ends."""

    rows: Sequence[T]
    number: int
    pages: int
    total: int
    first: int

    @property
    def earlier(self) -> int | None:
        """The page before."""
        return self.number - 1 if self.number > 1 else None

    @property
    def later(self) -> int | None:
        """The page behind."""
        return self.number + 1 if self.number < self.pages else None


def part(rows: Sequence[T], wanted: str, size: int = 50) -> Part[T]:
    """The page of a whole list that is asked for; nonsense is the first page, too far the last."""
    number, pages = place(len(rows), wanted, size)
    start = (number - 1) * size
    return Part(rows[start : start + size], number, pages, len(rows), start)


def place(total: int, wanted: str, size: int) -> tuple[int, int]:
    """The number of the page asked for, within bounds, and how many there are."""
    pages = max(1, -(-total // size))
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else 1
    return min(max(number, 1), pages), pages
