"""The nine use cases, rule by rule, against a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_site import Script, ScriptedSite

from letopis import Archive, Monitor
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.errors import BadUrl, DocumentTooLarge, Unavailable, UnknownUrl, UnknownVersion, UsageError
from letopis.model import Outcome

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
OLD = b"<h1>Hours</h1><p>Open from nine to five on every working day.</p>"
NEW = b"<h1>Hours</h1><p>Closed for the whole of August, see you later.</p>"


class Clock:
    """Moves only when told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_time(self, by: timedelta = MINUTE) -> datetime:
        self.now += by
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def archive(tmp_path: Path, clock: Clock) -> Iterator[Archive]:
    with Archive(tmp_path / "a", clock=clock, settings=Settings(fetch=FetchSettings(max_bytes=10_000))) as opened:
        yield opened


@pytest.fixture
def monitor(archive: Archive) -> Iterator[Monitor]:
    with Monitor(archive, uid="me") as made:
        yield made


def changed_page(site: ScriptedSite, monitor: Monitor, clock: Clock) -> str:
    """A page with two versions a minute apart, both seen by `monitor`."""
    url = site.set("/page", OLD)
    monitor.get(url).check()
    clock.pass_time()
    site.set("/page", NEW)
    monitor.get(url).check()
    clock.pass_time()
    return url


