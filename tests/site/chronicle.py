"""A small web with a known history, archived at five dates, and what an independent reader saw of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import pytest
from lxml import html

from letopis import Archive
from letopis.index.link_graph import Graph
from letopis.index.link_index import LinkIndex
from letopis.model import Observation, Outcome, Response, to_millis
from letopis_demo import World

WORLD = World(seed=11, hosts=3, pages_per_host=130, noisy=0.0, pace=0.2, article_every=timedelta(hours=9))
# An odd minute: the busy page of every host is not busy then.
DATES = [WORLD.start + timedelta(days=days, minutes=1) for days in (0, 4, 9, 17, 29)]


class Seen(NamedTuple):
    """One answer as the independent reader understands it: links as (target, element, text)."""

    at: datetime
    status: int
    location: str
    title: str
    links: tuple[tuple[str, str, str], ...]
    is_html: bool


@dataclass
class Chronicle:
    """All answers, by address, oldest first; `at` gives the web of a date."""

    seen: dict[str, list[Seen]] = field(default_factory=dict)

    def at(self, moment: datetime) -> dict[str, Seen]:
        known = {url: [one for one in all_of if one.at <= moment] for url, all_of in self.seen.items()}
        return {url: all_of[-1] for url, all_of in known.items() if all_of}


def read(url: str, at: datetime, status: int, headers: dict[str, str], body: bytes) -> Seen:
    location = urljoin(url, headers["Location"]) if "Location" in headers else ""
    is_html = headers.get("Content-Type", "").startswith("text/html")
    if status != 200 or not is_html:
        return Seen(at, status, location, "", (), is_html)
    charset = headers["Content-Type"].rpartition("=")[2]
    tree = html.document_fromstring(body.decode(charset))
    links = []
    found: Any = tree.xpath("//a[@href]|//img[@src]|//link[@href]")
    for element in found:
        target = urljoin(url, element.get("href") or element.get("src"))
        feed = element.tag == "link" and element.get("rel") == "alternate"
        text = element.get("alt") if element.tag == "img" else " ".join((element.text_content() or "").split())
        links.append((target, "feed" if feed else element.tag, text or ""))
    return Seen(at, status, "", tree.findtext(".//title") or "", tuple(links), True)


def crawl_once(archive: Archive, chronicle: Chronicle, at: datetime) -> None:
    """Looks at everything known and everything found on the way, at one moment."""
    queue = list(dict.fromkeys([*WORLD.seeds(), *chronicle.seen]))
    met, looks = set(queue), []
    for url in queue:
        split = urlsplit(url)
        path = split.path + (f"?{split.query}" if split.query else "")
        answer = WORLD.answer(split.netloc, path, (), at)
        headers = dict(answer.headers)
        seen = read(url, at, answer.status, headers, answer.body)
        chronicle.seen.setdefault(url, []).append(seen)
        good = answer.status == 200
        outcome = Outcome.NEW if good else Outcome.UNCHANGED if seen.location else Outcome.UNAVAILABLE
        looks.append(Observation(Response(url, url, answer.status, answer.headers, answer.body, at), outcome))
        found = [seen.location] if seen.location else [target for target, kind, _ in seen.links if kind == "a"]
        for target in found:
            if target not in met and urlsplit(target).netloc in WORLD.hosts:
                met.add(target)
                queue.append(target)
    archive.record(looks)


@dataclass(frozen=True)
class Archived:
    archive: Archive
    chronicle: Chronicle
    index: LinkIndex
    graph: Graph


@pytest.fixture(scope="session")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archived]:
    """The web archived at all dates; the index has followed in between."""
    chronicle = Chronicle()
    with Archive(tmp_path_factory.mktemp("graph") / "a") as archive:
        index = LinkIndex(archive)
        for at in DATES:
            crawl_once(archive, chronicle, at)
            index.catch_up()
        yield Archived(archive, chronicle, index, index.graph())


def millis(at: datetime) -> int:
    return to_millis(at)
