"""Answers are read by the portion, in their order, and mean for the next visit what they did one by one."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from politeness_books import free_book
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.archive.queues import FrontierState, HostUpdate
from letopis.config import CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl
from letopis.crawl.commits import READ_BATCH, READ_BATCH_BYTES, PendingLook, PendingLooks, PlannedLook, RevisitPlanner
from letopis.crawl.selection import CrawlDecisions
from letopis.frontier.queue import Ticket
from letopis.look.politeness import FetchResult
from letopis.look.visitor import LookOptions, Visitor
from letopis.model import Failure, FailureKind, Outcome, Request, Response, from_millis
from letopis.model import Limits as Bounds
from letopis.schedule.policies import make_policy

NOW = 1_700_000_000_000


class Nobody:
    async def fetch(self, request: Request, between: object = None) -> Response:
        raise AssertionError("answers are here already")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a") as made:
        yield made


def answer(number: int, body: bytes = b"<p>page</p>", status: int = 200, failure: Failure | None = None) -> PendingLook:
    url = f"http://site.example/{number}"
    response = Response(url, url, status, (("Content-Type", "text/html"),), body, from_millis(NOW), failure=failure)
    ticket = Ticket(1, "site.example", number, url, 0, True, 0, b"", 0, NOW, known=False)
    return PendingLook(ticket, response, None, FetchResult(NOW), HostUpdate(1, "", NOW, NOW, 0.0, 1, 0))


def judging(archive: Archive, settings: Settings | None = None) -> PendingLooks:
    decisions = CrawlDecisions((settings or archive.settings).crawl)
    return PendingLooks(Visitor(archive, Nobody(), free_book()), decisions, LookOptions(Bounds(), skim=True))


def test_answers_come_out_read_and_in_their_order(archive: Archive) -> None:
    answers = judging(archive)
    for number in range(5):
        answers.add(answer(number, b"<p>number %d</p>" % number))
    answers.work()
    answers.add(answer(5))
    assert len(answers) == 6
    taken = answers.take()
    assert [done.ticket.id for done in taken] == list(range(6))
    assert {done.look.outcome for done in taken} == {Outcome.NEW}
    assert all(done.look.page is not None for done in taken)
    assert not answers
    assert answers.take() == []


def test_a_portion_is_due_by_number_and_by_bytes(archive: Archive) -> None:
    answers = judging(archive)
    for number in range(READ_BATCH):
        assert not answers.is_due
        answers.add(answer(number))
    assert answers.is_due
    answers.work()
    assert (answers.is_due, len(answers)) == (False, READ_BATCH)
    large = b"x" * (READ_BATCH_BYTES // 2)
    due = []
    for number in (1, 2):
        answers.add(answer(number, large))
        due.append(answers.is_due)
    assert due == [False, True]


def test_what_is_not_to_be_stored_is_read_all_the_same(archive: Archive) -> None:
    settings = replace(archive.settings, crawl=replace(archive.settings.crawl, store_if='path ~ "^/1"'))
    answers = judging(archive, settings)
    for number in (1, 2):
        answers.add(answer(number))
    kept, left = answers.take()
    assert kept.look.keep_body
    assert not left.look.keep_body
    assert left.look.page is not None


def planned(archive: Archive, given: PendingLook, revisit: str = "") -> PlannedLook:
    settings = replace(archive.settings, crawl=replace(archive.settings.crawl, revisit_if=revisit))
    answers = judging(archive)
    answers.add(given)
    planner = RevisitPlanner(make_policy(archive.settings.schedule), CrawlDecisions(settings.crawl), "meaning")
    return planner.planned(answers.take()[0])


def test_a_page_that_is_there_is_planned_again_and_one_that_never_was_is_not(archive: Archive) -> None:
    state, due, record, number = planned(archive, answer(7)).plan
    assert (state, number) == (FrontierState.AGAIN, 7)
    assert due is not None
    assert due > NOW
    assert record
    assert planned(archive, answer(8, b"", 404)).plan[:2] == (FrontierState.GONE, None)


def test_what_could_not_be_had_is_tried_again(archive: Archive) -> None:
    silent = answer(1, b"", 0, Failure(FailureKind.TIMEOUT, "no answer came"))
    assert planned(archive, silent).plan[0] == FrontierState.AGAIN
    refused = answer(2, b"", 0, Failure(FailureKind.ROBOTS, "robots.txt does not allow it"))
    assert planned(archive, refused).done.look.outcome is Outcome.REFUSED
    assert planned(archive, refused).plan[0] == FrontierState.AGAIN


def test_the_owner_may_not_want_to_see_a_page_again(archive: Archive) -> None:
    assert planned(archive, answer(1), 'path ~ "^/2"').plan[:2] == (FrontierState.GONE, None)


def test_large_pages_are_recorded_before_the_memory_is_full(
    tmp_path: Path, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a commit could wait by the clock: see `HEAVY`."""
    monkeypatch.setattr(sys.modules["letopis.crawl.agent"], "HEAVY", 300_000)
    monkeypatch.setattr("letopis.crawl.commits.READ_BATCH_BYTES", 100_000)
    links = "".join(f"<a href='/{number}'>page</a>" for number in range(12))
    seed = scripted_site.set("/", links.encode())
    for number in range(12):
        scripted_site.set(f"/{number}", b"<p>%d</p>" % number + b"words " * 25_000)
    settings = Settings(crawl=CrawlSettings(delay=0.0, commit_every=3600.0, sitemaps=False))
    steps: list[int] = []
    options = CrawlOptions((seed,), limits=CrawlLimits(once=True), private_ok=True)
    with Archive(tmp_path / "large", settings=settings) as archive:
        asyncio.run(crawl(archive, options, lambda figures: steps.append(figures.fetched)))
    assert steps[-1] == 13
    # Four times as much may wait, and the page that was under way.
    assert max(after - before for before, after in itertools.pairwise([0, *steps])) <= 9
