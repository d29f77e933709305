"""The same document under other addresses, as the archive holds them now: equal bytes first, then nearly equal text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from letopis import extract
from letopis.archive import Archive
from letopis.archive.spreading import Here, Spread, pieces_of
from letopis.catalog import ResourceRow
from letopis.catalog.likeness import Likeness
from letopis.change.duplicates import (
    Signature,
    band_keys,
    estimated_likeness,
    exact_likeness,
    groups,
    shingles,
    signature,
)
from letopis.errors import NotFound, UnknownUrl
from letopis.model import Page, Version
from letopis.urls import parse_user
from letopis.urls import site as site_of

LIKE = 0.8
"""Likeness from which two pages count as near duplicates."""
_DOUBT = 0.15
"""Estimates may be that far off before the exact likeness is asked for."""
_SURE = 0.7
"""Likeness from which on pages share a hash, with 999 of 1,000."""
_AHEAD = 40
"""Pieces whose hashes are added to the table at once."""
_PIECE = 100
"""Addresses that are read together, here or on a worker of a cluster."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two addresses with one document; `likeness` 1 and `exact` for equal bytes."""

    url: str
    other: str
    likeness: float
    exact: bool


class _Print(NamedTuple):
    url: str
    digest: str
    sign: Signature
    empty: bool


def duplicates_of(
    archive: Archive,
    url: str,
    least: float = LIKE,
    progress: Callable[[int], None] = lambda done: None,
    spread: Spread | None = None,
) -> list[Duplicate]:
    """Other addresses in the archive whose newest version is (nearly) that of `url`; the likest first."""
    address = parse_user(url)
    own = _print_of(archive.get(address))
    spread = spread or Here(archive)
    rows = archive.catalog.resources.all()
    if archive.settings.database.url and least >= _SURE:
        rows = _sharing(archive, own, spread, progress)
    pieces = ((own, least, piece) for piece in _pieces(rows, progress))
    found = [pair for pairs in spread.each(_like_one, pieces) for pair in pairs]
    return sorted(found, key=lambda pair: (not pair.exact, -pair.likeness, pair.other))


def duplicates_in(
    archive: Archive,
    site: str,
    least: float = LIKE,
    progress: Callable[[int], None] = lambda done: None,
    spread: Spread | None = None,
) -> list[Duplicate]:
    """Pairs of addresses of a site with (nearly) the same newest version; each is named with the first of its kind."""
    host = site_of(site)
    spread = spread or Here(archive)
    pieces = _pieces(archive.catalog.resources.of_host(host), progress)
    prints = [made for part in spread.each(_prints, pieces) for made in part]
    if not prints:
        raise NotFound(f"there are no pages of {host} in this archive; crawl it first")
    by_url = {made.url: made for made in prints}
    likely = groups((made.url, _keys(made)) for made in prints)
    families = (tuple(by_url[name] for name in names) for names in likely)
    some = ((least, part) for part in pieces_of(families, _PIECE))
    found = [pair for pairs in spread.each(_like_each_other, some) for pair in pairs]
    return sorted(found, key=lambda pair: (pair.url, not pair.exact, -pair.likeness, pair.other))


def _sharing(archive: Archive, own: _Print, spread: Spread, progress: Callable[[int], None]) -> Iterator[ResourceRow]:
    """The pages that share a hash with one page, by the table that all machines keep, brought up to date first."""
    likeness = Likeness(archive.catalog.database)
    done = 0
    while rows := archive.catalog.versions.since(likeness.last(), _AHEAD * _PIECE):
        newest = {row.resource: row.id for row in rows}
        known = spread.each(_hashes, pieces_of(newest, _PIECE))
        likeness.learn((pair for pairs in known for pair in pairs), rows[-1].id)
        done += len(rows)
        progress(done)
    found = (archive.catalog.resources.by_id(number) for number in likeness.sharing(_keys(own)))
    return (row for row in found if row is not None)


def _hashes(archive: Archive, resources: tuple[int, ...]) -> list[tuple[int, int]]:
    """The hashes of the newest versions of some pages, each with its page."""
    found = ((number, archive.catalog.resources.by_id(number)) for number in resources)
    urls = {row.url: number for number, row in found if row is not None and row.versions}
    return [(key, urls[made.url]) for made in _prints(archive, tuple(urls)) for key in _keys(made)]


def _pieces(rows: Iterable[ResourceRow], progress: Callable[[int], None]) -> Iterator[tuple[str, ...]]:
    """The addresses that have a version, some at a time."""
    done = 0
    for piece in pieces_of(rows, _PIECE):
        yield tuple(row.url for row in piece if row.versions)
        done += len(piece)
        progress(done)


def _like_one(archive: Archive, piece: tuple[_Print, float, tuple[str, ...]]) -> list[Duplicate]:
    """Those of some addresses that are like one page."""
    own, least, urls = piece
    others = (made for made in _prints(archive, urls) if made.url != own.url)
    return [pair for other in others if (pair := _compared(archive, own, other, least))]


def _keys(made: _Print) -> list[int]:
    """What likely duplicates share; pages without text are compared by their bytes alone."""
    exact = int(made.digest.encode().hex()[:15], 16)
    return [exact] if made.empty else [exact, *band_keys(made.sign)]


def _like_each_other(archive: Archive, piece: tuple[float, tuple[tuple[_Print, ...], ...]]) -> list[Duplicate]:
    """The pairs of some groups."""
    least, families = piece
    return [pair for members in families for pair in _pairs(archive, members, least)]


def _pairs(archive: Archive, members: Sequence[_Print], least: float) -> Iterator[Duplicate]:
    """Members of a group against the first of each kind, so that a hundred copies make 99 pairs."""
    firsts: list[_Print] = []
    for member in members:
        matches = (pair for first in firsts if (pair := _compared(archive, first, member, least)))
        best = max(matches, key=lambda pair: (pair.exact, pair.likeness), default=None)
        if best is None:
            firsts.append(member)
        else:
            yield best


def _compared(archive: Archive, own: _Print, other: _Print, least: float) -> Duplicate | None:
    if own.digest == other.digest:
        return Duplicate(own.url, other.url, 1.0, exact=True)
    if own.empty or other.empty or estimated_likeness(own.sign, other.sign) < least - _DOUBT:
        return None
    pages = [_page(archive.get(made.url)) for made in (own, other)]
    likeness = exact_likeness(shingles(pages[0]), shingles(pages[1]))
    return Duplicate(own.url, other.url, round(likeness, 4), exact=False) if likeness >= least else None


def _prints(archive: Archive, urls: Sequence[str]) -> list[_Print]:
    """Of the newest version of each address."""
    found: list[_Print] = []
    for url in urls:
        with suppress(UnknownUrl):
            found.append(_print_of(archive.get(url)))
    return found


def _print_of(version: Version) -> _Print:
    items = shingles(_page(version))
    return _Print(version.url, version.digest, signature(items), not len(items))


def _page(version: Version) -> Page:
    return extract.page(version.body, version.url, version.headers, detect_language=False)
