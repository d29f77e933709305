"""Floors of compression on generated pages, so that no method grows worse unnoticed."""

from __future__ import annotations

import hashlib

from letopis import codec
from letopis.demo import World

DIGEST = "PAGES"


def _pages() -> list[bytes]:
    """Pages of three sites in three languages."""
    world = World(seed=42, hosts=4, pages_per_host=24, noisy=0.0)
    urls = [url for host in (world.hosts[0], world.hosts[2], world.hosts[3]) for url in world.urls(host)]
    return [world.body(url, world.start) for url in urls]


PAGES = _pages()


def _total(name: str) -> int:
    return sum(len(codec.get(name).encode(page)) for page in PAGES)


def test_the_pages_are_those_the_floors_were_set_on() -> None:
    assert hashlib.sha256(b"".join(PAGES)).hexdigest() == DIGEST


def test_preprocessing_1_is_exact_and_smaller_than_gzip_alone() -> None:
    method = codec.get("mgz1")
    assert all(method.decode(method.encode(page)) == page for page in PAGES)
    assert _total("mgz1") < _total("gzip")


def test_contest_with_the_generic_dictionary_stays_below_its_floor() -> None:
    thesis = sum(len(codec.contest(page, codec.THESIS, lossy=True).encoded) for page in PAGES)
    ours = sum(len(codec.contest(page, ("zstd", "brotli", "zstd-html", "brotli-html")).encoded) for page in PAGES)
    assert ours <= FLOOR * thesis


def test_contest_with_a_site_dictionary_stays_below_its_floor() -> None:
    site, tried = PAGES[0:24:2], PAGES[1:24:2]
    methods = codec.with_dictionary(codec.Dictionary.train(site, 16 << 10))
    thesis = sum(len(codec.contest(page, codec.THESIS, lossy=True).encoded) for page in tried)
    assert sum(len(codec.contest(page, methods).encoded) for page in tried) <= SITE_FLOOR * thesis
