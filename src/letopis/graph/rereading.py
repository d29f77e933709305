"""Versions that nobody has handed over are read out of the archive for their links."""

from __future__ import annotations

from letopis import extract
from letopis.archive import Archive
from letopis.archive.leads import Leads, leads_of
from letopis.errors import LetopisError


def reread(archive: Archive, version: int, final: str) -> Leads | None:
    """Where a version leads; `final` is the address it was found at after redirects, if another than its own."""
    try:
        found = archive.answers.by_id(version)
    except LetopisError:
        # Dropped meanwhile, or its bytes are lost: there is nothing to say about it.
        return None
    return leads_of(extract.page(found.body, final or found.url, found.headers, detect_language=False, mode="basic"))
