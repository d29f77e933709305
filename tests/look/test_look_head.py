"""`check --head`: the header first, a download only when it says so."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.errors import Unavailable
from letopis.look.known import KnownVersion, header_says_same, header_suffices
from letopis.model import Failure, FailureKind, Headers, Outcome, Response

START = datetime(2026, 1, 1, tzinfo=UTC)
OLD = b"<p>Open from nine to five on every working day.</p>"
NEW = b"<p>Shut from nine to five on every working day.</p>"
URL = "http://example.org/"


class Clock:
    now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    with Archive(tmp_path / "a", clock=Clock()) as archive, Monitor(archive) as made:
        yield made


def methods(site: ScriptedSite) -> list[str]:
    taken = [row[0] for row in site.log]
    site.log.clear()
    return taken


def test_unknown_url_is_downloaded_at_once(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    assert monitor.get(url).check(head=True).outcome is Outcome.NEW
    assert methods(scripted_site) == ["GET"]
    assert monitor.archive.get(url).body == OLD


@pytest.mark.parametrize(
    "fields",
    [{"ETag": '"a"'}, {"Content_MD5": base64.b64encode(hashlib.md5(OLD).digest()).decode()}],
    ids=["etag", "digest"],
)
def test_header_that_says_the_same_saves_the_download(
    monitor: Monitor, scripted_site: ScriptedSite, fields: dict[str, str]
) -> None:
    url = scripted_site.set("/page", OLD, **fields)
    monitor.get(url).check()
    methods(scripted_site)
    check = monitor.get(url).check(head=True)
    assert (check.outcome, check.status, check.version) == (Outcome.UNCHANGED, 200, 0)
    assert methods(scripted_site) == ["HEAD"]
    assert monitor.archive.get(url).body == OLD
    assert len(monitor.archive.versions(url)) == 1
    assert monitor.archive.history(url)[-1].digest == check.digest != ""


def test_304_to_the_head_request_suffices(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD, validates=True, ETag='"a"')
    monitor.get(url).check()
    methods(scripted_site)
    assert monitor.get(url).check(head=True).status == 304
    assert methods(scripted_site) == ["HEAD"]


def test_header_that_says_something_else_is_followed_by_a_download(
    monitor: Monitor, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", OLD, ETag='"a"')
    monitor.get(url).check()
    scripted_site.set("/page", NEW, ETag='"b"')
    methods(scripted_site)
    assert monitor.get(url).check(head=True).outcome is Outcome.CHANGED
    assert methods(scripted_site) == ["HEAD", "GET"]
    assert monitor.archive.get(url).body == NEW


@pytest.mark.parametrize("fields", [{}, {"Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}], ids=["none", "date"])
def test_header_without_usable_validators_settles_nothing(
    monitor: Monitor, scripted_site: ScriptedSite, fields: dict[str, str]
) -> None:
    url = scripted_site.set("/page", OLD, **fields)
    monitor.get(url).check()
    methods(scripted_site)
    assert monitor.get(url).check(head=True).outcome is Outcome.UNCHANGED
    assert methods(scripted_site) == ["HEAD", "GET"]
    scripted_site.set("/page", NEW, **fields)
    assert monitor.get(url).check(head=True).outcome is Outcome.CHANGED, "of the same length, and in the same second"


def test_redirect_that_leads_elsewhere_is_followed_by_a_download(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    scripted_site.set("/a", OLD, ETag='"same"')
    scripted_site.set("/b", NEW, ETag='"same"')
    url = scripted_site.redirect("/short", "/a")
    monitor.get(url).check()
    assert monitor.get(url).check(head=True).outcome is Outcome.UNCHANGED
    scripted_site.redirect("/short", "/b")
    assert monitor.get(url).check(head=True).outcome is Outcome.CHANGED


def test_error_to_head_is_left_to_get(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD, ETag='"a"')
    monitor.get(url).check()
    scripted_site.set("/page", b"gone", status=410)
    methods(scripted_site)
    with pytest.raises(Unavailable):
        monitor.get(url).check(head=True)
    assert methods(scripted_site) == ["HEAD", "GET"]


def known(*headers: tuple[str, str], distrusted: frozenset[str] = frozenset()) -> KnownVersion:
    return KnownVersion(1, 1, 0, b"", 10, headers, URL, distrusted)


def told(status: int = 200, headers: Headers = (), failure: FailureKind | None = None) -> Response:
    return Response(
        URL, URL, status, headers, b"", START, failure=Failure(failure, "") if failure is not None else None
    )


TAG = ("ETag", '"a"')
DATE = ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
LENGTH = ("Content-Length", "10")
SUM = ("Content-MD5", "x")


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ([TAG], [TAG], True),
        ([TAG], [("ETag", '"b"')], False),
        ([TAG, DATE, LENGTH], [DATE, LENGTH], False),
        ([DATE, LENGTH], [DATE, LENGTH], False),
        ([DATE, LENGTH], [DATE, ("Content-Length", "11")], False),
        ([DATE], [DATE], False),
        ([LENGTH], [LENGTH], False),
        ([LENGTH, SUM], [LENGTH, SUM], True),
        ([LENGTH, SUM, DATE], [LENGTH, ("Content-MD5", "y"), DATE], False),
        ([], [], False),
    ],
)
def test_says_same(before: list[tuple[str, str]], now: list[tuple[str, str]], same: bool) -> None:
    assert header_says_same(known(*before), tuple(now)) is same


def test_distrusted_digest_is_not_believed() -> None:
    assert not header_says_same(known(LENGTH, SUM, distrusted=frozenset({"content-md5"})), (LENGTH, SUM))


@pytest.mark.parametrize(
    ("answer", "enough"),
    [
        (told(304), True),
        (told(200, (TAG,)), True),
        (told(200), False),
        (told(302, (TAG,)), False),
        (told(405, (TAG,)), False),
        (told(0, failure=FailureKind.DNS), True),
        (told(0, failure=FailureKind.FORBIDDEN_ADDRESS), True),
        (told(0, failure=FailureKind.RESET), False),
        (told(302, failure=FailureKind.REDIRECT_LOOP), False),
    ],
)
def test_header_suffices(answer: Response, enough: bool) -> None:
    assert header_suffices(answer, known(TAG)) is enough
