"""The queue of questions for requests: who asks, and what strangers may not ask for."""

from __future__ import annotations

from fastapi import Request

from letopis.catalog.accounts import OWN, READ
from letopis.fetch import private_ok
from letopis.jobs import Asker, Query, Questions
from letopis.jobs.guarding import addresses_of, refuse_private, refuse_upkeep
from letopis.jobs.language import parse
from letopis.serve.access import principal_of
from letopis.serve.shared import archive_of


def asker_of(request: Request) -> Asker:
    """Whoever sent a request, with what everybody may do here."""
    principal = principal_of(request)
    public = READ if archive_of(request).settings.serve.public else 0
    system = principal.session is not None and bool(principal.session.user.system)
    return Asker(principal.name, principal.mask | public, "http", system)


def questions_of(request: Request) -> Questions:
    """The queue; what strangers may not ask for is refused before it gets in."""
    archive, owner = archive_of(request), principal_of(request).may(OWN)

    def read(data: bytes) -> Query:
        query = parse(data, archive.settings)
        if not private_ok(archive.settings.fetch.private, "http"):
            refuse_private(addresses_of(query))
        if not owner:
            refuse_upkeep(query)
        return query

    return Questions(archive, read)