def test_uc1_unknown_url_is_an_error_without_a_request(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    with pytest.raises(UnknownUrl):
        monitor.get(scripted_site.url("/page")).get_version(START)
    assert scripted_site.log == []


def test_uc1_before_the_first_version_gives_the_oldest(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    url = changed_page(scripted_site, monitor, clock)
    assert monitor.get(url).get_version(START - MINUTE).body == OLD


def test_uc1_between_versions_gives_the_one_valid_then(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    url = changed_page(scripted_site, monitor, clock)
    assert monitor.get(url).get_version(START + MINUTE / 2).body == OLD
    assert monitor.get(url).get_version(START + MINUTE).body == NEW


def test_uc1_later_than_the_last_check_checks_first(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    url = changed_page(scripted_site, monitor, clock)
    scripted_site.set("/page", b"third")
    assert monitor.get(url).get_version(clock.now).body == b"third"


def test_uc1_error_of_that_check_reaches_the_caller(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    url = changed_page(scripted_site, monitor, clock)
    scripted_site.set("/page", b"", status=500)
    with pytest.raises(Unavailable):
        monitor.get(url).get_version(clock.now)


def test_uc1_by_number(monitor: Monitor, scripted_site: ScriptedSite, clock: Clock) -> None:
    url = changed_page(scripted_site, monitor, clock)
    assert monitor.get(url).get_version(0).body == OLD
    with pytest.raises(UnknownVersion):
        monitor.get(url).get_version(2)


def test_uc2_gives_the_current_version(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    assert monitor.get(scripted_site.set("/page", OLD)).get_last_version().body == OLD


def test_uc2_unavailable_is_an_error(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    with pytest.raises(Unavailable, match="404"):
        monitor.get(scripted_site.url("/nothing")).get_last_version()


def test_uc3_first_look_is_neither_changed_nor_unchanged(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    assert monitor.get(scripted_site.set("/page", OLD)).changed() is None


def test_uc3_tells_change_since_my_last_look(monitor: Monitor, scripted_site: ScriptedSite, clock: Clock) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    resource.changed()
    clock.pass_time()
    assert resource.changed() is False
    clock.pass_time()
    scripted_site.set("/page", NEW)
    assert resource.changed() is True
    clock.pass_time()
    assert resource.changed() is False


def test_uc3_is_answered_for_each_uid_apart(
    archive: Archive, monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    url = scripted_site.set("/page", OLD)
    with Monitor(archive, uid="other") as other:
        monitor.get(url).changed()
        other.get(url).changed()
        clock.pass_time()
        scripted_site.set("/page", NEW)
        assert monitor.get(url).changed() is True
        clock.pass_time()
        assert other.get(url).changed() is True
        assert (monitor.check_uid(), other.check_uid()) == (True, True)
    with Monitor(archive, uid="never") as never:
        assert never.check_uid() is False


def test_uc3_content_that_came_back_is_no_change(
    monitor: Monitor, archive: Archive, scripted_site: ScriptedSite, clock: Clock
) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    resource.changed()
    with Monitor(archive, uid="other") as other:
        for body in (NEW, OLD):
            clock.pass_time()
            scripted_site.set("/page", body)
            other.get(resource.url).check()
    clock.pass_time()
    assert resource.changed() is False


def test_uc3_unavailable_is_an_error_and_keeps_my_place(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    resource.changed()
    clock.pass_time()
    scripted_site.set("/page", b"", status=503)
    with pytest.raises(Unavailable):
        resource.changed()
    clock.pass_time()
    scripted_site.set("/page", NEW)
    assert resource.changed() is True


def test_uc4_gives_the_difference_since_my_last_look(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    resource.check()
    clock.pass_time()
    scripted_site.set("/page", NEW)
    difference = resource.changes()
    assert isinstance(difference, str)
    assert "-" in difference
    assert "August" in difference


def test_uc4_after_uc3_is_empty(monitor: Monitor, scripted_site: ScriptedSite, clock: Clock) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    resource.check()
    clock.pass_time()
    scripted_site.set("/page", NEW)
    assert resource.changed() is True
    clock.pass_time()
    assert resource.changes() == ""


def test_uc4_unavailable_is_an_error(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    with pytest.raises(Unavailable):
        monitor.get(scripted_site.url("/nothing")).changes()


def test_uc5_difference_between_two_times(monitor: Monitor, scripted_site: ScriptedSite, clock: Clock) -> None:
    url = changed_page(scripted_site, monitor, clock)
    difference = monitor.get(url).get_diff(START, START + MINUTE)
    assert isinstance(difference, str)
    assert "nine" in difference
    assert monitor.get(url).get_diff(START, START + MINUTE / 2) == ""


def test_uc5_errors_of_uc1_reach_the_caller(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    with pytest.raises(UnknownUrl):
        monitor.get(scripted_site.url("/page")).get_diff(START, START + MINUTE)


def test_uc6_records_time_header_and_version(
    monitor: Monitor, archive: Archive, scripted_site: ScriptedSite, clock: Clock
) -> None:
    url = scripted_site.set("/page", OLD, X_Mark="seen")
    check = monitor.get(url).check()
    assert (check.outcome, check.checked_at, check.version) == (Outcome.NEW, clock.now, 0)
    assert ("X-Mark", "seen") in archive.get(url).headers
    clock.pass_time()
    assert monitor.get(url).check().outcome is Outcome.UNCHANGED
    assert [row.checked_at for row in archive.history(url)] == [START, START + MINUTE]


def test_uc6_unavailable_is_recorded_then_raised(
    monitor: Monitor, archive: Archive, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", b"sorry", status=500)
    with pytest.raises(Unavailable):
        monitor.get(url).check()
    assert [(row.status, row.available) for row in archive.history(url)] == [(500, False)]


def test_uc7_says_whether_it_is_available(monitor: Monitor, scripted_site: ScriptedSite, clock: Clock) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    assert resource.available() is True
    clock.pass_time()
    scripted_site.set("/page", b"", status=410)
    assert resource.available() is False
    assert resource.available(at=START) is True


def test_uc8_lists_every_check(monitor: Monitor, scripted_site: ScriptedSite, clock: Clock) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    resource.available()
    clock.pass_time()
    scripted_site.set("/page", b"", status=500)
    resource.available()
    assert resource.availability() == [(START, True), (START + MINUTE, False)]
    assert resource.last_checked() == START + MINUTE


def test_uc8_unknown_url_is_an_error(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    with pytest.raises(UnknownUrl):
        monitor.get(scripted_site.url("/page")).availability()


def test_uc9_gives_the_last_available_version_though_the_check_fails(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    resource.check()
    clock.pass_time()
    scripted_site.set("/page", b"", status=500)
    assert resource.last_available().body == OLD


def test_uc9_without_any_version_is_an_error(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    with pytest.raises(UnknownVersion):
        monitor.get(scripted_site.url("/nothing")).last_available()


def test_inside_the_minimum_interval_the_record_answers(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    resource = monitor.get(scripted_site.set("/page", OLD))
    resource.changed()
    clock.pass_time(timedelta(seconds=9))
    assert resource.available() is True
    assert len(scripted_site.log) == 1
    clock.pass_time(timedelta(seconds=1))
    resource.available()
    assert len(scripted_site.log) == 2
    resource.check(now=True)
    assert len(scripted_site.log) == 3


def test_document_over_the_limit_is_tracked_by_header_only(
    monitor: Monitor, archive: Archive, scripted_site: ScriptedSite, clock: Clock
) -> None:
    url = scripted_site.set("/big", b"x" * 20_000)
    with pytest.raises(DocumentTooLarge):
        monitor.get(url).check()
    assert [row.outcome for row in archive.history(url)] == [Outcome.TOO_LARGE]
    clock.pass_time()
    assert monitor.get(url).check(force=True).outcome is Outcome.NEW
    assert len(archive.get(url).body) == 20_000
    clock.pass_time()
    monitor.allow_large_documents()
    assert monitor.get(url).check().outcome is Outcome.UNCHANGED


def test_short_url_target_and_mirror_share_one_content(
    monitor: Monitor, archive: Archive, scripted_site: ScriptedSite
) -> None:
    target = scripted_site.set("/target", OLD)
    mirror = scripted_site.set("/mirror", OLD)
    short = scripted_site.redirect("/s", "/target")
    checks = monitor.check_multi([target, mirror, short])
    assert [check.outcome for check in checks] == [Outcome.NEW] * 3
    assert (checks[2].final_url, len(checks[2].redirects)) == (target, 1)
    assert archive.stats().contents == 1
    assert archive.get(short).body == OLD


def test_lying_last_modified_is_never_the_judge(monitor: Monitor, scripted_site: ScriptedSite, clock: Clock) -> None:
    url = scripted_site.set("/page", OLD, Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT")
    monitor.get(url).check()
    clock.pass_time()
    scripted_site.set("/page", OLD, Last_Modified="Fri, 02 Jan 2026 00:00:00 GMT")
    assert monitor.get(url).check().outcome is Outcome.UNCHANGED
    clock.pass_time()
    scripted_site.set("/page", NEW, Last_Modified="Fri, 02 Jan 2026 00:00:00 GMT")
    assert monitor.get(url).check().outcome is Outcome.CHANGED


def test_wrong_content_md5_is_a_warning_and_is_not_used_again(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    wrong = "1B2M2Y8AsgTpgAmY7PhCfg=="
    url = scripted_site.set("/page", OLD, Content_MD5=wrong)
    assert any("Content-MD5" in warning for warning in monitor.get(url).check().warnings)
    clock.pass_time()
    scripted_site.set("/page", OLD[:-5] + b"new</", Content_MD5=wrong)
    assert monitor.get(url).check().outcome is Outcome.CHANGED


def test_matching_digest_and_length_save_the_download(
    monitor: Monitor, scripted_site: ScriptedSite, clock: Clock
) -> None:
    import base64
    import hashlib

    digest = base64.b64encode(hashlib.md5(OLD).digest()).decode()
    url = scripted_site.set("/page", OLD, Content_MD5=digest)
    monitor.get(url).check()
    clock.pass_time()
    assert monitor.get(url).check().outcome is Outcome.UNCHANGED


def test_etag_without_304_and_304_without_etag(monitor: Monitor, scripted_site: ScriptedSite, clock: Clock) -> None:
    url = scripted_site.set("/page", OLD, ETag='"a"')
    monitor.get(url).check()
    clock.pass_time()
    assert monitor.get(url).check().outcome is Outcome.UNCHANGED, "200 with the same bytes"
    clock.pass_time()
    scripted_site.set("/page", OLD, validates=True, ETag='"a"')
    check = monitor.get(url).check()
    assert (check.status, check.outcome) == (304, Outcome.UNCHANGED)
    clock.pass_time()
    assert monitor.get(url).check().status == 304, "the validator survives a 304 that does not repeat it"


def test_headers_are_stored_again_only_when_they_differ(
    monitor: Monitor, archive: Archive, scripted_site: ScriptedSite, clock: Clock
) -> None:
    url = scripted_site.set("/page", OLD)
    for _ in range(3):
        monitor.get(url).check()
        clock.pass_time()
    assert archive.catalog.database.one("SELECT count(*) FROM head") == (2,), "one of the answers, one of the requests"


def test_redirect_loop_and_31_hops_make_a_url_unavailable(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    loop = scripted_site.redirect("/loop", "/loop")
    for hop in range(32):
        scripted_site.redirect(f"/hop{hop}", f"/hop{hop + 1}")
    scripted_site.set("/hop32", OLD)
    with pytest.raises(Unavailable, match="redirect"):
        monitor.get(loop).check()
    with pytest.raises(Unavailable):
        monitor.get(scripted_site.url("/hop1")).check()
    assert monitor.get(scripted_site.url("/hop2")).check().outcome is Outcome.NEW, "exactly 30 hops"


def test_a_check_of_many_pages_records_each_while_others_wait_for_their_turn(
    scripted_site: ScriptedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("letopis.monitor.checker._PORTION_SECONDS", 0.05)
    first, last = scripted_site.set("/first", OLD), scripted_site.set("/last", NEW)
    recorded: list[int] = []

    class Pages(dict[str, Script]):
        """Counts the looks at the first page that are durable when the last one is asked for."""

        def get(self, path: str, default: Any = None) -> Any:
            if path == "/last":
                with Archive(tmp_path / "a") as other:
                    recorded.append(len(other.history(first)))
            return super().get(path, default)

    scripted_site.pages = Pages(scripted_site.pages)
    made = Settings(monitor=MonitorSettings(delay=3.0))  # so long the last page waits for its turn
    with Archive(tmp_path / "a", settings=made) as archive, Monitor(archive) as monitor:
        assert [check.outcome for check in monitor.check_multi([first, last])] == [Outcome.NEW, Outcome.NEW]
    assert recorded == [1]


def test_pages_that_are_looked_at_while_others_are_recorded_are_recorded_too(
    scripted_site: ScriptedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("letopis.monitor.checker._PORTION_SECONDS", 0.01)
    urls = [scripted_site.set(f"/{number}", OLD) for number in range(6)]
    made = Settings(monitor=MonitorSettings(delay=0.05))
    with (
        Archive(tmp_path / "a", settings=made) as archive,
        Archive(tmp_path / "a") as other,
        Monitor(archive) as monitor,
    ):
        with ExitStack() as held:
            held.enter_context(other.hold_writer())
            release = threading.Timer(1.0, held.close)
            release.start()
            checks = monitor.check_multi(urls)
            release.join()
        assert [check.outcome for check in checks] == [Outcome.NEW] * 6
        assert [len(archive.history(url)) for url in urls] == [1] * 6


def test_one_address_in_place_of_a_list_is_refused_and_nothing_asked(
    monitor: Monitor, scripted_site: ScriptedSite
) -> None:
    with pytest.raises(UsageError, match="give a list"):
        monitor.check_multi(scripted_site.set("/", NEW))
    assert scripted_site.log == []


@pytest.mark.parametrize("given", [None, 5, b"http://example.org/", ["http://example.org/"]])
def test_what_is_no_text_is_no_address(monitor: Monitor, given: object) -> None:
    with pytest.raises(BadUrl, match="is not an address"):
        monitor.get(given)  # type: ignore[arg-type]


def test_the_password_of_an_address_signs_in_there_alone_and_is_recorded_nowhere(
    archive: Archive, monitor: Monitor, scripted_site: ScriptedSite
) -> None:
    url, other = scripted_site.set("/page", b'<a href="next">on</a>'), scripted_site.set("/other", OLD)
    secret = url.replace("//", "//ada:secret@")
    assert monitor.get(secret).check().url == url
    monitor.check_multi([secret, other], now=True)
    sent = [(path, headers.get("authorization")) for _, path, headers in scripted_site.log if path != "/robots.txt"]
    assert sorted(sent, key=str) == [("/other", None), *[("/page", "Basic YWRhOnNlY3JldA==")] * 2]
    assert archive.put(secret, NEW).url == url
    assert [found.number for found in archive.versions(secret)] == [0, 1]
    stored = b"".join(file.read_bytes() for file in archive.folder.rglob("*") if file.is_file())
    assert b"secret" not in stored
    assert b"YWRhOnNlY3JldA" not in stored
