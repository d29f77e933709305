"""Times as cron writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import UsageError
from letopis.monitor.watch_times import Cron

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)  # a Wednesday
moments = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "following"),
    [
        ("* * * * *", "2026-03-04T12:01"),
        ("*/15 * * * *", "2026-03-04T12:15"),
        ("30 6 * * *", "2026-03-05T06:30"),
        ("0 7 * * mon-fri", "2026-03-05T07:00"),
        ("0 7 * * sat,sun", "2026-03-07T07:00"),
        ("0 7 * * 7", "2026-03-08T07:00"),
        ("0 0 1 jan *", "2027-01-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("5-10/5 12 * * *", "2026-03-04T12:05"),
        ("50/5 * * * *", "2026-03-04T12:50"),
        ("0 0 13 * fri", "2026-03-06T00:00"),
        ("0 0 */13 * fri", "2026-03-27T00:00"),
        ("@hourly", "2026-03-04T13:00"),
        ("@weekly", "2026-03-08T00:00"),
        ("@yearly", "2027-01-01T00:00"),
    ],
)
def test_next_time(text: str, following: str) -> None:
    assert Cron.parse(text).after(NOON) == datetime.fromisoformat(following).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *",
        "5-1 * * * *", "a * * * *", "1,,2 * * * *", "-1 * * * *", "1- * * * *", "0 0 31 2 *", "@reboot", "٣ * * * *",
    ],
)  # fmt: skip
def test_refuses(text: str) -> None:
    with pytest.raises(UsageError):
        Cron.parse(text)


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.tuples(st.just("*") | span, st.integers(1, 40)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    return st.just("*") | st.lists(number.map(str) | span | step, min_size=1, max_size=3).map(",".join)


crons = st.tuples(fields(0, 59), fields(0, 23), fields(1, 28), fields(1, 12), fields(0, 7)).map(" ".join)


@given(crons, moments)
@settings(max_examples=150, deadline=None)
def test_the_next_time_fits_is_later_and_nothing_between_fits(text: str, moment: datetime) -> None:
    cron = Cron.parse(text)
    following = cron.after(moment)
    assert following > moment
    assert cron.fits(following)
    step = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    for _ in range(2000):
        if step >= following:
            break
        assert not cron.fits(step)
        step += timedelta(minutes=1)


@given(st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_cron_time_or_a_usage_error(text: str) -> None:
    try:
        cron = Cron.parse(text)
    except UsageError:
        return
    assert cron.after(NOON) > NOON


def test_days_that_come_once_in_many_years_are_found() -> None:
    assert Cron.parse("0 0 1 1 */7").after(datetime(2024, 1, 1, tzinfo=UTC)) == datetime(2034, 1, 1, tzinfo=UTC)
