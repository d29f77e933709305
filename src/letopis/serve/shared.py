"""What requests need of the application, by dependency."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from letopis.archive import Archive


def archive_of(request: Request) -> Archive:
    """The archive that is served."""
    archive: Archive = request.app.state.archive
    return archive


def reads_locally(archive: Archive) -> bool:
    """Whether a point read is a matter of microseconds, so that short answers need no thread of their own."""
    return archive.catalog.database.dialect.name == "sqlite"


TheArchive = Annotated[Archive, Depends(archive_of)]
