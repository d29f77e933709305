"""Notifications that cannot be delivered: tried again by whoever comes, shown and counted; and a test of a target."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite
from served_archive import running

from letopis import Archive
from letopis.archive.accounts import accounts_of
from letopis.cli import main
from letopis.config import FetchSettings, MonitorSettings, ServeSettings, Settings
from letopis.monitor.notifications import FailedDelivery, home_of
from letopis.monitor.watcher import open_watcher

START = datetime(2026, 1, 1, tzinfo=UTC)
OPEN = Settings(fetch=FetchSettings(private="always"), monitor=MonitorSettings(min_interval=0, delay=0))


async def run_watches(folder: Path, now: datetime) -> list[FailedDelivery]:
    """One round of a process that begins with nothing but the archive."""
    failed: list[FailedDelivery] = []
    with Archive(folder, settings=OPEN, clock=lambda: now) as archive:
        async with open_watcher(archive, undelivered=failed.append) as watcher:
            await watcher.run_due()
    return failed


def shell(capfd: pytest.CaptureFixture[str], folder: Path, *words: str) -> tuple[int, list[dict[str, Any]], str]:
    status = main(["--archive", str(folder), *words, "--json"])
    told = capfd.readouterr()
    return status, [json.loads(line) for line in told.out.splitlines()], told.err


@pytest.mark.asyncio
async def test_what_was_not_taken_is_shown_counted_and_taken_from_another_process(
    tmp_path: Path, scripted_site: ScriptedSite, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, hook = tmp_path / "a", scripted_site.set("/hook?key=secret", b"", 503)
    page = scripted_site.url("/gone")
    shell(capfd, folder, "watch", "add", page, "--when", "unavailable:1", "--notify", hook, "--every", "30d")
    later = datetime.now(UTC) + timedelta(hours=1)
    [failed] = await run_watches(folder, later)
    assert (failed.url, failed.attempts) == (page, 1)
    assert failed.due is not None
    assert failed.due > later
    assert "secret" not in str(failed)
    _, [row], _ = shell(capfd, folder, "watch", "list")
    assert (row["undelivered"], "status 503" in row["delivery_error"]) == (1, True)
    with Archive(folder, settings=OPEN) as archive, running(archive) as web:
        assert "1 notification not delivered" in web.get("/watches").text
        assert web.get("/api/v1/watches").json()["watches"][0]["undelivered"] == 1
    assert await run_watches(folder, later + timedelta(seconds=1)) == [], "it is left alone for a while"
    scripted_site.set("/hook?key=secret", b"")
    assert await run_watches(folder, failed.due) == []
    assert shell(capfd, folder, "watch", "list")[1][0]["undelivered"] == 0


def test_a_target_can_be_tried_by_every_door(
    tmp_path: Path, scripted_site: ScriptedSite, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, hook = tmp_path / "a", scripted_site.set("/hook", b"")
    page, quiet = "http://example.org/", "http://example.org/quiet"
    shell(capfd, folder, "watch", "add", page, "--notify", hook)
    shell(capfd, folder, "watch", "add", quiet)
    status, [row], _ = shell(capfd, folder, "watch", "test", page)
    assert (status, row["delivered"], row["target"]) == (0, True, hook)
    assert [method for method, *_ in scripted_site.log] == ["POST"]
    assert shell(capfd, folder, "watch", "test", quiet)[0] == 2
    scripted_site.set("/hook", b"", 500)
    status, [row], errors = shell(capfd, folder, "watch", "test", page)
    assert (status, row["delivered"]) == (1, False)
    assert "status 500" in errors
    with Archive(folder, settings=OPEN) as archive, running(archive) as web:
        head = {"Authorization": f"Bearer {accounts_of(archive).create_token('all', None, 'write', 0)}"}
        answer = web.post("/api/v1/watches/test", {"url": page}, **head).json()
        assert answer["targets"][0]["delivered"] is False
        assert web.get("/api/v1/watches").json()["watches"][0]["undelivered"] == 0, "a test is no alert"
        assert web.get("/api/v1/watches/alerts").json()["alerts"] == []
        sent = web.get(f"/api/v1/watches/deliveries?url={page}", **head).json()["deliveries"]
        assert [(one["kind"], one["state"], one["attempts"]) for one in sent] == [
            ("test", "failed", 1), ("test", "failed", 1), ("test", "sent", 1),
        ]  # fmt: skip
        shown = web.get("/watches/1").text
        assert shown.count(">Test</span>: ") == 3
    assert [row["state"] for row in shell(capfd, folder, "watch", "deliveries")[1]] == ["failed", "failed", "sent"]
    told = json.loads(scripted_site.posts[0][1])
    assert (told["kind"], told["watch"], told["page"]) == ("test", 1, "http://127.0.0.1:8080/watches/1")


@pytest.mark.asyncio
async def test_a_notification_names_its_watch_and_leads_to_the_comparison_through_its_filters(
    tmp_path: Path, scripted_site: ScriptedSite, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, hook = tmp_path / "a", scripted_site.set("/hook", b"")
    price = "<p id=price>EUR %s</p><p>Visitor number %s of this shop, which sells pens.</p>"
    page = scripted_site.set("/pen?a=1&b=2", (price % ("40.00", 17)).encode())
    shell(capfd, folder, "watch", "add", page, "--css", "#price", "--notify", hook, "--every", "10s")
    await run_watches(folder, datetime.now(UTC))
    scripted_site.set("/pen?a=1&b=2", (price % ("35.00", 18)).encode())
    await run_watches(folder, datetime.now(UTC) + timedelta(days=1))
    (told,) = [json.loads(body) for _, body in scripted_site.posts]
    assert (told["watch"], told["name"], told["page"]) == (1, "", "http://127.0.0.1:8080/watches/1")
    with Archive(folder, settings=OPEN) as archive, running(archive) as web:
        assert told["comparison"].startswith("http://127.0.0.1:8080/compare/")
        shown = web.get(told["comparison"].removeprefix("http://127.0.0.1:8080")).text
    assert "Through the filters of the watch: css <code>#price</code>" in shown
    assert "35.00" in shown
    assert "Visitor" not in shown


def test_links_in_notifications_begin_with_the_address_that_was_set() -> None:
    assert home_of(ServeSettings(address="https://archive.example.org/")) == "https://archive.example.org"
    assert home_of(ServeSettings(host="0.0.0.0", port=99)) == "http://localhost:99"
    assert home_of(ServeSettings(host="::1")) == "http://[::1]:8080"
    assert home_of(ServeSettings(port=0)) == "", "nobody can open port 0"


@pytest.mark.asyncio
async def test_alerts_of_a_summary_go_to_their_target_as_one_notification_when_its_time_comes(
    tmp_path: Path, scripted_site: ScriptedSite, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, hook = tmp_path / "a", scripted_site.set("/hook", b"")
    pages = [scripted_site.url("/gone"), scripted_site.url("/lost")]
    told = ("--when", "unavailable:1", "--notify", hook, "--every", "30d", "--summary", "0 7 * * *")
    shell(capfd, folder, "watch", "add", *pages, *told)
    noticed = (datetime.now(UTC) + timedelta(days=2)).replace(hour=8, minute=0)
    assert await run_watches(folder, noticed) == []
    assert scripted_site.posts == []
    assert await run_watches(folder, noticed + timedelta(hours=23)) == []
    (sent,) = [json.loads(body) for _, body in scripted_site.posts]
    assert (sent["kind"], sent["title"]) == ("summary", "2 alerts")
    assert {one["url"] for one in sent["alerts"]} == set(pages)
    assert {row["state"] for row in shell(capfd, folder, "watch", "deliveries")[1]} == {"sent"}
