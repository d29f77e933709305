"""What the daemon says of a web is what the log of that web says; and who compares them finds every contradiction."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from bench.hour import measure
from bench.witness.comparison import AlertClaim, Claim, compare, hurried, neglected
from bench.witness.web import Silence, WebLine

URL = "http://127.0.3.2:80/a"
FIRST = WebLine(10.0, 10.1, "GET", URL, 200, "AAAA", True)
SECOND = WebLine(50.0, 50.1, "GET", URL, 200, "BBBB", True)
CUT = WebLine(90.0, 90.1, "GET", URL, 200, "", False)
NEW = Claim(URL, 10.1, 200, True, "new", "", 0, "AAAA")
CHANGED = Claim(URL, 50.1, 200, True, "changed", "", 1, "BBBB")
FAILED = Claim(URL, 90.1, 200, False, "unavailable", "protocol", 1, "BBBB")


def test_looks_that_say_what_was_sent_contradict_nothing() -> None:
    alert = AlertClaim(URL, 51.0, "changed", 1)
    found = compare([FIRST, SECOND, CUT], [], [NEW, CHANGED, FAILED], [alert])
    assert (found.claims, found.lines, found.alerts, found.contradictions) == (3, 3, 1, ())


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ([NEW], "it answered 200"),
        ([NEW, CHANGED._replace(digest="CCCC")], "the body that was sent is BBBB"),
        ([NEW, CHANGED._replace(time=30.0)], "no such answer was sent then"),
        ([NEW, CHANGED._replace(status=404, available=False)], "no such answer was sent then"),
        ([NEW, CHANGED._replace(outcome="unchanged")], "the version before was AAAA"),
        ([NEW, CHANGED._replace(failure="connect")], "a failed look was told as available"),
        ([NEW, CHANGED, CHANGED._replace(time=51.0, outcome="unchanged")], "no such answer was sent then"),
    ],
)
def test_a_look_that_says_something_else_is_found(claims: list[Claim], said: str) -> None:
    assert said in {each.but for each in compare([FIRST, SECOND], [], claims).contradictions}


def test_a_look_is_held_against_the_last_answer_before_it() -> None:
    """However long whoever looked was stopped before it wrote down when the answer had come."""
    first, stopped = FIRST._replace(began=45.0, ended=45.1), NEW._replace(time=SECOND.began - 0.3)
    assert compare([first, SECOND], [], [stopped, CHANGED]).contradictions == ()


def test_an_answer_that_ended_early_must_not_be_a_version() -> None:
    told = CHANGED._replace(time=90.1)
    assert {each.but for each in compare([FIRST, CUT], [], [NEW, told]).contradictions} == {"the answer ended early"}


def test_a_failed_look_needs_a_host_that_was_silent() -> None:
    failed = Claim(URL, 70.0, 0, False, "unavailable", "connect", 0, "AAAA")
    assert compare([FIRST], [Silence("127.0.3.2:80", 60.0, 80.0)], [NEW, failed]).contradictions == ()
    assert len(compare([FIRST], [], [NEW, failed]).contradictions) == 1


def test_an_alert_needs_the_look_that_it_speaks_of() -> None:
    alerts = [AlertClaim(URL, 51.0, "changed", 7), AlertClaim(URL, 51.0, "unavailable", None)]
    found = compare([FIRST, SECOND], [], [NEW, CHANGED], alerts)
    assert [each.said for each in found.contradictions] == ["alert: changed", "alert: unavailable"]


def test_an_alert_of_availability_is_held_against_the_look_of_its_very_time() -> None:
    """Looks may follow each other faster than a look is told: those after the alert say nothing about it."""
    again = CHANGED._replace(time=100.1, outcome="unchanged")
    lines, claims = [FIRST, SECOND, CUT, SECOND._replace(began=100.0, ended=100.1)], [NEW, CHANGED, FAILED, again]
    true = [AlertClaim(URL, FAILED.time, "unavailable", 1), AlertClaim(URL, again.time, "recovered", 1)]
    assert compare(lines, [], claims, true).contradictions == ()
    wrong = [AlertClaim(URL, again.time, "unavailable", 1), AlertClaim(URL, FAILED.time, "recovered", 1)]
    assert len(compare(lines, [], claims, wrong).contradictions) == 2


def test_an_alert_of_a_change_does_not_come_before_the_look_that_brought_it() -> None:
    early = AlertClaim(URL, CHANGED.time - 1.0, "changed", 1)
    assert len(compare([FIRST, SECOND], [], [NEW, CHANGED], [early]).contradictions) == 1


def test_a_page_that_appears_has_changed_only_if_it_was_asked_in_vain() -> None:
    gone = Claim(URL, 5.1, 404, False, "unavailable", "http", None, "")
    appeared = AlertClaim(URL, NEW.time, "changed", 0)
    missing = FIRST._replace(began=5.0, ended=5.1, status=404)
    assert compare([missing, FIRST], [], [gone, NEW], [appeared]).contradictions == ()
    assert len(compare([FIRST], [], [NEW], [appeared]).contradictions) == 1


def test_requests_that_follow_too_soon_are_told() -> None:
    soon = SECOND._replace(began=10.4)
    assert [pair.later for pair in hurried([soon, FIRST, CUT], 1.0)] == [soon]


def test_a_watched_page_that_nobody_looks_at_is_told() -> None:
    assert neglected([NEW, CHANGED], [URL], every=5.0, until=100.0) == []
    found = neglected([NEW, CHANGED], [URL], every=5.0, until=200.0)
    assert [(each.said, each.but) for each in found] == [("watched every 5 s", "nobody looked for 150 s")]


@pytest.mark.slow
def test_a_daemon_says_nothing_that_the_web_contradicts(tmp_path: Path) -> None:
    row = measure(tmp_path, seconds=12.0, hosts=4, pages=6, delay=0.2)
    assert row.contradictions == ()
    assert row.hurried == 0
    assert row.looks > 0
    assert row.requests > 0
    assert row.outcomes["new"] > 0
