"""Versions that nobody has handed over are read out of the archive for their links."""

from __future__ import annotations

from letopis import extract
from letopis.archive import Archive
from letopis.archive.leads import Leads, leads_of
from letopis.errors import LetopisError
from letopis.model import Page


def reread(archive: Archive, version: int, final: str) -> Leads | None:
    """Where a version leads; `final` is the address it was found at after redirects, if another than its own."""
    page = page_of(archive, version, final)
    return None if page is None else leads_of(page)


def page_of(archive: Archive, version: int, final: str) -> Page | None:
    """The page of a version as far as the index of links asks for it; None when its bytes are no more."""
    try:
        found = archive.answers.by_id(version)
    except LetopisError:
        # Dropped meanwhile, or its bytes are lost: there is nothing to say about it.
        return None
    return extract.page(found.body, final or found.url, found.headers, detect_language=False, mode="basic")
