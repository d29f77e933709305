"""Every byte and every reference: does the archive still hold what it says it holds?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from letopis.archive.identity import digest_text
from letopis.catalog import ABSENT, Catalog, ContentRow
from letopis.errors import Damaged
from letopis.store import Place, Store, sha1_digest


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it was written. `content` is the catalogue's id where one is known."""

    where: str
    what: str
    content: int | None = None

    def __str__(self) -> str:
        """One line that names the spot."""
        return f"{self.where}: {self.what}"


def problems(catalog: Catalog, store: Store) -> Iterator[Problem]:
    """All problems, as they are found; nothing is changed."""
    yield from _of_catalogue(catalog)
    for finding in store.verify(catalog.contents.packs()):
        yield Problem("packs", str(finding))
    yield from unreadable(catalog, store)


def _of_catalogue(catalog: Catalog) -> Iterator[Problem]:
    for sentence in catalog.integrity():
        yield Problem("catalogue", sentence)


def unreadable(catalog: Catalog, store: Store) -> Iterator[Problem]:
    """Contents whose bytes are gone or are no longer the same."""
    for row in catalog.contents.all():
        if row.method == ABSENT:
            continue
        fault = _fault(store, row)
        if fault:
            yield Problem(f"content {digest_text(row.sha1)}", fault, row.id)


def _fault(store: Store, row: ContentRow) -> str:
    try:
        decoded = store.read(Place(row.pack, row.place, row.slot), row.stored_bytes)
    except Damaged as error:
        return str(error)
    return "" if sha1_digest(decoded.body) == row.sha1 else "the bytes are those of another content"
