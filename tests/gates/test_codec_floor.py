"""Floors of compression on generated pages, so that no method grows worse unnoticed."""

from __future__ import annotations

import hashlib
from random import Random

from letopis import codec
from letopis_demo import World

OLD_METHODS = ("stored", "gzip", "bzip2", "mgz1", "mbz1", "mgz1i", "mbz1i", "mgz2", "mbz2", "mgz2i", "mbz2i")
DIGEST = "f57daf9a7b5af4146988be3a8727c50389e697f4d41f856e0959c86c10d7e00e"


def _pages() -> list[bytes]:
    """Pages of three sites in three languages."""
    world = World(seed=42, hosts=4, pages_per_host=24, noisy=0.0)
    urls = [url for host in (world.hosts[0], world.hosts[2], world.hosts[3]) for url in world.urls(host)]
    return [world.body(url, world.start) for url in urls]


PAGES = _pages()


def test_the_pages_are_those_the_floors_were_set_on() -> None:
    assert hashlib.sha256(b"".join(PAGES)).hexdigest() == DIGEST


def _table(number: int) -> bytes:
    """A page that is mostly markup, as pages of 2004 were."""
    chance = Random(number)
    rows = "".join(
        f'<tr><td align="left" width="{chance.randrange(400)}"><font color="#{chance.randrange(1 << 24):06x}">'
        f'<a href="/item-{chance.randrange(9999)}.html" class="c{chance.randrange(30)}">'
        f'<img src="/i/{chance.randrange(9999)}.gif" border="0"></a><br><b>{chance.random()}</b></font></td></tr>\n'
        for _ in range(60)
    )
    return f"<html><head><title>{number}</title></head><body><table>{rows}</table></body></html>".encode()


def test_preprocessing_1_is_exact_and_smaller_than_gzip_alone() -> None:
    method, gzip, tables = codec.get("mgz1"), codec.get("gzip"), [_table(number) for number in range(20)]
    assert all(method.decode(method.encode(page)) == page for page in (*tables, *PAGES))
    assert sum(len(method.encode(page)) for page in tables) < sum(len(gzip.encode(page)) for page in tables)


def test_contest_with_the_generic_dictionary_stays_below_its_floor() -> None:
    tried = PAGES[::4]
    before = sum(len(codec.contest(page, OLD_METHODS, lossy=True).encoded) for page in tried)
    ours = sum(len(codec.contest(page, ("zstd", "brotli", "zstd-html", "brotli-html")).encoded) for page in tried)
    assert ours <= 0.83 * before


def test_contest_with_a_site_dictionary_stays_below_its_floor() -> None:
    site, tried = PAGES[0:24:2], PAGES[1:24:2]
    methods = codec.with_dictionary(codec.Dictionary.train(site, 16 << 10))
    before = sum(len(codec.contest(page, OLD_METHODS, lossy=True).encoded) for page in tried)
    assert sum(len(codec.contest(page, methods).encoded) for page in tried) <= 0.46 * before
