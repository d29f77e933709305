"""Which pages a crawl captures whole, and how: with a browser, after steps on them, or with their requisites."""

from __future__ import annotations

import time
from collections.abc import Callable

from letopis.archive import Archive
from letopis.archive.queues import crawl_plans
from letopis.crawl.selection import plan_scopes
from letopis.fetch.page_steps import PageStep, parse_steps
from letopis.tuples import NamedTuple
from letopis.urls.scope import Scope

_READ_AGAIN_SECONDS = 5.0


class CaptureMode(NamedTuple):
    """How a crawl looks at a page: with a browser, after steps on it, or with what it refers to."""

    browser: bool = False
    requisites: bool = False
    steps: tuple[PageStep, ...] = ()


_PLAIN = CaptureMode()


class WholePages:
    """Which pages a crawl captures whole: all of a run that was told so, else those in the scope of such a plan."""

    def __init__(
        self, archive: Archive, capture: CaptureMode, *, goes_on: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._archive = archive
        self._capture_mode = capture
        self._goes_on = goes_on
        self._clock = clock
        self._read = -_READ_AGAIN_SECONDS
        self._plans: list[tuple[CaptureMode, tuple[Scope, ...]]] = []

    def of(self, url: str) -> CaptureMode:
        """How a page is looked at."""
        if not self._goes_on or self._capture_mode != _PLAIN:
            return self._capture_mode
        fitting = (capture for capture, scopes in self._wished() if any(scope.allows(url) for scope in scopes))
        return next(fitting, _PLAIN)

    def _wished(self) -> list[tuple[CaptureMode, tuple[Scope, ...]]]:
        """Plans that want whole pages, those with a browser first; asked for again now and then."""
        if self._clock() - self._read >= _READ_AGAIN_SECONDS:
            wished = [plan for plan in crawl_plans(self._archive) if plan.browser or plan.requisites]
            wished.sort(key=lambda plan: not plan.browser)
            self._plans = [
                (
                    CaptureMode(plan.browser, plan.requisites, parse_steps(plan.steps)),
                    plan_scopes(self._archive, [plan]),
                )
                for plan in wished
            ]
            self._read = self._clock()
        return self._plans
