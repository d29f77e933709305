"""What a check that finds nothing new may cost, counted rather than timed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.catalog.database import Cursor
from letopis.model import Outcome

STATEMENTS_A_CHECK = 3.5
PAGES = 40


class Clock:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def test_unchanged_checks_take_few_statements(
    tmp_path: Path, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [scripted_site.set(f"/{n}", f"<p>Page {n} of many.</p>".encode()) for n in range(PAGES)]
    asked: list[str] = []
    for name in ("run", "one", "all", "run_many"):
        original = getattr(Cursor, name)

        def counted(self: Cursor, statement: str, *rest: object, original: object = original) -> object:
            asked.append(statement)
            return original(self, statement, *rest)  # type: ignore[operator]

        monkeypatch.setattr(Cursor, name, counted)
    with Archive(tmp_path / "a", clock=Clock()) as archive, Monitor(archive) as monitor:
        monitor.check_multi(urls, now=True)
        asked.clear()
        checks = monitor.check_multi(urls, now=True)
    assert {check.outcome for check in checks} == {Outcome.UNCHANGED}
    assert len(asked) / PAGES <= STATEMENTS_A_CHECK
