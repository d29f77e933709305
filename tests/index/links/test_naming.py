"""What links call pages: at every date the texts that an independent reader sees, and their times told apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from chronicle import DATES, Archived, millis
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis import Archive
from letopis.index.anchors import MAX_SPANS, MAX_TEXTS, OPEN_END, TimeSpan, anchor_texts, common_spans, joined_spans
from letopis.index.link_graph import Graph
from letopis.index.link_index import LinkIndex
from letopis.model import Observation, Outcome, Response, to_millis

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOME = "http://x.org/"
spans = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)).map(lambda pair: (pair[0], sum(pair))), max_size=6)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a") as opened:
        yield opened


def page(**texts: str) -> bytes:
    return "".join(f"<a href=/{target}>{text}</a>" for target, text in texts.items()).encode()


def told(graph: Graph, at: datetime) -> dict[str, set[str]]:
    """Texts about each address at a time."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name in anchor_texts(graph):
        if any(since <= to_millis(at) < until for since, until in name.spans):
            found[graph.addresses[name.target]].add(name.text)
    return dict(found)


def seen_by_reader(archived: Archived, at: datetime) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for url, seen in archived.chronicle.at(at).items():
        for target, element, text in seen.links if seen.status == 200 else ():
            if element == "a" and text and target != url:
                found[target].add(text)
    return {target: texts for target, texts in found.items() if len(texts) <= MAX_TEXTS}


@pytest.mark.parametrize("at", DATES)
@pytest.mark.parametrize("at_once", [1 << 20, 500])
def test_texts_about_pages_are_those_that_a_reader_sees(
    archived: Archived, at: datetime, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("letopis.index.anchors._LINKS_AT_ONCE", at_once)
    assert told(archived.graph, at) == seen_by_reader(archived, at)


@pytest.mark.parametrize("at", DATES)
def test_texts_about_pages_are_those_of_their_links(archived: Archived, at: datetime) -> None:
    moment = archived.graph.as_of(millis(at))
    texts = [line.partition("\t")[0] for line in archived.graph.lines(moment.places(np.arange(len(moment.targets))))]
    expected: defaultdict[str, set[str]] = defaultdict(set)
    for source, target, kind, text in zip(moment.sources, moment.targets, moment.types, texts, strict=True):
        if kind in (0, 6) and text and source != target:
            expected[moment.url(target)].add(text)
    assert told(archived.graph, at) == expected


def test_a_text_stands_from_the_first_link_to_the_last(archive: Archive) -> None:
    archive.put(HOME, page(a="one"), at=START)
    archive.put(HOME + "b", page(a="one"), at=START + 2 * DAY)
    archive.put(HOME, page(a="two"), at=START + 3 * DAY)
    archive.put(HOME + "b", page(), at=START + 5 * DAY)
    (one, two) = sorted(anchor_texts(LinkIndex(archive).graph()), key=lambda name: name.text)
    assert (one.text, one.links, one.spans) == ("one", 2, ((to_millis(START), to_millis(START + 5 * DAY)),))
    assert (two.text, two.spans) == ("two", ((to_millis(START + 3 * DAY), OPEN_END),))


def test_a_page_that_answers_with_an_error_says_nothing_meanwhile(archive: Archive) -> None:
    archive.put(HOME, page(a="one"), at=START)
    gone = Response(HOME, HOME, 404, (), b"", START + 2 * DAY)
    back = Response(HOME, HOME, 200, (), page(a="one"), START + 4 * DAY)
    archive.record([Observation(gone, Outcome.UNAVAILABLE)])
    archive.record([Observation(back, Outcome.NEW)])
    graph = LinkIndex(archive).graph()
    stood = [told(graph, START + day * DAY) for day in (1, 3, 5)]
    assert stood == [{HOME + "a": {"one"}}, {}, {HOME + "a": {"one"}}]


def test_a_page_says_nothing_about_itself_and_pictures_say_nothing(archive: Archive) -> None:
    archive.put(
        HOME, b"<a href=/>home</a><img src=/i alt=picture><a href=/b></a><link rel=x href=/c title=t>", at=START
    )
    assert list(anchor_texts(LinkIndex(archive).graph())) == []


def test_texts_and_their_times_are_bounded(archive: Archive) -> None:
    index = LinkIndex(archive)
    for number in range(MAX_TEXTS + 10):
        archive.put(f"{HOME}{number}", page(a=f"text {number}", b="often"), at=START)
    for number in range(2 * MAX_SPANS + 9):
        archive.put(HOME, page(c="now" if number % 2 == 0 else ""), at=START + number * DAY)
    found = {name.text: name for name in anchor_texts(index.graph())}
    assert len([text for text in found if text.startswith("text")]) == MAX_TEXTS
    assert found["often"].links == MAX_TEXTS + 10
    assert len(found["now"].spans) == MAX_SPANS
    assert found["now"].spans[0][0] == to_millis(START)


def test_an_empty_graph_names_nothing(archive: Archive) -> None:
    assert list(anchor_texts(LinkIndex(archive).graph())) == []


@settings(max_examples=200, deadline=None)
@given(spans, spans)
def test_times_are_joined_and_shared_as_sets_of_moments_are(some: list[TimeSpan], others: list[TimeSpan]) -> None:
    def moments(of: list[TimeSpan]) -> set[int]:
        return {moment for since, until in of for moment in range(since, until)}

    apart = joined_spans(some)
    assert moments(apart) == moments(some)
    assert all(before[1] < after[0] for before, after in pairwise(apart))
    assert moments(common_spans(joined_spans(some), joined_spans(others))) == moments(some) & moments(others)
