"""The same document under other addresses, as the archive holds them now: equal bytes first, then nearly equal text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from letopis import extract
from letopis.archive import Archive
from letopis.catalog import ResourceRow
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
    archive: Archive, url: str, least: float = LIKE, progress: Callable[[int], None] = lambda done: None
) -> list[Duplicate]:
    """Other addresses in the archive whose newest version is (nearly) that of `url`; the likest first."""
    address = parse_user(url)
    version = archive.get(address)
    own = _print_of(version)
    others = (p for p in _prints(archive, archive.catalog.resources.all(), progress) if p.url != address)
    found = [pair for other in others if (pair := _compared(archive, own, other, least))]
    return sorted(found, key=lambda pair: (not pair.exact, -pair.likeness, pair.other))


def duplicates_in(
    archive: Archive, site: str, least: float = LIKE, progress: Callable[[int], None] = lambda done: None
) -> list[Duplicate]:
    """Pairs of addresses of a site with (nearly) the same newest version; each is named with the first of its kind."""
    host = site_of(site)
    prints = list(_prints(archive, archive.catalog.resources.of_host(host), progress))
    if not prints:
        raise NotFound(f"there are no pages of {host} in this archive; crawl it first")
    by_url = {made.url: made for made in prints}
    found: list[Duplicate] = []
    for names in groups((made.url, _keys(made)) for made in prints):
        found += _pairs(archive, [by_url[name] for name in names], least)
    return sorted(found, key=lambda pair: (pair.url, not pair.exact, -pair.likeness, pair.other))


def _keys(made: _Print) -> list[int]:
    """What likely duplicates share; pages without text are compared by their bytes alone."""
    exact = int(made.digest.encode().hex()[:15], 16)
    return [exact] if made.empty else [exact, *band_keys(made.sign)]


def _pairs(archive: Archive, members: list[_Print], least: float) -> Iterator[Duplicate]:
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


def _prints(archive: Archive, rows: Iterable[ResourceRow], progress: Callable[[int], None]) -> Iterator[_Print]:
    for done, row in enumerate(rows, 1):
        progress(done)
        if row.versions:
            try:
                yield _print_of(archive.get(row.url))
            except UnknownUrl:
                continue


def _print_of(version: Version) -> _Print:
    items = shingles(_page(version))
    return _Print(version.url, version.digest, signature(items), not len(items))


def _page(version: Version) -> Page:
    return extract.page(version.body, version.url, version.headers, detect_language=False)
