"""Statistics of use: counts by day that say nothing about anybody, and that an owner can turn off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
from served_archive import PAGE, at, fill, running
from signed_in import Person, add_people

from letopis.archive import OWN, Archive
from letopis.archive.audit import DAYS_KEPT, UseCounter, use_by_day
from letopis.archive.jobs import JobQuery, JobQueue, Requester
from letopis.operations import Context
from letopis.operations.totals import UsageQuery, usage

MakeArchive = Callable[..., Archive]


def submit(archive: Archive) -> None:
    JobQueue(archive).submit(JobQuery("search", "one", 0, "", 0, b"<query/>"), Requester("uwe", OWN, "cli"))


def counted(archive: Archive) -> dict[str, int]:
    (row,) = usage(Context(archive, rights=OWN), UsageQuery())
    return {name: count for name, count in row._asdict().items() if name != "day" and count}


def test_what_people_and_programs_do_is_counted(make_archive: MakeArchive) -> None:
    archive = make_archive()
    fill(archive)
    with running(archive) as web:
        for word in ("version", "nowhere"):
            web.get(f"/search?q={word}", **{"Sec-Fetch-Dest": "document"})
        web.get(f"/url/{PAGE}", Referer=f"{web.address}/search?q=version")
        web.get(f"/url/{PAGE}", Referer=f"{web.address}/sites")
        web.get(f"/web/20240101120000/{PAGE}")
        web.get("/api/v1/stats")
        web.get("/api/v1/complete?q=ver", Referer=f"{web.address}/")
        web.get("/static/letopis.css")
        web.get("/nowhere")
    assert counted(archive) == {"searches": 2, "unanswered": 1, "clicks": 1, "pages": 4, "replays": 1, "requests": 1}


def test_jobs_are_counted_wherever_they_come_from(make_archive: MakeArchive) -> None:
    archive = make_archive()
    submit(archive)
    assert counted(archive) == {"jobs": 1}


def test_nothing_is_counted_where_that_is_off(make_archive: MakeArchive) -> None:
    archive = make_archive(statistics=False)
    with running(archive) as web:
        web.get("/")
    submit(archive)
    answer = usage(Context(archive, rights=OWN), UsageQuery())
    assert (list(answer), answer.about["counted"]) == ([], False)


def test_counts_are_written_when_the_archive_is_closed_and_kept_for_some_days(make_archive: MakeArchive) -> None:
    archive, moment = make_archive(), at(0)
    for days in (0, 1, DAYS_KEPT):
        later = moment + timedelta(days=days)
        with Archive(archive.folder, clock=partial(datetime.replace, later)) as again:
            again.attached(UseCounter).add("pages")
    with Archive(archive.folder, clock=lambda: moment + timedelta(days=DAYS_KEPT)) as last:
        assert [day.date() for day in use_by_day(last, DAYS_KEPT)] == [
            (moment + timedelta(days=days)).date() for days in (DAYS_KEPT, 1)
        ]


@pytest.mark.parametrize(("who", "status"), [("olga", 200), ("uwe", 403)])
def test_the_page_is_for_owners(make_archive: MakeArchive, who: str, status: int) -> None:
    archive = make_archive()
    add_people(archive)
    with running(archive) as web:
        answer = Person(web, who).get("/statistics")
    assert answer.status == status
    assert ("no names, addresses or words are kept" in answer.text) is (status == 200)
