"""Checks share the record of their headers, and each keeps the fields that are its own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.archive import Archive, NewCapture
from letopis.archive.captures import load_capture, timeline_of
from letopis.model import Headers, Outcome, http_date, to_millis

URL = "http://a.test/"
START = to_millis(datetime(2026, 1, 1, 12, tzinfo=UTC))


def capture(second: int, headers: Headers, body: bytes = b"<p>page</p>", status: int = 200) -> NewCapture:
    is_page = status == 200
    outcome = Outcome.NEW if is_page else Outcome.UNAVAILABLE
    return NewCapture(URL, START + second * 1000, status, headers, body, outcome, versioned=is_page, dated=True)


def headers_of(second: int, cookie: str) -> Headers:
    date = http_date(datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC))
    return (("Server", "x"), ("Date", date), ("Set-Cookie", cookie), ("Content-Type", "text/html"))


@pytest.mark.parametrize("bodies", [(b"same", b"same", b"same"), (b"one", b"two", b"three")])
def test_every_check_has_its_own_date_and_cookie(tmp_path: Path, bodies: tuple[bytes, ...]) -> None:
    sent = [headers_of(second, f"s={second}") for second in range(3)]
    with Archive(tmp_path / "a") as archive:
        archive.commit([capture(n, sent[n], bodies[n]) for n in range(3)])
        assert [check.headers for check in archive.history(URL)] == sent
        shown = [timeline_of(archive, URL).closest(START + 1000 * n) for n in range(3)]
        assert [load_capture(archive, one).headers for one in shown if one] == sent
        assert archive.catalog.database.one("SELECT count(*) FROM head") == (1,)


def test_errors_have_their_own_fields_too(tmp_path: Path) -> None:
    sent = [headers_of(second, f"s={second}") for second in range(2)]
    with Archive(tmp_path / "a") as archive:
        archive.commit([capture(n, sent[n], b"gone", 404) for n in range(2)])
        assert [check.headers for check in archive.history(URL)] == sent


def test_a_version_that_began_earlier_has_the_headers_of_then(tmp_path: Path) -> None:
    early, late = (("X-Now", "early"),), (("X-Now", "late"),)
    with Archive(tmp_path / "a") as archive:
        archive.commit([capture(5, late)])
        archive.commit([capture(1, early)])
        assert [check.headers for check in archive.history(URL)] == [early, late]
        assert archive.get(URL).headers == early


FIELDS = st.lists(
    st.tuples(
        st.sampled_from(["Date", "date", "Set-Cookie", "Age", "Server", "Content-Type", "X-Y"]),
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00"), max_size=12)
        | st.integers(-70, 70).map(lambda n: http_date(datetime.fromtimestamp(START // 1000 + n, UTC))),
    ),
    max_size=6,
).map(tuple)


@settings(max_examples=60, deadline=None)
@given(st.lists(FIELDS, min_size=2, max_size=5))
def test_any_headers_come_back_as_they_came(tmp_path_factory: pytest.TempPathFactory, sent: list[Headers]) -> None:
    with Archive(tmp_path_factory.mktemp("own") / "a") as archive:
        archive.commit([capture(n, headers, b"%d" % (n // 2)) for n, headers in enumerate(sent)])
        found = [check.headers for check in archive.history(URL)]
        assert [[(name.lower(), value) for name, value in one] for one in found] == [
            [(name.lower(), value) for name, value in one] for one in sent
        ]
