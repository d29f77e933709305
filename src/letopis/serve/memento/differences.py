"""`/web/diff/<ts1>/<ts2>/<url>`: what changed between two captures."""

from __future__ import annotations

from fastapi import Response

from letopis.archive import Archive
from letopis.catalog.moments import Moment
from letopis.errors import UnknownVersion
from letopis.model import Version
from letopis.serve.memento.addresses import Address
from letopis.serve.memento.cage import RAW_POLICY, SAFE
from letopis.serve.memento.replay import not_captured
from letopis.serve.memento.stored import timeline
from letopis.serve.stamps import latest


def difference(archive: Archive, address: Address) -> Response:
    """Both sides in one page, in the same cage as archived pages: it quotes them."""
    line = timeline(archive, address.url)
    sides = [line.closest(latest(digits) - 999) for digits in address.stamps]
    if sides[0] is None or sides[1] is None:
        raise not_captured(address.url)
    old, new = (_version(archive, side) for side in sides if side is not None)
    page = archive.difference(old, new, "html")
    headers = {"content-security-policy": RAW_POLICY, **SAFE}
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


def _version(archive: Archive, moment: Moment) -> Version:
    number = moment.row.number
    if number is None:
        raise UnknownVersion(f"{moment.url} had no version yet at that time")
    return archive.answers.numbered(moment.url, number)
