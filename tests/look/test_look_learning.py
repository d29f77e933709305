"""What visits teach about a host and a page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from scripted_site import ScriptedSite

from letopis import Archive, Monitor

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
