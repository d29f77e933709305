"""Steps that a browser takes on a page before it is kept: click, type, select, wait, scroll. Pure but for `take`.

A step is a line: `click #more`, `type #q = brno`, `select [name=year] = 2024`, `wait 2`, `wait .results`,
`scroll footer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from letopis.errors import UsageError
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from playwright.async_api import Page

StepKind = Literal["click", "type", "select", "wait", "scroll"]
MOST_STEPS = 50
STEP_HELP = "In a browser: click, type, select, wait or scroll, such as 'click #more'; can be repeated."
_LONGEST = 2000
_LONGEST_WAIT = 60.0
_HOW = (
    "write 'click SELECTOR', 'type SELECTOR = TEXT', 'select SELECTOR = VALUE', 'wait SECONDS', 'wait SELECTOR' or "
    "'scroll SELECTOR'"
)


class PageStep(NamedTuple):
    """One step; `value` is what is typed or selected, `seconds` how long is waited where nothing is waited for."""

    kind: StepKind
    selector: str
    value: str = ""
    seconds: float = 0.0

    async def take(self, page: Page, timeout: float) -> None:
        """Takes it, within milliseconds; playwright's Error when the page has no such element in time."""
        if self.kind == "click":
            await page.click(self.selector, timeout=timeout)
        elif self.kind == "type":
            await page.fill(self.selector, self.value, timeout=timeout)
        elif self.kind == "select":
            await page.select_option(self.selector, self.value, timeout=timeout)
        elif self.kind == "scroll":
            await page.locator(self.selector).first.scroll_into_view_if_needed(timeout=timeout)
        elif self.selector:
            await page.wait_for_selector(self.selector, timeout=timeout)
        else:
            await page.wait_for_timeout(min(1000 * self.seconds, timeout))


def parse_steps(lines: Iterable[str]) -> tuple[PageStep, ...]:
    """The steps that lines mean; UsageError for what is none, or too many."""
    steps = tuple(map(_parse_step, lines))
    if len(steps) > MOST_STEPS:
        raise UsageError(f"a page takes {MOST_STEPS} steps at most; leave some out")
    return steps


def _parse_step(line: str) -> PageStep:
    kind, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    if not rest or len(rest) > _LONGEST:
        raise UsageError(f"{line[:100]!r} is no step; {_HOW}")
    if kind in ("click", "scroll"):
        return PageStep("click" if kind == "click" else "scroll", rest)
    if kind == "wait":
        return _parse_wait(rest)
    selector, equals, value = rest.partition(" = ")
    if kind not in ("type", "select") or not equals or not selector.strip():
        raise UsageError(f"{line[:100]!r} is no step; {_HOW}")
    return PageStep("type" if kind == "type" else "select", selector.strip(), value)


def _parse_wait(text: str) -> PageStep:
    try:
        seconds = float(text)
    except ValueError:
        return PageStep("wait", text)
    if not 0 <= seconds <= _LONGEST_WAIT:
        raise UsageError(f"a step waits {_LONGEST_WAIT:g} s at most; {_HOW}")
    return PageStep("wait", "", seconds=seconds)
