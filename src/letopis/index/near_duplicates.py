"""The same document under other URLs, as the archive holds them now: equal bytes first, then nearly equal text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from letopis import extract
from letopis.archive import Archive
from letopis.archive.cluster import LocalRunner, PieceRunner, pieces_of
from letopis.archive.index_facts import VersionLog, captured_urls, count_captured, duplicate_hashes, urls_of_pages
from letopis.change.duplicates import (
    Signature,
    band_keys,
    candidate_groups,
    estimated_similarity,
    exact_similarity,
    shingles,
    signature,
)
from letopis.errors import NotFound, UnknownUrl
from letopis.model import Page, Version
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url
from letopis.urls import site as site_of

MIN_LIKENESS = 0.8
"""Likeness from which two pages count as near duplicates."""
_ESTIMATE_ERROR = 0.15
"""Estimates may be that far off before the exact likeness is asked for."""
_SURE_LIKENESS = 0.7
"""Likeness from which on pages share a hash, with 999 of 1,000."""
_PIECES_AHEAD = 40
"""Pieces whose hashes are added to the table at once."""
_PIECE = 100
"""Addresses that are read together, here or on a worker of a cluster."""
Progress = Callable[[int, int], None]
"""Hears how many pages are done, and of how many."""


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two addresses with one document; `likeness` 1 and `exact` for equal bytes."""

    url: str
    other: str
    likeness: float
    exact: bool


class _PageSignature(NamedTuple):
    url: str
    digest: str
    sign: Signature
    empty: bool


def duplicates_of_page(
    archive: Archive,
    url: str,
    least: float = MIN_LIKENESS,
    progress: Progress = lambda done, of: None,
    spread: PieceRunner | None = None,
) -> list[DuplicatePair]:
    """Other addresses in the archive whose newest version is (nearly) that of `url`; the likest first."""
    address = parse_user_url(url)
    own = _signature_of(archive.get(address))
    spread = spread or LocalRunner(archive)
    if archive.settings.database.url and least >= _SURE_LIKENESS:
        some = _pages_sharing_hash(archive, own, spread, progress)
        urls = _pieces(some, len(some), progress)
    else:
        urls = _pieces(captured_urls(archive), count_captured(archive), progress)
    pieces = ((own, least, piece) for piece in urls)
    found = [pair for pairs in spread.each(_pairs_with, pieces) for pair in pairs]
    return sorted(found, key=lambda pair: (not pair.exact, -pair.likeness, pair.other))


def duplicates_in_site(
    archive: Archive,
    site: str,
    least: float = MIN_LIKENESS,
    progress: Progress = lambda done, of: None,
    spread: PieceRunner | None = None,
) -> list[DuplicatePair]:
    """Pairs of addresses of a site with (nearly) the same newest version; each is named with the first of its kind."""
    host = site_of(site)
    spread = spread or LocalRunner(archive)
    pieces = _pieces(captured_urls(archive, host), count_captured(archive, host), progress)
    prints = [made for part in spread.each(_signatures, pieces) for made in part]
    if not prints:
        raise NotFound(f"no page of {host} has a version here; crawl it first")
    by_url = {made.url: made for made in prints}
    likely = candidate_groups((made.url, _keys(made)) for made in prints)
    families = (tuple(by_url[name] for name in names) for names in likely)
    some = ((least, part) for part in pieces_of(families, _PIECE))
    found = [pair for pairs in spread.each(_pairs_in_groups, some) for pair in pairs]
    return sorted(found, key=lambda pair: (pair.url, not pair.exact, -pair.likeness, pair.other))


def _pages_sharing_hash(archive: Archive, own: _PageSignature, spread: PieceRunner, progress: Progress) -> list[str]:
    """The pages that share a hash with one page, by the table that all machines keep, brought up to date first."""
    hashes, log = duplicate_hashes(archive), VersionLog(archive)
    done, of = 0, log.count_since(hashes.last())
    while new := log.pages_since(hashes.last(), _PIECES_AHEAD * _PIECE):
        pages = dict.fromkeys(page for _, page in new)
        known = spread.each(_hashes, pieces_of(pages, _PIECE))
        hashes.learn((pair for pairs in known for pair in pairs), new[-1][0])
        done += len(new)
        progress(done, of)
    return list(urls_of_pages(archive, hashes.sharing(_keys(own))).values())


def _hashes(archive: Archive, resources: tuple[int, ...]) -> list[tuple[int, int]]:
    """The hashes of the newest versions of some pages, each with its page."""
    pages = {url: page for page, url in urls_of_pages(archive, resources).items()}
    return [(key, pages[made.url]) for made in _signatures(archive, tuple(pages)) for key in _keys(made)]


def _pieces(urls: Iterable[str], of: int, progress: Progress) -> Iterator[tuple[str, ...]]:
    """Addresses, some at a time."""
    done = 0
    for piece in pieces_of(urls, _PIECE):
        yield piece
        done += len(piece)
        progress(done, of)


def _pairs_with(archive: Archive, piece: tuple[_PageSignature, float, tuple[str, ...]]) -> list[DuplicatePair]:
    """Those of some addresses that are like one page."""
    own, least, urls = piece
    others = (made for made in _signatures(archive, urls) if made.url != own.url)
    return [pair for other in others if (pair := _compared_pair(archive, own, other, least))]


def _keys(made: _PageSignature) -> list[int]:
    """What likely duplicates share; pages without text are compared by their bytes alone."""
    exact = int(made.digest.encode().hex()[:15], 16)
    return [exact] if made.empty else [exact, *band_keys(made.sign)]


def _pairs_in_groups(
    archive: Archive, piece: tuple[float, tuple[tuple[_PageSignature, ...], ...]]
) -> list[DuplicatePair]:
    """The pairs of some groups."""
    least, families = piece
    return [pair for members in families for pair in _pairs(archive, members, least)]


def _pairs(archive: Archive, members: Sequence[_PageSignature], least: float) -> Iterator[DuplicatePair]:
    """Members of a group against the first of each kind, so that a hundred copies make 99 pairs."""
    firsts: list[_PageSignature] = []
    for member in members:
        matches = (pair for first in firsts if (pair := _compared_pair(archive, first, member, least)))
        best = max(matches, key=lambda pair: (pair.exact, pair.likeness), default=None)
        if best is None:
            firsts.append(member)
        else:
            yield best


def _compared_pair(archive: Archive, own: _PageSignature, other: _PageSignature, least: float) -> DuplicatePair | None:
    if own.digest == other.digest:
        return DuplicatePair(own.url, other.url, 1.0, exact=True)
    if own.empty or other.empty or estimated_similarity(own.sign, other.sign) < least - _ESTIMATE_ERROR:
        return None
    pages = [_page(archive.get(made.url)) for made in (own, other)]
    likeness = exact_similarity(shingles(pages[0]), shingles(pages[1]))
    return DuplicatePair(own.url, other.url, round(likeness, 4), exact=False) if likeness >= least else None


def _signatures(archive: Archive, urls: Sequence[str]) -> list[_PageSignature]:
    """Of the newest version of each address."""
    found: list[_PageSignature] = []
    for url in urls:
        with suppress(UnknownUrl):
            found.append(_signature_of(archive.get(url)))
    return found


def _signature_of(version: Version) -> _PageSignature:
    items = shingles(_page(version))
    return _PageSignature(version.url, version.digest, signature(items), not len(items))


def _page(version: Version) -> Page:
    return extract.read_page(version.body, version.url, version.headers, detect_language=False)
