"""Floors of the index of links, on generated data with its digest pinned."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from letopis import Archive, Put
from letopis.index.link_index import LinkIndex
from letopis.model import to_millis

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGES, LINKS = 300, 40
DISK_FLOOR = 8.0
"""Bytes of both files a link, texts and titles included; about 3 measured."""
MEMORY_FLOOR = 40.0
"""Bytes of memory a link, graph and snapshot."""


def site() -> list[Put]:
    """Pages that share a menu of twenty links and have twenty of their own."""
    menu = "".join(f'<a href="/menu-{number}">Menu entry {number}</a>' for number in range(LINKS // 2))
    return [
        Put(
            f"http://x.org/{page}",
            (menu + "".join(f'<a href="/{page * 7 + step}">to {page * 7 + step}</a>' for step in range(20))).encode(),
            START,
        )
        for page in range(PAGES)
    ]


def test_links_take_few_bytes(tmp_path: Path) -> None:
    puts = site()
    digest = hashlib.sha256(b"".join(put.body for put in puts)).hexdigest()
    assert digest == "89953872932e21a5cdd79d739e9ae93cc48d0ad6978457a51b6f2dd5467a5f2d"
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(puts))
        graph = LinkIndex(archive).graph()
        moment = graph.as_of(to_millis(START))
        disk = sum(file.stat().st_size for file in (archive.folder / "index" / "links").iterdir())
    assert len(moment.targets) == PAGES * LINKS
    assert disk / len(moment.targets) <= DISK_FLOOR
    held = graph.nbytes + moment.targets.nbytes + moment.types.nbytes + moment.sources.nbytes
    assert held / len(moment.targets) <= MEMORY_FLOOR
