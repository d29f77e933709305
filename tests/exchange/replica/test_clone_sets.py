"""A clone has the capture sets of its origin, and what servers sent for pages that a browser rendered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from replica_world import Replica

from letopis.archive import Archive
from letopis.exchange.replica import CloneSelection, fetch_on_demand
from letopis.model import Observation, Outcome, Response, WholePage

PAGE = "http://whole.example/"
START = datetime(2026, 5, 1, tzinfo=UTC)


def whole_page(day: int, *, changes: bool = True) -> Observation:
    at = START + timedelta(days=day)
    number = day if changes else 0
    sent = Response(PAGE, PAGE, 200, (("X-Sent", str(number)),), b"<div id=app></div>" + b"%d" % number, at)
    style = Response(PAGE + "style.css", PAGE + "style.css", 200, (), b"p { color: %d }" % day, at)
    shown = sent._replace(headers=(("Content-Type", "text/html"),), body=b"<p>shown %d</p>" % number, as_sent=sent)
    whole = WholePage((Observation(style, Outcome.CHANGED),), (), b"picture %d" % day, f"text {day}")
    return Observation(shown, Outcome.CHANGED, whole=whole)


def told(archive: Archive) -> list[object]:
    sets = archive.sets.of(PAGE)
    versions = [archive.get(PAGE, version=one.number) for one in archive.versions(PAGE)]
    return [
        *((one, archive.sets.members(one), archive.sets.text(one), archive.sets.screenshot(one)) for one in sets),
        *((sent.body, sent.headers) for sent in map(archive.as_sent, versions)),
    ]


@pytest.fixture
def captured(replica: Replica) -> Replica:
    replica.archive.record([whole_page(0), whole_page(1)])
    replica.publish()
    return replica


@pytest.mark.parametrize("site", ["", "whole.example"])
def test_a_clone_has_sets_and_answers_of_servers(captured: Replica, site: str) -> None:
    captured.clone(CloneSelection(site=site))
    with Archive(captured.copy) as copy:
        assert told(copy) == told(captured.archive)
        assert len(copy.sets.of(PAGE)) == 2
        assert list(copy.verify()) == []


def test_a_pull_brings_later_sets_also_of_pages_that_stayed_the_same(captured: Replica) -> None:
    captured.clone()
    captured.archive.record([whole_page(4), whole_page(5, changes=False), whole_page(6, changes=False)])
    captured.publish()
    captured.pull()
    with Archive(captured.copy) as copy:
        assert told(copy) == told(captured.archive)
        assert len(copy.sets.of(PAGE)) == 5


def test_a_clone_of_a_compacted_origin_has_them(captured: Replica) -> None:
    captured.clone()
    captured.archive.compact()
    captured.publish()
    captured.pull()
    with Archive(captured.copy) as copy:
        assert told(copy) == told(captured.archive)


def test_a_lazy_clone_fetches_them_when_they_are_asked_for(captured: Replica) -> None:
    captured.clone(CloneSelection(lazy=True))
    with Archive(captured.copy) as copy:
        assert told(fetch_on_demand(copy)) == told(captured.archive)


def test_a_clone_can_be_published_with_its_sets(captured: Replica) -> None:
    captured.clone()
    with Archive(captured.copy) as copy:
        captured.archive = copy
        captured.publish()
    captured.clone(path=captured.folder / "second")
    with Archive(captured.folder / "second") as second, Archive(captured.copy) as copy:
        assert told(second) == told(copy)
