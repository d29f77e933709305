"""The daemon: its services live and end together, its log is one event a line, its command line starts and stops it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.crawl import CrawlOptions, enqueue_seeds
from letopis.daemon import Daemon, Service, log_event, open_event_log
from letopis.errors import NotReady


@pytest.mark.parametrize("as_json", [True, False])
def test_an_event_is_one_line(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    log = open_event_log(1, as_json=as_json)
    log_event(log, "crawl", fetched=3, host="příklad.example")
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    if as_json:
        row = json.loads(line)
        assert row.pop("timestamp").endswith("Z")
        assert row == {"event": "crawl", "level": "info", "fetched": 3, "host": "příklad.example"}
    else:
        assert line.rstrip().endswith("[info] crawl fetched=3 host=příklad.example")


def test_events_are_shown_to_whoever_asks_for_more(capsys: pytest.CaptureFixture[str]) -> None:
    log = open_event_log(0, as_json=True)
    log_event(log, "crawl", fetched=3)
    assert capsys.readouterr().err == ""
    try:
        raise NotReady("no room")
    except NotReady:
        log.exception("stopped")
    row = json.loads(capsys.readouterr().err)
    assert (row["event"], row["level"], "no room" in row["exception"]) == ("stopped", "error", True)


def test_when_one_service_fails_all_end_and_its_error_is_told(tmp_path: Path) -> None:
    ended = []

    async def run() -> None:
        stopped = asyncio.Event()

        async def fails() -> None:
            await asyncio.sleep(0.1)
            raise NotReady("the disk is full")

        async def lives() -> None:
            await stopped.wait()
            ended.append("lives")

        services = [Service(fails, lambda: None), Service(lives, stopped.set)]
        with Archive(tmp_path / "archive") as archive:
            await Daemon(archive, CrawlOptions(), logging.getLogger("test"), services).run()

    with pytest.raises(NotReady, match="the disk is full"):
        asyncio.run(asyncio.wait_for(run(), 300))
    assert ended == ["lives"]


def test_a_daemon_outlasts_others_that_keep_it_from_writing(
    tmp_path: Path, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("letopis.archive.write_gates.WAIT_SECONDS", 0.1)
    monkeypatch.setattr("letopis.look.visitor._LONGEST_WRITE", 0.1)
    page = scripted_site.set("/", b"<p>One page.</p>")

    async def run() -> None:
        with Archive(tmp_path / "a") as archive, Archive(tmp_path / "a") as other, ExitStack() as held:

            async def release_then_stop() -> None:
                while not caplog.messages:
                    await asyncio.sleep(0.02)
                held.close()
                while not archive.stats().versions:
                    await asyncio.sleep(0.02)
                os.kill(os.getpid(), signal.SIGTERM)

            enqueue_seeds(archive, CrawlOptions((page,)))
            held.enter_context(other.hold_writer())
            services = [Service(release_then_stop, lambda: None)]
            await Daemon(archive, CrawlOptions(), logging.getLogger("test"), services).run()

    asyncio.run(asyncio.wait_for(run(), 300))
    assert "another process" in caplog.messages[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_tells_its_address_and_ends_when_it_is_told_to(tmp_path: Path, number: signal.Signals) -> None:
    words = [
        sys.executable,
        "-m",
        "letopis.cli",
        "--archive",
        str(tmp_path / "a"),
        "run",
        "--port",
        "0",
        "-v",
        "--json",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline()
    assert address.startswith("listening on http://127.0.0.1:")
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0
    events = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert events[0]["event"] == "ready"
    assert events[0]["address"] in address
    assert "make the first owner at" in errors
