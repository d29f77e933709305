"""The five sites of the story as a web that can be asked: each day of their year, under their own names."""

from __future__ import annotations

from datetime import datetime

from letopis.model import from_millis
from letopis_demo.resources import DemoResponse, TimedResponse, html_response, redirect_response, sentence_response
from letopis_demo.story_sites import DAYS, SITES, StoryPage, story_pages
from letopis_demo.world import START, World


class StoryWorld(World):
    """The sites on the day that the clock of the server shows; the year ends with a day that does not pass."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed, len(SITES), authorities=tuple(SITES))

    def held(self, host: int, address: str, at: int) -> TimedResponse:
        """What a site answers on that day, and until when."""
        day = day_of(from_millis(at))
        site = self.authorities[host]
        shown = {page.url: page for page in story_pages(site, self.shape.seed, day)}
        until = self.shape.start + (day + 1) * 86_400_000
        return TimedResponse(_answer(shown.get(f"http://{site}{address}")), until)


def day_of(moment: datetime) -> int:
    """The day of the year of the story, from 0."""
    return min(max(0, (moment - START).days), DAYS - 1)


def _answer(page: StoryPage | None) -> DemoResponse:
    if page is None:
        return sentence_response(404, "There is no such page.")
    if page.location:
        return redirect_response(page.status, page.location)
    return html_response(page.status, page.html.encode(), "utf-8")
