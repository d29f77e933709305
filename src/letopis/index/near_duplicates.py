"""The same document under other URLs, as the archive holds them now: equal bytes first, then nearly equal text.

A signature is a short row of numbers; the share of equal numbers estimates the likeness (Jaccard) of two pages'
shingles. Bands of a signature are kept as integers, so that one indexed look-up finds the candidates. Whether two
documents are duplicates never says whether either changed: that is asked of a page's own history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TypeAlias

from xxhash import xxh3_64_intdigest

from letopis import extract
from letopis.archive import Archive
from letopis.archive.cluster import LocalRunner, PieceRunner, pieces_of
from letopis.archive.index_facts import VersionLog, captured_urls, count_captured, duplicate_hashes, urls_of_pages
from letopis.change.fingerprints import Fingerprint, fingerprint, normalized_words
from letopis.change.profiles import HostProfile
from letopis.errors import NotFound, UnknownUrl
from letopis.lazy import np, npt
from letopis.model import Page, Version
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url
from letopis.urls import site as site_of

MIN_LIKENESS = 0.8
"""Likeness from which two pages count as near duplicates."""
_ESTIMATE_ERROR = 0.15
"""How far estimates may be off: within this margin the exact likeness is computed."""
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


Signature: TypeAlias = "npt.NDArray[np.uint32]"

SIGNATURE_SIZE = 128
BANDS, ROWS = 32, 4  # finds pairs of likeness 0.7 with 99.9 %, of 0.3 with 23 %
_SHINGLE_WORDS = 4  # words in a shingle
_MOST_WORDS = 200_000  # shingles of one page


@cache
def _hashing() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Factors and offsets of the hash functions, the same in every process."""
    chance = np.random.default_rng(0x1E70_0915)
    factors = chance.integers(1, 1 << 62, SIGNATURE_SIZE, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return factors, chance.integers(0, 1 << 62, SIGNATURE_SIZE, dtype=np.uint64)


def shingles(page: Page, host: HostProfile | None = None) -> npt.NDArray[np.uint64]:
    """Hashes of all runs of four words, without the blocks that are the host's frame."""
    words = _words(page, fingerprint(page), host)
    hashes = np.array(
        [xxh3_64_intdigest(w.encode("utf-8", "surrogatepass")) for w in words[:_MOST_WORDS]], dtype=np.uint64
    )
    if len(hashes) < _SHINGLE_WORDS:
        return np.unique(hashes)
    mixed = np.zeros(len(hashes) - _SHINGLE_WORDS + 1, dtype=np.uint64)
    for k in range(_SHINGLE_WORDS):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashes[k : len(hashes) - _SHINGLE_WORDS + 1 + k]
    return np.unique(mixed)


def _words(page: Page, prints: Fingerprint, host: HostProfile | None) -> list[str]:
    frame = host.boilerplate() if host else frozenset()
    texts = [
        block.text
        for i, (block, number) in enumerate(zip(prints.blocks, prints.hashes, strict=True))
        if number not in frame and i not in prints.frame
    ]
    return normalized_words(" ".join(texts or [block.text for block in page.blocks])).split()


def signature(items: npt.NDArray[np.uint64]) -> Signature:
    """The MinHash signature of a set of shingles; of an empty set all ones."""
    factors, offsets = _hashing()
    best = np.full(SIGNATURE_SIZE, np.iinfo(np.uint64).max, dtype=np.uint64)
    for start in range(0, len(items), 2048):
        part = items[start : start + 2048, None]
        best = np.minimum(best, (part * factors + offsets).min(axis=0))
    return (best >> np.uint64(32)).astype(np.uint32)


def band_keys(sign: Signature) -> list[int]:
    """One signed 64-bit integer a band, fit for an SQL column; a common one marks a candidate."""
    rows = sign.reshape(BANDS, ROWS)
    return [_signed(xxh3_64_intdigest(row.tobytes(), seed=band)) for band, row in enumerate(rows)]


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def estimated_similarity(first: Signature, second: Signature) -> float:
    """Share of equal numbers: within about 0.09 of the truth in 19 of 20 cases."""
    return float(np.mean(first == second))


def exact_similarity(first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]) -> float:
    """Shared shingles by all shingles; two empty pages are alike."""
    if not len(first) and not len(second):
        return 1.0
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both / (len(first) + len(second) - both)


def candidate_groups(bands: Iterable[tuple[str, Sequence[int]]]) -> list[list[str]]:
    """Names joined through common band keys: candidates to be checked by likeness, in order of arrival."""
    owner: dict[int, str] = {}
    parent: dict[str, str] = {}
    for name, keys in bands:
        parent.setdefault(name, name)
        for key in keys:
            _join(parent, name, owner.setdefault(key, name))
    found: dict[str, list[str]] = {}
    for name in parent:
        found.setdefault(_root(parent, name), []).append(name)
    return [names for names in found.values() if len(names) > 1]


def _root(parent: dict[str, str], name: str) -> str:
    path = [name]
    while parent[path[-1]] != path[-1]:
        path.append(parent[path[-1]])
    for step, _ in pairwise(path):
        parent[step] = path[-1]
    return path[-1]


def _join(parent: dict[str, str], first: str, second: str) -> None:
    one, two = _root(parent, first), _root(parent, second)
    parent[one] = two
