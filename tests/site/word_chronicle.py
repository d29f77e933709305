"""A small web with a known history, archived at several dates, and a slow reader that knows no index."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from letopis import Archive, Put
from letopis.index.word_index import WordIndex
from letopis_demo import World

WORLD = World(seed=3, hosts=5, pages_per_host=24, noisy=0.0)
DATES = [WORLD.start + timedelta(days=days, hours=1) for days in (0, 6, 13, 25)]


class SlowReader:
    """The texts of all answers, without markup, by address and time: found by reading, never by an index."""

    def __init__(self) -> None:
        self.seen: dict[str, list[tuple[datetime, str]]] = {}

    def take(self, url: str, at: datetime, body: bytes, charset: str) -> None:
        text = body.decode(charset)
        metas = " ".join(re.findall(r'(?:content|alt)="([^"]*)"', re.sub(r"<meta name=.viewport[^>]*>", "", text)))
        bare = re.sub(r"<[^>]*>", " ", re.sub(r"<(style|script).*?</\1>", "", text, flags=re.DOTALL))
        self.seen.setdefault(url, []).append((at, html.unescape(bare + " " + metas)))

    def at(self, moment: datetime) -> dict[str, str]:
        standing = {url: [text for at, text in texts if at <= moment] for url, texts in self.seen.items()}
        return {url: texts[-1] for url, texts in standing.items() if texts}

    def with_any(self, words: set[str], moment: datetime) -> set[str]:
        return {
            url for url, text in self.at(moment).items() if words & set(re.findall(r"\w+", html.unescape(text).lower()))
        }


def fill(archive: Archive, reader: SlowReader, dates: list[datetime]) -> None:
    puts = []
    for at in dates:
        for host in WORLD.hosts:
            for url in WORLD.urls(host):
                answer = WORLD.answer(host, url.removeprefix(f"http://{host}"), (), at)
                if answer.status == 200:
                    kind = dict(answer.headers)["Content-Type"]
                    reader.take(url, at, answer.body, kind.rpartition("=")[2])
                    puts.append(Put(url, answer.body, at, kind))
    list(archive.put_many(puts))


@pytest.fixture(scope="session")
def chronicle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WordIndex, SlowReader]]:
    """Taken in date by date, so that most versions were once the newest."""
    reader = SlowReader()
    with Archive(tmp_path_factory.mktemp("words"), clock=lambda: DATES[-1]) as archive:
        index = WordIndex(archive)
        for date in DATES:
            fill(archive, reader, [date])
            index.catch_up()
        yield index, reader


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a", clock=lambda: DATES[0]) as archive:
        yield archive
