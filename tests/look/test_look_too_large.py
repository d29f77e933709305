"""Documents over the size limit: their headers are followed, and whoever forces them gets what is there now."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from misbehaving_site import Site
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.cli import main
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.errors import DocumentTooLarge
from letopis.look.known import header_change
from letopis.model import Check, Headers, Outcome
from letopis.monitor.alerts import WatchHistory, WatchState, decide_alerts
from letopis.monitor.watch import AlertKind, AlertRule, WatchedUrl, WatchSpec, settle_watch

START = datetime(2026, 1, 1, tzinfo=UTC)
LARGE = b"<p>large</p>" * 2000
SMALL = b"<p>small</p>"


class Clock:
    now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    settings = Settings(fetch=FetchSettings(max_bytes=10_000), monitor=MonitorSettings(delay=0))
    with Archive(tmp_path / "a", clock=Clock(), settings=settings) as archive, Monitor(archive, uid="me") as made:
        yield made


def look(monitor: Monitor, url: str) -> Check:
    return monitor.check_multi([url])[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"ETag": '"1"'}, {"ETag": '"2"'}),
        ({"Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}, {"Last_Modified": "Fri, 02 Jan 2026 00:00:00 GMT"}),
        ({}, {}),
    ],
    ids=["etag", "date", "length"],
)
def test_a_document_that_was_never_stored_is_told_as_changed(
    monitor: Monitor, scripted_site: ScriptedSite, before: dict[str, str], after: dict[str, str]
) -> None:
    url = scripted_site.set("/large", LARGE, **before)
    first, again = look(monitor, url), look(monitor, url)
    scripted_site.set("/large", LARGE + b"x", **after)
    changed, settled = look(monitor, url), look(monitor, url)
    checks = [first, again, changed, settled]
    assert {check.outcome for check in checks} == {Outcome.TOO_LARGE}
    assert [check.meaningful for check in checks] == [None, False, True, False]
    assert [check.changed_for_you for check in checks] == [None, False, True, False]
    assert any(block.startswith("added header: ") for block in changed.blocks)
    assert [check.meaningful for check in monitor.archive.history(url)] == [None, False, True, False]


def test_a_stored_document_that_grew_too_large_is_told_as_changed_and_can_be_forced(
    monitor: Monitor, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", SMALL, validates=True, ETag='"1"')
    look(monitor, url)
    scripted_site.set("/page", LARGE, validates=True, ETag='"2"')
    grown = look(monitor, url)
    assert (grown.outcome, grown.changed_for_you, grown.version) == (Outcome.TOO_LARGE, True, 0)
    forced = monitor.get(url).check(force=True)
    assert (forced.outcome, forced.version, forced.changed_for_you) == (Outcome.CHANGED, 1, True)
    assert monitor.archive.get(url).body == LARGE


def test_a_stored_document_above_the_limit_is_told_as_changed_after_checks_that_found_it_unchanged(
    monitor: Monitor, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/large", LARGE, validates=True, ETag='"1"')
    monitor.get(url).check(force=True)
    assert (look(monitor, url).status, look(monitor, url).status) == (304, 304)
    scripted_site.set("/large", LARGE + b"x", validates=True, ETag='"2"')
    grown = look(monitor, url)
    assert (grown.outcome, grown.meaningful, grown.changed_for_you) == (Outcome.TOO_LARGE, True, True)


def test_a_header_that_names_no_document_is_not_told_as_nothing_new(monitor: Monitor, misbehaving_site: Site) -> None:
    url = misbehaving_site.url("endless")
    checks = [look(monitor, url), look(monitor, url)]
    assert [(check.outcome, check.changed_for_you) for check in checks] == [(Outcome.TOO_LARGE, None)] * 2


def test_force_is_not_answered_from_the_record(scripted_site: ScriptedSite, tmp_path: Path) -> None:
    url = scripted_site.set("/large", LARGE)
    with Archive(tmp_path / "b", settings=Settings(fetch=FetchSettings(max_bytes=10_000))) as archive:
        with Monitor(archive) as fresh:
            with pytest.raises(DocumentTooLarge):
                fresh.get(url).check()
            with pytest.raises(DocumentTooLarge):
                assert fresh.get(url).check().cached, "within the minimum interval"
            assert fresh.get(url).check(force=True).outcome is Outcome.NEW
        assert len(scripted_site.log) == 2


def test_force_asks_without_conditions_and_a_larger_limit_alone_keeps_them(
    monitor: Monitor, scripted_site: ScriptedSite
) -> None:
    dated = {"ETag": '"1"', "Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
    url = scripted_site.set("/page", SMALL, validates=True, **dated)
    look(monitor, url)
    scripted_site.set("/page", b"<p>Another text under the same tag</p>", validates=True, **dated)
    monitor.allow_large_documents()
    told = monitor.get(url).check(now=True)
    assert (told.outcome, told.status) == (Outcome.UNCHANGED, 304)
    forced = monitor.get(url).check(now=True, force=True)
    assert (forced.outcome, forced.status, forced.version) == (Outcome.CHANGED, 200, 1)
    assert not {"if-none-match", "if-modified-since"} & scripted_site.log[-1][2].keys()


def test_force_is_not_content_with_the_digest_in_a_header(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    digest = {"Content_MD5": "oIPqKHvmlk4srFSJDKMUZA=="}
    url = scripted_site.set("/page", SMALL, **digest)
    look(monitor, url)
    scripted_site.set("/page", SMALL.replace(b"small", b"SMALL"), **digest)
    assert monitor.get(url).check(now=True, force=True).outcome is Outcome.CHANGED


def test_a_plain_check_keeps_the_minimum_interval(scripted_site: ScriptedSite, tmp_path: Path) -> None:
    url = scripted_site.set("/page", SMALL)
    with Archive(tmp_path / "b") as archive, Monitor(archive) as fresh:
        page = fresh.get(url)
        assert [page.check().cached, page.check().cached, page.check(now=True).cached] == [False, True, False]


def test_a_watch_alerts_of_another_header() -> None:
    spec = WatchSpec(when=(AlertRule(AlertKind.CHANGED),))
    watch = settle_watch(WatchedUrl("http://example.org/"), spec, None, MonitorSettings())
    block = 'added header: ETag: "2"'
    check = Check(
        watch.url, watch.url, START, True, 200, Outcome.TOO_LARGE, meaningful=True, score=1.0, blocks=(block,)
    )
    alerts, state = decide_alerts(watch, WatchHistory(WatchState(judged=1), (check,), None, START), None)
    assert [alert.kind for alert in alerts] == [AlertKind.CHANGED]
    assert block in alerts[0].message
    quiet = check._replace(meaningful=False, blocks=())
    assert decide_alerts(watch, WatchHistory(state, (quiet,), None, START), None)[0] == []


TAG, OTHER_TAG = ("ETag", '"1"'), ("ETag", '"2"')
DATE, OTHER_DATE = ("Last-Modified", "a"), ("Last-Modified", "b")
LENGTH, OTHER_LENGTH = ("Content-Length", "1"), ("Content-Length", "2")


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ((TAG,), (TAG,), False), ((TAG,), (OTHER_TAG,), True), ((TAG, DATE), (TAG, OTHER_DATE), False),
        ((DATE,), (OTHER_DATE,), True), ((LENGTH, DATE), (OTHER_LENGTH, DATE), True), ((LENGTH,), (LENGTH,), False),
        ((TAG,), (LENGTH,), None), ((), (), None),
    ],
)  # fmt: skip
def test_headers_say_whether_it_is_another_document(before: Headers, now: Headers, changed: bool | None) -> None:
    found = header_change(before, now)
    assert (found.meaningful if found is not None else None) is changed


def test_a_page_that_packs_very_well_is_stored_and_a_bomb_is_too_large(
    tmp_path: Path, scripted_site: ScriptedSite, capfd: pytest.CaptureFixture[str]
) -> None:
    table = b"<tr><td>No data for this day.</td></tr>\n" * 180_000
    packed = scripted_site.set("/packed", gzip.compress(table, 9), Content_Encoding="gzip")
    bomb = scripted_site.set("/bomb", gzip.compress(bytes(80 << 20), 9), Content_Encoding="gzip")
    words = ["--archive", str(tmp_path / "a"), "check", "--json", "--now"]
    assert main([*words, packed]) == 0
    capfd.readouterr()
    for more in ([], ["--force"]):
        assert main([*words, bomb, *more]) == 5
        told = capfd.readouterr()
        assert json.loads(told.out)["outcome"] == "too-large"
    assert "not even when forced" in told.err
