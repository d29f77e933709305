"""The check that is told right after recording is the one that the history ends with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from politeness_books import free_book
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.config import FetchSettings, Settings, StoreSettings
from letopis.fetch import private_ok
from letopis.model import Check, Outcome

START = datetime(2026, 1, 1, tzinfo=UTC)
OLD = b"<h1>Hours</h1><p>Open from nine to five on every working day.</p>"
NEW = b"<h1>Hours</h1><p>Closed for the whole of August, see you later.</p>"


class Clock:
    now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture(params=["skip", "record"])
def monitor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Monitor]:
    settings = Settings(fetch=FetchSettings(max_bytes=10_000), store=StoreSettings(same=request.param))
    with Archive(tmp_path / "a", clock=Clock(), settings=settings) as archive, Monitor(archive, uid="me") as made:
        yield made


def bare(check: Check) -> Check:
    """Without what belongs to the observer, and without volatile header fields."""
    lasting = tuple(row for row in check.headers if row[0].lower() != "date")
    return check._replace(changed_for_you=None, headers=lasting)


def test_told_and_recorded_checks_are_equal(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    url = scripted_site.url("/page")
    steps = [
        (OLD, 200, {}), (OLD, 200, {}), (NEW, 200, {"ETag": '"a"'}), (NEW, 304, {}), (b"gone", 410, {}),
        (b"x" * 20_000, 200, {}), (OLD, 200, {"Content_MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}), (NEW, 200, {}),
    ]  # fmt: skip
    seen = []
    for body, status, headers in steps:
        scripted_site.set("/page", body, status, **headers)
        told = monitor.check_multi([url], now=True)[0]
        assert bare(told) == bare(monitor.archive.history(url)[-1])
        seen.append(told.outcome)
    if monitor.archive.settings.store.same == "skip":
        assert seen[:3] == [Outcome.NEW, Outcome.UNCHANGED, Outcome.CHANGED]
    assert Outcome.TOO_LARGE in seen


def test_redirects_and_refusals_too(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    scripted_site.set("/target", OLD)
    short = scripted_site.redirect("/s", "/target")
    for _ in range(2):
        told = monitor.check_multi([short], now=True)[0]
        assert bare(told) == bare(monitor.archive.history(short)[-1])
    refused = monitor.look([short], monitor.options._replace(now=True, private_ok=False))[0]
    assert refused.outcome is Outcome.REFUSED
    assert bare(refused) == bare(monitor.archive.history(short)[-1])


def test_version_of_another_process_is_noticed(monitor: Monitor, scripted_site: ScriptedSite) -> None:
    """Between reading what is known and recording, somebody else recorded another version."""
    from letopis.fetch.client import limits_of
    from letopis.look.known import check_of_look, known_version
    from letopis.look.visitor import LookOptions, Visitor

    url = scripted_site.set("/page", OLD, validates=True, ETag='"a"')
    monitor.get(url).check()
    known = known_version(monitor.archive, url)
    client = monitor._checker._visitor._client  # type: ignore[union-attr]
    visitor = Visitor(monitor.archive, client, free_book())
    look = monitor._loop.run(visitor.look(url, known, LookOptions(limits_of(FetchSettings()))))
    assert look.response.status == 304
    monitor.archive.put(url, NEW, look.response.at - timedelta(milliseconds=1))
    done = monitor.archive.record([look])
    assert check_of_look(look, done[0], known) is None, "only the record knows which version is current now"


@pytest.mark.parametrize(
    ("rule", "origin", "allowed"),
    [
        ("cli", "cli", True), ("cli", "http", False), ("always", "http", True), ("always", "cli", True),
        ("never", "cli", False), ("never", "http", False),
    ],
)  # fmt: skip
def test_private_addresses(rule: str, origin: str, allowed: bool) -> None:
    assert private_ok(rule, origin) is allowed  # type: ignore[arg-type]


def test_checks_load_neither_numpy_nor_parsers() -> None:
    """Start-up is most of what a round of unchanged checks costs."""
    import subprocess
    import sys

    heavy = ("numpy", "selectolax", "regex", "py3langid", "rapidfuzz", "charset_normalizer", "fastapi")
    code = (
        "import sys, letopis.operations.checks, letopis.cli.verbs.watch_loop; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("status", "kind"), [(304, "protocol"), (206, "protocol"), (301, "bad-redirect"), (300, "bad-redirect")]
)
def test_an_answer_to_what_was_not_asked_is_no_page_that_stayed_the_same(
    monitor: Monitor, scripted_site: ScriptedSite, status: int, kind: str
) -> None:
    url = scripted_site.url("/page")
    scripted_site.set("/page", OLD if status == 206 else b"", status)
    for check in (monitor.check_multi([url], now=True)[0], monitor.archive.history(url)[-1]):
        assert (check.outcome, check.available, check.status) == (Outcome.UNAVAILABLE, False, status)
        assert check.failure == kind
    assert monitor.archive.versions(url) == []
