"""The selected part of an archive, cut into pieces that can be exported apart and put together in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from letopis.archive import Archive
from letopis.exchange.selecting import Selected

_URLS = 200
_VERSIONS = 400
"""Of one piece, about: so much fits in memory twice, on whoever works it out and on whoever writes it."""


class Part(NamedTuple):
    """Some URLs whole, or a stretch of the checks of one URL; `end` None is the last stretch."""

    selected: Selected
    urls: tuple[str, ...]
    start: int = 0
    end: int | None = None


def parts(archive: Archive, selected: Selected) -> Iterator[Part]:
    """The whole selection, in the order of its URLs."""
    urls: list[str] = []
    versions = 0
    for row in selected.resources(archive):
        if row.versions > _VERSIONS:
            yield from _whole(selected, urls)
            urls, versions = [], 0
            yield from _stretches(selected, row.url, row.versions)
            continue
        urls.append(row.url)
        versions += row.versions
        if versions >= _VERSIONS or len(urls) >= _URLS:
            yield Part(selected, tuple(urls))
            urls, versions = [], 0
    yield from _whole(selected, urls)


def _whole(selected: Selected, urls: list[str]) -> Iterator[Part]:
    if urls:
        yield Part(selected, tuple(urls))


def _stretches(selected: Selected, url: str, versions: int) -> Iterator[Part]:
    """A URL has at least as many checks as versions; what comes beyond is part of the last stretch."""
    starts = range(0, versions, _VERSIONS)
    for start in starts:
        yield Part(selected, (url,), start, None if start == starts[-1] else start + _VERSIONS)
