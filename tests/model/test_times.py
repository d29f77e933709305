from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import UsageError
from letopis.model import (
    from_millis,
    http_date,
    last_moment,
    parse_duration,
    parse_time,
    rfc3339,
    stamp14,
    to_millis,
    written_duration,
)
from letopis.model.times import timestamp, timestamps

NOW = datetime(2026, 3, 10, 15, 30, tzinfo=UTC)
moments = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC, microsecond=moment.microsecond // 1000 * 1000)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01 12:30", datetime(2026, 3, 1, 12, 30, tzinfo=UTC)),
        ("20260301120000", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("202603", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2 days ago", NOW - timedelta(days=2)),
        ("1h30m ago", NOW - timedelta(minutes=90)),
        ("yesterday", datetime(2026, 3, 9, tzinfo=UTC)),
        ("today", datetime(2026, 3, 10, tzinfo=UTC)),
        ("now", NOW),
    ],
)
def test_times_as_people_write_them(text: str, expected: datetime) -> None:
    assert parse_time(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01", "20261301", "5 parsecs ago", "99999999 years ago", "0", "2", "12", "202"]
)
def test_what_is_no_time_says_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time(text, NOW) if text != "0" else parse_time("00009999", NOW)


@pytest.mark.parametrize("text", ["1700000000", "1700000000000", "20260300", "2026000012", "202600", "2026-00"])
def test_digits_without_a_month_or_day_such_as_those_of_unix_are_no_day_of_that_year(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time; write 2026-03-01"):
        parse_time(text, NOW)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2024", "2024-12-31"), ("9999", "9999-12-31"), ("2024-02", "2024-02-29"), ("202302", "2023-02-28"),
        ("20240131", "2024-01-31"), ("31.1.2024", "2024-01-31"), ("yesterday", "2026-03-09"),
    ],
)  # fmt: skip
def test_up_to_a_day_month_or_year_means_with_all_of_it(text: str, end: str) -> None:
    assert rfc3339(last_moment(text, parse_time(text, NOW))) == f"{end}T23:59:59.999Z"


@pytest.mark.parametrize("text", ["now", "2024-01-31T00:00:00Z", "2024013100", "2 days ago"])
def test_up_to_a_moment_means_that_moment(text: str) -> None:
    assert last_moment(text, parse_time(text, NOW)) == parse_time(text, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("90", 90), ("1h30m", 5400), ("7 days", 604800), ("2w", 1209600)]
)
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "s", "1001 years"])
def test_durations_that_no_number_holds_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="too long"):
        parse_duration(text)


@given(st.integers(1, 10**10).map(lambda millis: millis / 1000))
def test_written_durations_read_back_the_same(seconds: float) -> None:
    assert parse_duration(written_duration(seconds)) == pytest.approx(seconds, rel=1e-14)


def test_durations_are_written_with_the_largest_unit_that_is_exact() -> None:
    assert [written_duration(seconds) for seconds in (604800.0, 5400, 90, 0.5, 0)] == ["7d", "90m", "90s", "0.5s", ""]


@given(moments)
@settings(max_examples=200)
def test_printed_times_read_back_the_same(moment: datetime) -> None:
    assert parse_time(rfc3339(moment), NOW) == moment
    assert from_millis(to_millis(moment)) == moment
    assert parse_time(stamp14(moment), NOW) == moment.replace(microsecond=0)


@given(st.text(max_size=30))
@settings(max_examples=300)
def test_any_text_is_a_time_or_a_sentence(text: str) -> None:
    with suppress(UsageError):
        assert parse_time(text, NOW).tzinfo is not None


def test_http_dates_are_in_gmt() -> None:
    assert http_date(NOW) == "Tue, 10 Mar 2026 15:30:00 GMT"


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_beyond_the_calendar_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_time(text, NOW)


@given(st.lists(st.integers(-62_135_596_800_000, 253_402_300_799_999)))
def test_timestamps_of_a_list_are_those_of_each_moment(times: list[int]) -> None:
    assert timestamps(times) == [timestamp(time) for time in times]
    assert [re.sub(r"\D", "", from_millis(time).isoformat())[:14] for time in times] == timestamps(times)
