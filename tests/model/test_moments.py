"""Times as they are given in Python: aware, naive, days and texts, or one clear error."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from letopis import Archive, Monitor, UsageError
from letopis.model import as_moment, parse_time

NOW = datetime(2026, 3, 5, 10, tzinfo=UTC)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["1.3.2026", "01.03.2026", "1. 3. 2026"])
def test_days_may_be_written_with_dots(text: str) -> None:
    assert parse_time(text, NOW) == datetime(2026, 3, 1, tzinfo=UTC)
    assert parse_time(f"{text} 12:30", NOW) == datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    with pytest.raises(UsageError, match=r"is not a time; write 2026-03-01, 1\.3\.2026"):
        parse_time("31.2.2026", NOW)


def test_every_form_of_a_time_means_one_moment() -> None:
    naive = NOON.astimezone().replace(tzinfo=None)
    for given in (NOON, NOON.astimezone(timezone(timedelta(hours=5))), naive, "2026-03-01T12:00:00Z", "1.3.2026 12:00"):
        assert as_moment(given, NOW) == NOON
    assert as_moment(date(2026, 3, 1), NOW) == datetime(2026, 3, 1, tzinfo=UTC)
    assert as_moment(date(2026, 3, 1), NOW, ends_day=True) > NOON
    assert as_moment("1.3.2026", NOW, ends_day=True) > NOON
    with pytest.raises(UsageError, match="17 is not a time; give a datetime, a date or a text"):
        as_moment(17, NOW)  # type: ignore[arg-type]
    for zone in (None, timezone(timedelta(hours=5))):
        with pytest.raises(UsageError, match="has no equivalent in UTC; write 2026-03-01"):
            as_moment(datetime(1, 1, 1, tzinfo=zone), NOW)


def test_an_archive_and_a_monitor_take_all_forms(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/"
    with Archive(tmp_path / "a") as archive, Monitor(archive) as monitor:
        archive.put(url, b"<p>one", at="1.3.2026")
        archive.put(url, b"<p>two", at=date(2026, 3, 2))
        archive.put(url, b"<p>three", at=datetime(2026, 3, 3, 12))
        page = monitor.get(url)
        for first in ("2026-03-01", "1.3.2026", date(2026, 3, 1), NOON, NOON.astimezone().replace(tzinfo=None)):
            assert archive.get(url, at=first).number == 0
            assert page.get_version(first).number == 0
            assert page.available(first)
            assert "two" in str(archive.diff(url, first, date(2026, 3, 2)))
            assert "two" in str(page.get_diff(first, "2.3.2026"))
        with pytest.raises(UsageError):
            archive.get(url, at="some day")
        assert page.last_available(now=True).number == 2
        assert not page.available(now=True)
