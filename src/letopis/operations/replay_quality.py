"""How complete captured pages are: each is replayed in a browser, missing resources are counted, its picture is
compared.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from letopis.archive import WRITE, Archive
from letopis.archive.index_facts import require_site
from letopis.archive.sets import CaptureSet, SetQuality
from letopis.config import changed_settings
from letopis.errors import NotFound, Unavailable
from letopis.fetch.browser import find_browser, require_browser
from letopis.lazy import lazy
from letopis.model import to_millis
from letopis.model.times import timestamp
from letopis.operations.context import Context
from letopis.operations.operation import Rows, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

if TYPE_CHECKING:
    from letopis.fetch import chromium, devtools, replayed_page
else:
    chromium, replayed_page = lazy("letopis.fetch.chromium"), lazy("letopis.fetch.replayed_page")
    devtools = lazy("letopis.fetch.devtools")

_SERVER = (sys.executable, "-m", "letopis.replay.loopback")
_MOST_MISSING = 200
_START_SECONDS = 60


class QualityQuery(Parameters):
    """Which captures to replay."""

    place: str = parameter("Address of a page, or a host: the newest capture of each of its pages.", argument=True)
    at: datetime | None = parameter("Of a page the capture nearest to this time; default: the newest.", default=None)
    limit: int = parameter("Maximum number of pages of a host.", default=100, at_least=1, at_most=10_000)


class PageQuality(NamedTuple):
    """The result of replaying one capture. `likeness` is null if there is no picture to compare with."""

    url: str
    time: datetime
    requests: int
    answered: int
    completeness: float
    likeness: float | None
    missing: list[str]


@operation(
    "qa", right=WRITE, verb="qa", route=("POST", "/qa"), step="qa", listed="pages", element="page",
    columns=("url", "time", "requests", "answered", "completeness", "likeness"),
    about={"place": str, "completeness": float, "likeness": float | None}, errors=(404, 503), creates=False,
    examples=("letopis qa https://example.org/", "letopis qa example.org --limit 20 --json"),
)  # fmt: skip
def qa(context: Context, asked: QualityQuery) -> Rows[PageQuality]:
    """Replay captured pages in a browser: the share of their requests that the archive answers, and their likeness.

    Likeness is the share of pixels that look as in the picture that was taken at the capture. Both are kept, and shown
    with the capture. Only pages that were captured whole have something to be compared with.
    """
    found = _captures(context, asked)
    require_browser(context.settings.fetch.chromium)
    context.archive.require_writable()
    rows = []
    with replay_of(context.archive) as base, asyncio.Runner() as runner:
        player = _Player(context.archive, base)
        try:
            for number, one in enumerate(found):
                context.raise_if_cancelled()
                context.progress.show(number, "pages", len(found))
                quality = runner.run(player.quality(one))
                context.archive.sets.keep_quality(one, quality)
                rows.append(_row(one, quality))
        finally:
            runner.run(player.close())
    return Rows(rows, {"place": asked.place, **_together(rows)})


def _captures(context: Context, asked: QualityQuery) -> list[CaptureSet]:
    archive = context.archive
    if "/" not in asked.place.removesuffix("/").removeprefix("//"):
        found = archive.sets.on_host(require_site(archive, asked.place))[: asked.limit]
    else:
        url = parse_user_url(asked.place)
        nearest = archive.sets.nearest(url, context.moment(asked.at))
        archive.answers.resource(url)
        found = [nearest] if nearest is not None else []
    if not found:
        raise NotFound(f"{asked.place} was never captured whole; use 'letopis check --browser {asked.place}'")
    return found


@contextmanager
def replay_of(archive: Archive) -> Iterator[str]:
    """The origin under which archived sites are served, by a process of its own, for whoever knows it."""
    settings = archive.settings
    settings = replace(settings, archive=replace(settings.archive, path=str(archive.folder)))
    with subprocess.Popen(_SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(changed_settings(settings)) + "\n")
        process.stdin.flush()
        try:
            base = process.stdout.readline().strip()
            if not base:
                raise Unavailable("the replay did not start; see its message above")
            yield base
        finally:
            process.stdin.close()
            try:
                process.wait(_START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


class _Player:
    """One browser for all pages, started for the first."""

    def __init__(self, archive: Archive, base: str) -> None:
        self._archive = archive
        self._base = base
        self._chromium: chromium.Chromium | None = None

    async def quality(self, found: CaptureSet) -> SetQuality:
        """Replays one capture, once more when the browser ended under it; Unavailable names what ends it again."""
        try:
            return await self._replayed(found)
        except devtools.DevtoolsError:
            await self.close()
        try:
            return await self._replayed(found)
        except devtools.DevtoolsError as error:
            raise Unavailable(f"{found.url} could not be replayed: {error}") from None

    async def _replayed(self, found: CaptureSet) -> SetQuality:
        settings = self._archive.settings
        if self._chromium is None:
            host = urlsplit(self._base).hostname or ""
            self._chromium = await chromium.Chromium.start(find_browser(settings.fetch.chromium), host)
        captured = self._archive.sets.screenshot(found) if found.has_screenshot else b""
        visitor = replayed_page.ReplayVisitor(self._chromium, self._base, settings.capture)
        shown = await visitor.visit(f"{self._base}/web/{timestamp(to_millis(found.time))}/{found.url}", captured)
        if not await self._chromium.answers():
            raise devtools.DevtoolsError("the browser ended")  # what it showed of the page is not all of it
        requests, missing = shown.answered + len(shown.missing), shown.missing[:_MOST_MISSING]
        return SetQuality(self._archive.clock(), requests, shown.answered, shown.likeness, missing)

    async def close(self) -> None:
        """Ends the browser."""
        running, self._chromium = self._chromium, None
        if running is not None:
            await running.close()


def _row(found: CaptureSet, quality: SetQuality) -> PageQuality:
    likeness = None if quality.likeness is None else round(quality.likeness, 4)
    counts = (quality.requests, quality.answered, round(quality.completeness, 4))
    return PageQuality(found.url, found.time, *counts, likeness, list(quality.missing))


def _together(rows: Sequence[PageQuality]) -> dict[str, float | None]:
    requests, pictures = sum(row.requests for row in rows), [row.likeness for row in rows if row.likeness is not None]
    answered = sum(row.answered for row in rows)
    return {
        "completeness": round(answered / requests, 4) if requests else 1.0,
        "likeness": round(sum(pictures) / len(pictures), 4) if pictures else None,
    }
