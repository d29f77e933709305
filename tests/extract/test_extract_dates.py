"""Times as documents and servers write them."""

from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letopis.extract.metadata import read_date

MOMENTS = st.integers(631_152_000, 7_258_032_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
LIKE_SERVERS = r"[A-Z][a-z]{2}, \d\d (Jan|Sep|Dec|Abc|[A-Z][a-z]{2}) [012]\d{3} \d\d:\d\d:\d\d GMT"


@given(MOMENTS)
def test_times_of_servers_are_read(moment):
    assert read_date(format_datetime(moment, usegmt=True)) == moment
    assert read_date(f"  {format_datetime(moment)} ") == moment
    assert read_date(moment.isoformat()) == moment


@given(st.from_regex(LIKE_SERVERS, fullmatch=True))
def test_what_looks_like_a_time_of_a_server_is_read_as_mail_reads_it(text):
    try:
        wanted = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        wanted = None
    known = wanted if wanted and 1990 <= wanted.year < 2200 else None
    assert read_date(text) == known


@pytest.mark.parametrize("text", ["", "  ", "soon", "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT"])
def test_others_are_no_times(text):
    assert read_date(text) is None


def test_older_ways_of_writing_are_read():
    assert read_date("Sunday, 06-Nov-94 08:49:37 GMT") == datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)
    assert read_date("6 Nov 1994 08:49 +0100") == datetime(1994, 11, 6, 7, 49, tzinfo=UTC)
