"""What a check that finds nothing new may cost, and a page that changes a little, counted rather than timed."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.catalog.database import Cursor
from letopis.model import Outcome

STATEMENTS_A_CHECK = 3.5
PAGES = 40
CATALOGUE_BYTES_A_CHANGE = 450
"""Of a page that changes one sentence, before `compact`; 429 when this was set."""
WORDS = ["archive", "version", "change", "page", "letter", "river", "window", "paper", "winter", "answer", "number"]


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


def test_a_slightly_changed_page_takes_few_bytes_of_the_catalogue(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    changes = 8

    def turn(revision: int) -> list[str]:
        return [_set_page(scripted_site, number, revision) for number in range(PAGES)]

    with Archive(tmp_path / "a", clock=Clock()) as archive, Monitor(archive) as monitor:
        monitor.check_multi(turn(0), now=True)
        before = _catalogue_bytes(archive)
        for revision in range(1, changes + 1):
            checks = monitor.check_multi(turn(revision), now=True)
            assert all(check.meaningful and len(check.blocks) == 2 and check.reason for check in checks)
        assert (_catalogue_bytes(archive) - before) / (changes * PAGES) <= CATALOGUE_BYTES_A_CHANGE


def _set_page(site: ScriptedSite, number: int, revision: int) -> str:
    """A page of ten paragraphs, one of which is new in each revision."""
    lasting, fresh = Random(number), Random(f"{number} {revision}")
    texts = [f"<p>{' '.join(lasting.choice(WORDS) for _ in range(20))} {line}.</p>" for line in range(10)]
    texts[5] = f"<p>{' '.join(fresh.choice(WORDS) for _ in range(12))}.</p>"
    body = "".join(texts).encode()
    return site.set(f"/{number}", body, ETag=f'"{hashlib.md5(body).hexdigest()}"')


def _catalogue_bytes(archive: Archive) -> int:
    ask = archive.catalog.database.count
    return ask("PRAGMA page_count") * ask("PRAGMA page_size")
