"""One capture as it was: status, headers and bytes."""

from __future__ import annotations

from dataclasses import dataclass

from letopis.archive import Archive, Details
from letopis.catalog import CaptureRow
from letopis.catalog.moments import Moment, Timeline
from letopis.errors import UnknownVersion
from letopis.model import Headers, Hop, header
from letopis.serve.cdx.rows import has_hops
from letopis.urls import join, surt

_REPEATS = (304,)


@dataclass(frozen=True, slots=True)
class Stored:
    """What the server once answered. `location` is the absolute target of a redirect."""

    status: int
    headers: Headers
    body: bytes
    location: str = ""

    @property
    def content_type(self) -> str:
        """As it was told."""
        return header(self.headers, "content-type")


def timeline(archive: Archive, url: str) -> Timeline:
    """The captures of a URL."""
    return Timeline(archive.catalog.database, surt(url))


def load(archive: Archive, moment: Moment) -> Stored:
    """Reads a capture. A redirected one is a redirect where we know its target, else what it led to."""
    row = moment.row
    if has_hops(row.extra):
        redirect = _redirect(archive, Details.unpack(row.extra).hops)
        if redirect is not None:
            return redirect
    if not isinstance(row, CaptureRow):
        version = archive.answers.by_id(row.id)
        return Stored(row.status, version.headers, version.body)
    if row.status < 300 or row.status in _REPEATS:
        return _repeat(archive, moment.url, row)
    headers = archive.catalog.heads.get(row.head) if row.head is not None else ()
    body = archive.answers.content(row.content) if row.content is not None else b""
    location = join(moment.url, header(headers, "location")) if 300 <= row.status < 400 else None
    return Stored(row.status, headers, body, location or "")


def _repeat(archive: Archive, url: str, row: CaptureRow) -> Stored:
    if row.number is None:
        raise UnknownVersion(f"the version of {url} that this check saw is no longer kept")
    version = archive.answers.numbered(url, row.number)
    return Stored(200, version.headers, version.body)


def _redirect(archive: Archive, hops: tuple[Hop, ...]) -> Stored | None:
    """The first hop, to the first of the following addresses that we have captures of."""
    targets = [join(hop.url, hop.location) for hop in hops]
    known = next((target for target in targets if target and timeline(archive, target).first()), None)
    return Stored(hops[0].status, hops[0].headers, b"", known) if known else None
