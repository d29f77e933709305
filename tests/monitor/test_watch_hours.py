"""When a watch looks and when it keeps quiet: hours of the week, time zones, snoozes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from letopis.change.values import first_number
from letopis.config import MonitorSettings
from letopis.errors import UsageError
from letopis.model import to_millis
from letopis.monitor.watch import AlertCondition, AlertConditionKind, WatchedUrl, WatchSpec, settle_watch
from letopis.monitor.watch_times import Cron, WeeklyHours, parse_zone

PRAGUE = ZoneInfo("Europe/Prague")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "moment", "then"),
    [
        ("08:00-18:00", "2026-03-02 12:00", "2026-03-02 12:00"),
        ("08:00-18:00", "2026-03-02 18:00", "2026-03-03 08:00"),
        ("mon-fri 08:00-18:00", "2026-03-06 19:30", "2026-03-09 08:00"),
        ("mon-fri 08:00-18:00; sat 9:00-12:00", "2026-03-06 19:30", "2026-03-07 09:00"),
        ("22:00-06:00", "2026-03-02 03:00", "2026-03-02 03:00"),
        ("sat-sun 00:00-24:00", "2026-03-02 03:00", "2026-03-07 00:00"),
    ],
)
def test_a_check_waits_for_the_hours_of_its_watch(hours: str, moment: str, then: str) -> None:
    assert WeeklyHours.parse(hours).next_within(utc(moment)) == utc(then)


@pytest.mark.parametrize(
    ("hours", "moment", "then"),
    [
        ("22:00-07:00", "2026-03-02 23:30", "2026-03-03 07:00"),
        ("22:00-07:00", "2026-03-02 12:00", "2026-03-02 12:00"),
        ("sat-sun 00:00-24:00", "2026-03-07 10:00", "2026-03-09 00:00"),
        ("00:00-24:00", "2026-03-07 10:00", "2026-03-07 10:00"),
    ],
)
def test_quiet_hours_end_when_the_last_of_them_does(hours: str, moment: str, then: str) -> None:
    assert WeeklyHours.parse(hours).ends(utc(moment)) == utc(then)


@pytest.mark.parametrize(
    ("moment", "then"), [("2026-03-27 18:30", "2026-03-30 06:00"), ("2026-10-23 18:30", "2026-10-26 07:00")]
)
def test_hours_begin_by_the_clock_on_the_wall_after_it_is_set_forward_or_back(moment: str, then: str) -> None:
    assert WeeklyHours.parse("mon-fri 08:00-18:00").next_within(utc(moment), PRAGUE) == utc(then)


@pytest.mark.parametrize(
    ("moment", "then"),
    [("2026-03-28 22:30", "2026-03-29 05:00"), ("2026-10-24 21:30", "2026-10-25 06:00"),
     ("2026-10-25 01:30", "2026-10-25 06:00")],
)  # fmt: skip
def test_quiet_hours_end_by_the_clock_on_the_wall_after_it_is_set_forward_or_back(moment: str, then: str) -> None:
    assert WeeklyHours.parse("22:00-07:00").ends(utc(moment), PRAGUE) == utc(then)


@pytest.mark.parametrize("text", ["", "08:00", "moo 08:00-18:00", "25:00-26:00", "08:00-18:75", "mon 8-18"])
def test_hours_that_cannot_be_read_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="08:00-18:00"):
        WeeklyHours.parse(text)


def test_cron_times_are_those_of_the_zone_in_summer_and_in_winter() -> None:
    seven = Cron.parse("0 7 * * *")
    assert seven.after(utc("2026-01-10 00:00"), PRAGUE) == utc("2026-01-10 06:00")
    assert seven.after(utc("2026-07-10 00:00"), PRAGUE) == utc("2026-07-10 05:00")


def test_a_time_that_the_clocks_leave_out_or_show_twice_comes_once() -> None:
    half_past_two = Cron.parse("30 2 * * *")
    left_out = half_past_two.after(utc("2026-03-29 00:00"), PRAGUE)
    assert half_past_two.after(left_out, PRAGUE) == utc("2026-03-30 00:30")
    twice = half_past_two.after(utc("2026-10-25 00:00"), PRAGUE)
    assert half_past_two.after(twice, PRAGUE) > twice + timedelta(hours=20)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="Europe/Prague"):
        parse_zone("../etc/passwd")
    with pytest.raises(UsageError, match="not a time zone"):
        WatchSpec(zone="Mars/Olympus")


def test_notifications_wait_for_the_end_of_the_snooze_and_then_of_quiet_hours() -> None:
    spec = WatchSpec(quiet="22:00-07:00", zone="Europe/Prague", snooze=to_millis(utc("2026-01-10 22:00")))
    watch = settle_watch(WatchedUrl("http://example.org/"), spec, None, MonitorSettings())
    assert watch.notifies_at(utc("2026-01-10 12:00")) == utc("2026-01-11 06:00")
    assert watch.notifies_at(utc("2026-01-11 12:00")) == utc("2026-01-11 12:00")


def test_a_specification_keeps_its_hours_headers_and_owner_on_disk_and_lends_none_but_the_former_to_others() -> None:
    spec = WatchSpec(zone="UTC", hours="08:00-18:00", quiet="22:00-07:00", headers=(("A", "b"),), snooze=5, owner="eva")
    assert WatchSpec.from_json(spec.to_json()) == spec
    heir = WatchSpec().over(spec)
    assert (heir.hours, heir.quiet, heir.headers, heir.owner, heir.snooze) == (
        spec.hours,
        spec.quiet,
        spec.headers,
        "",
        None,
    )
    assert WatchSpec(browser=True).over(spec).headers == ()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1 299,90 Kč", 1299.9), ("$1,299.90", 1299.9), ("1.299,90 €", 1299.9), ("12", 12.0), ("price: 0,5", 0.5),
        ("1,299", 1299.0), ("1,299,000", 1299000.0), ("19.90 EUR", 19.9), ("none", None),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(text: str, number: float | None) -> None:
    assert first_number(text) == number


def test_a_bound_looks_at_the_number_that_came() -> None:
    below = AlertCondition(AlertConditionKind.BELOW, "20")
    assert below.holds(["19.90 EUR"], ["25 EUR"], 1.0)
    assert not below.holds(["21 EUR"], ["19 EUR"], 1.0)
    assert not below.holds([], ["19 EUR"], 1.0)
    assert AlertCondition(AlertConditionKind.ABOVE, "20").holds(["21 EUR"], [], 1.0)
    with pytest.raises(UsageError, match="takes a number"):
        AlertCondition(AlertConditionKind.ABOVE, "much")
