"""The versions that the store is measured on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from letopis.model import Put

_START = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Document:
    """One document and its versions, oldest first."""

    name: str
    bodies: tuple[bytes, ...]

    @property
    def url(self) -> str:
        """The address it is stored under; the folder is the host."""
        site, _, rest = self.name.partition("/")
        return f"https://{site}.example/{rest}"


def load(folder: Path) -> list[Document]:
    """Documents of `<site>/<document>/<NNNN>.html`, oldest version first."""
    found = sorted(path for path in folder.glob("*/*") if path.is_dir())
    bodies = {path: tuple(file.read_bytes() for file in sorted(path.glob("*.html"))) for path in found}
    return [Document(str(path.relative_to(folder)), pages) for path, pages in bodies.items() if pages]


def arrivals(documents: Sequence[Document]) -> Iterator[Put]:
    """Every version in the order of time, a day apart; the documents of a day follow each other by minutes."""
    for number in range(max(len(document.bodies) for document in documents)):
        for minute, document in enumerate(documents):
            if number < len(document.bodies):
                at = _START + timedelta(days=number, minutes=minute)
                yield Put(document.url, document.bodies[number], at)
