"""What visits teach about a host and a page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.config import ChangeSettings, Settings
from letopis.model import Check

START = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = [f"<p>Paragraph {n} of this page tells about the town and its people.</p>" for n in "abcdefgh"]


class Clock:
    now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def test_a_page_visited_often_does_not_become_the_frame_of_its_host(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    """A document counts once for its host: else its text were boilerplate after some visits, and could go unseen."""
    url = scripted_site.url("/page")
    with Archive(tmp_path / "a", clock=Clock()) as archive, Monitor(archive) as monitor:
        for visit in range(8):
            scripted_site.set("/page", ("".join(TEXTS) + f"<p>News of day {visit}: the mill burns.</p>").encode())
            monitor.check_multi([url], now=True)
        scripted_site.set("/page", ("".join(TEXTS[:5]) + "<p>News of day 7: the mill burns.</p>").encode())
        check = monitor.check_multi([url], now=True)[0]
    assert check.meaningful
    assert len(check.blocks) == 3


def checks_of(site: ScriptedSite, folder: Path, bodies: list[str], settings: Settings | None = None) -> list[Check]:
    """What a monitor says of a page that shows one body after the other."""
    with Archive(folder, settings=settings, clock=Clock()) as archive, Monitor(archive) as monitor:
        found = []
        for body in bodies:
            site.set("/page", body.encode())
            found += monitor.check_multi([site.url("/page")], now=True)
        return found


def test_a_headline_that_is_new_at_every_look_is_told_at_every_look(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    headlines = [
        "Flood closes the bridge", "Council buys buses", "School opens again", "Prices of bread rise again",
        "River is clean now", "Mayor leaves office", "Strike ends tonight", "Hospital gets a wing",
    ]  # fmt: skip
    bodies = [f"<h1>Town</h1><h2>{headline}</h2>{''.join(TEXTS)}" for headline in headlines]
    checks = checks_of(scripted_site, tmp_path / "a", bodies)
    assert [check.meaningful for check in checks[1:]] == [True] * 7


def test_the_rule_of_long_paragraphs_counts_known_text(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    body = "".join(
        f"<p>Paragraph {n} of this law tells about the town, its people and their duties.</p>" for n in range(20)
    )
    bodies = [body, body.replace("Paragraph 7 of", "Article 7 of"), body.replace("duties", "rights")]
    settings = Settings(change=ChangeSettings(count="paragraphs-50"))
    checks = checks_of(scripted_site, tmp_path / "a", bodies, settings)
    assert [check.meaningful for check in checks[1:]] == [False, True]
    assert checks[1].score is not None
    assert 0.04 < checks[1].score < 0.06
    strict = Settings(change=ChangeSettings(count="paragraphs-50", known=0.99))
    assert checks_of(scripted_site, tmp_path / "b", bodies[:2], strict)[1].meaningful


def test_links_alone_are_a_change_of_a_page_without_text(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    bodies = ['<a href="/one"></a>', '<a href="/one"> </a><!-- same -->', '<a href="/two"></a>']
    checks = checks_of(scripted_site, tmp_path / "a", bodies)
    assert [check.meaningful for check in checks[1:]] == [False, True]
