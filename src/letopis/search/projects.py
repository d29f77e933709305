"""Searches inside a project: its addresses as the resources they name."""

from __future__ import annotations

from letopis.archive import Archive
from letopis.catalog.projects import Projects


def project_resources(archive: Archive, name: str) -> frozenset[int]:
    """Ids of the pages of a project that the archive knows; NotFound when there is no such project."""
    project = Projects(archive.catalog.database).show(name)
    rows = (archive.catalog.resources.find(url) for url in project.urls)
    return frozenset(row.id for row in rows if row is not None)
