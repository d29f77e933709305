"""What servers sent stays beside the versions that a browser made of it, through all upkeep."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.config import Settings, StoreSettings
from letopis.model import Observation, Outcome, Response

URL = "http://example.org/"
START = datetime(2026, 1, 1, tzinfo=UTC)
SHELL = b"<!doctype html><div id=app></div><script src=app.js></script>" + b"<!-- of the server -->" * 20


def look(day: int, shown: bytes, sent: bytes = SHELL) -> Observation:
    answer = Response(URL, URL, 200, (("Content-Type", "text/html"), ("ETag", f'"{day}"')), sent, START)
    answer = answer._replace(at=START + timedelta(days=day))
    rendered = answer._replace(headers=(("Content-Type", "text/html; charset=utf-8"),), body=shown, as_sent=answer)
    return Observation(rendered, Outcome.CHANGED)


def shown(day: int) -> bytes:
    return f"<!doctype html><div id=app>The price is {day} crowns.</div>".encode() * 30


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a", clock=lambda: START + timedelta(days=30)) as opened:
        opened.record([look(day, shown(day)) for day in range(3)])
        yield opened


def sent_of(archive: Archive) -> list[bytes]:
    versions = [archive.get(URL, version=row.number) for row in archive.versions(URL)]
    return [archive.as_sent(version).body for version in versions]


def test_versions_are_what_was_shown_and_the_answer_can_be_had(archive: Archive) -> None:
    newest = archive.get(URL)
    sent = archive.as_sent(newest)
    assert (newest.body, newest.content_type) == (shown(2), "text/html; charset=utf-8")
    assert (sent.body, sent.content_type, sent.number) == (SHELL, "text/html", 2)
    assert dict(sent.headers)["ETag"] == '"2"'
    assert sent.raw_bytes == len(SHELL)


def test_an_answer_that_stays_is_stored_once(archive: Archive) -> None:
    assert archive.stats().contents == 4
    assert sent_of(archive) == [SHELL] * 3


def test_a_version_that_nobody_rendered_is_what_was_sent(archive: Archive) -> None:
    archive.put("http://example.org/other", b"plain")
    plain = archive.get("http://example.org/other")
    assert archive.as_sent(plain) == plain


def test_history_and_checks_know_nothing_of_it(archive: Archive) -> None:
    assert [check.outcome for check in archive.history(URL)] == [Outcome.NEW, Outcome.CHANGED, Outcome.CHANGED]
    assert archive.stats().checks == 3


def test_what_was_sent_outlives_compaction(archive: Archive) -> None:
    archive.record([look(4, shown(4), SHELL + b"new")])
    before = sent_of(archive)
    archive.compact()
    assert sent_of(archive) == before
    assert list(archive.verify()) == []


@pytest.mark.files
def test_what_retention_drops_takes_its_answer_along(tmp_path: Path) -> None:
    settings = Settings(store=StoreSettings(keep_versions=1))
    with Archive(tmp_path / "a", settings=settings, clock=lambda: START + timedelta(days=30)) as archive:
        archive.record([look(day, shown(day), SHELL + bytes([65 + day])) for day in range(3)])
        assert archive.stats().contents == 6
        archive.compact()
        assert archive.stats().contents == 2
        assert sent_of(archive) == [SHELL + b"C"]


@pytest.mark.files
@pytest.mark.parametrize("compacted", [False, True])
def test_a_catalogue_built_anew_has_it_again(tmp_path: Path, compacted: bool) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.record([look(day, shown(day)) for day in range(3)])
        if compacted:
            archive.compact()
        settings = archive.settings
    file = next((tmp_path / "a").glob("catalog*"))
    file.write_bytes(b"not a catalogue" * 500)
    report = Archive.repair(settings)
    assert report.rebuilt
    with Archive.open(settings) as archive:
        assert [archive.get(URL, version=number).body for number in range(3)] == [shown(day) for day in range(3)]
        assert sent_of(archive) == [SHELL] * 3
        assert archive.stats().checks == 3
