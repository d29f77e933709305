"""Steps that a browser takes on a page before it is kept: click, type, select, wait, scroll. Pure but for `take`.

A step is a line, most with a CSS selector: `click #more`, `type #q = brno`, `select [name=year] = 2024`, `wait 2`,
`wait .results`, `scroll footer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from letopis.errors import UsageError
from letopis.lazy import asyncio, lazy
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.fetch import devtools
    from letopis.fetch.browser_tab import BrowserTab
else:
    devtools = lazy("letopis.fetch.devtools")  # every check reads steps, and few take any

StepKind = Literal["click", "type", "select", "wait", "scroll"]
MOST_STEPS = 50
STEP_HELP = "In a browser: click, type, select, wait or scroll, such as 'click #more'; can be repeated."
_LONGEST = 2000
_LONGEST_WAIT = 60.0
_PAUSE_SECONDS = 0.1
_MOST_FAILURES = 30
"""Of scripts in a row, in a page that leads from one document to the next."""
_HOW = (
    "write 'click SELECTOR', 'type SELECTOR = TEXT', 'select SELECTOR = VALUE', 'wait SECONDS', 'wait SELECTOR' or "
    "'scroll SELECTOR'"
)
_TRY = """async (kind, selector, value) => {
  const find = (root) => {
    const hit = root.querySelector(selector);
    if (hit) return hit;
    for (const one of root.querySelectorAll("*")) {
      const inner = one.shadowRoot && find(one.shadowRoot);
      if (inner) return inner;
    }
    return null;
  };
  const tell = (...names) => names.forEach((name) => element.dispatchEvent(new Event(name, { bubbles: true })));
  const boxes = () => [...element.getClientRects()].filter((box) => box.width && box.height);
  const element = find(document);
  if (!element) return ["there is no such element"];
  if (kind === "scroll") return [element.scrollIntoView({ block: "center", behavior: "instant" }) || ""];
  if (!boxes().length || !element.checkVisibility({ visibilityProperty: true })) return ["it is not visible"];
  if (kind === "wait") return [""];
  if (element.matches(":disabled")) return ["it is disabled"];
  if (kind === "select") {
    if (!(element instanceof HTMLSelectElement)) return ["it has no options"];
    const option = [...element.options].find((one) => one.value === value || one.label === value);
    if (!option) return ["there is no such option"];
    option.selected = true;
    return [tell("input", "change") || ""];
  }
  if (kind === "type") {
    const isField = element.isContentEditable || element.matches("input, textarea");
    if (!isField || element.readOnly) return ["it takes no text"];
    element.focus();
    if (!value || /^(color|date|datetime-local|month|range|time|week)$/.test(element.type)) {
      if ("value" in element) element.value = value; else element.textContent = value;
      return [tell("input", "change") || ""];
    }
    if ("select" in element) element.select(); else getSelection().selectAllChildren(element);
    return ["", "focused"];
  }
  const shown = (box) => box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
  if (!shown(boxes()[0])) element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const before = boxes()[0];
  await new Promise((done) => setTimeout(done, 40));
  const box = boxes()[0];
  if (!before || !box || before.x !== box.x || before.y !== box.y) return ["it moves"];
  const x = (Math.max(0, box.left) + Math.min(innerWidth, box.right)) / 2;
  const y = (Math.max(0, box.top) + Math.min(innerHeight, box.bottom)) / 2;
  let top = null;
  for (let root = document; root; root = top?.shadowRoot) {
    const inner = root.elementFromPoint(x, y);
    if (!inner || inner === top) break;
    top = inner;
  }
  for (; top && top !== element; top = top.parentNode ?? top.host);
  return top ? ["", x, y] : ["something covers it"];
}"""
"""Why a step cannot be taken yet, or nothing and where to click, or whether a field waits for text."""


class PageStep(NamedTuple):
    """One step; `value` is what is typed or selected, `seconds` how long is waited where nothing is waited for."""

    kind: StepKind
    selector: str
    value: str = ""
    seconds: float = 0.0

    async def take(self, tab: BrowserTab, seconds: float) -> None:
        """Takes it as a reader would; DevtoolsError when the page has no such element in time."""
        if not self.selector:
            await asyncio.sleep(min(self.seconds, seconds))
            return
        why = "the page does not answer"
        try:
            async with asyncio.timeout(seconds):
                failures = 0
                while why:
                    try:
                        why, *found = await tab.call(_TRY, self.kind, self.selector, self.value)
                        failures = 0
                    except devtools.DevtoolsError as error:
                        failures, why = failures + 1, str(error)
                        if "SyntaxError" in why or failures > _MOST_FAILURES:
                            raise
                    await asyncio.sleep(_PAUSE_SECONDS if why else 0)
                await self._finish(tab, found)
        except TimeoutError:
            raise devtools.DevtoolsError(f"{why or 'the page does not answer'}, for {seconds:.3g} s") from None

    async def _finish(self, tab: BrowserTab, found: list[Any]) -> None:
        if self.kind == "click":
            await _click(tab, *found)
        elif found:
            await tab.session.send("Input.insertText", {"text": self.value})


async def _click(tab: BrowserTab, x: float, y: float) -> None:
    place = {"x": x, "y": y}
    pressed = place | {"button": "left", "clickCount": 1}
    await tab.session.send("Input.dispatchMouseEvent", place | {"type": "mouseMoved"})
    await tab.session.send("Input.dispatchMouseEvent", pressed | {"type": "mousePressed", "buttons": 1})
    await tab.session.send("Input.dispatchMouseEvent", pressed | {"type": "mouseReleased"})


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
        raise UsageError(f"{line[:100]!r} is not a step; {_HOW}")
    if kind in ("click", "scroll"):
        return PageStep("click" if kind == "click" else "scroll", rest)
    if kind == "wait":
        return _parse_wait(rest)
    selector, equals, value = rest.partition(" = ")
    if kind not in ("type", "select") or not equals or not selector.strip():
        raise UsageError(f"{line[:100]!r} is not a step; {_HOW}")
    return PageStep("type" if kind == "type" else "select", selector.strip(), value)


def _parse_wait(text: str) -> PageStep:
    try:
        seconds = float(text)
    except ValueError:
        return PageStep("wait", text)
    if not 0 <= seconds <= _LONGEST_WAIT:
        raise UsageError(f"a step waits {_LONGEST_WAIT:g} s at most; {_HOW}")
    return PageStep("wait", "", seconds=seconds)
