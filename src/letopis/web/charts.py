"""Charts as geometry that templates draw without scripts: bars, availability, calendars, changes by day and hour."""

from __future__ import annotations

import calendar
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from urllib.parse import urlsplit

from letopis.archive.activity import DAY, ChangeRow, HourRow
from letopis.model import Check, Outcome, from_millis
from letopis.tuples import NamedTuple
from letopis.web.pages import iso_day

BAR_HEIGHT = 100.0
_GAP = 0.18
_TOWERS, _FEWEST_DAYS = 7.5, 5
"""Bars tower that are so many times as high as the median, where so many of them say what is usual."""
_MOST_POINTS = 600
"""Of a line: a drawing has no more of them to show."""


class Bar(NamedTuple):
    """A column of two stacked parts in a drawing of 1000 by 100; a `rooted` one is as high as its square root."""

    label: str
    lower: int
    upper: int
    rooted: bool
    x: float
    width: float
    lower_y: float
    lower_height: float
    upper_y: float
    upper_height: float

    @property
    def total(self) -> int:
        """Both parts together."""
        return self.lower + self.upper


def growth_line(days: Sequence[tuple[str, int]]) -> str:
    """The points of a line that rises, day by day, by what each of them brought, up to all of it."""
    if not days:
        return ""
    first = date.fromisoformat(days[0][0]).toordinal()
    span = max(date.fromisoformat(days[-1][0]).toordinal() - first, 1)
    total, sum_so_far, points = sum(size for _, size in days) or 1, 0, ["0,100"]
    for day, size in days:
        x = 1000 * (date.fromisoformat(day).toordinal() - first) / span
        points.append(f"{x:.1f},{100 - 100 * sum_so_far / total:.1f}")
        sum_so_far += size
        points.append(f"{x:.1f},{100 - 100 * sum_so_far / total:.1f}")
    step = max(1, len(points) // _MOST_POINTS)
    return " ".join([*points[::step], "1000,0"])


def bars(rows: Sequence[tuple[str, int, int]], *, rooted: bool = False) -> list[Bar]:
    """Bars for rows of label, lower part, upper part; the highest one fills the drawing.

    With `rooted`, where one towers over the others and would flatten them, all are as high as their square roots.
    """
    totals = sorted(lower + upper for _, lower, upper in rows if lower + upper)
    most = totals[-1] if totals else 1
    power = 0.5 if rooted and len(totals) >= _FEWEST_DAYS and most > _TOWERS * totals[len(totals) // 2] else 1.0
    step = 1000.0 / max(len(rows), 1)
    return [_bar(label, lower, upper, at * step, step, most, power) for at, (label, lower, upper) in enumerate(rows)]


def _bar(label: str, lower: int, upper: int, start: float, step: float, most: int, power: float) -> Bar:
    total = lower + upper
    height = BAR_HEIGHT * (total / most) ** power
    low, high = (height * part / (total or 1) for part in (lower, upper))
    x, width = start + step * _GAP / 2, step * (1 - _GAP)
    places = (x, width, BAR_HEIGHT - low, low, BAR_HEIGHT - low - high, high)
    return Bar(label, lower, upper, power < 1, *(round(place, 2) for place in places))


STRIP_WIDTH = 1000.0
_LEAST_WIDTH = 1.5
_MOST_SPANS = 400


class AvailabilitySpan(NamedTuple):
    """A stretch of time in one state: `up`, `down` or `refused`."""

    state: str
    start: datetime
    end: datetime
    checks: int
    x: float
    width: float


class VersionTick(NamedTuple):
    """A version on the strip."""

    number: int
    time: datetime
    x: float


class AvailabilityStrip(NamedTuple):
    """Everything the drawing needs. `up_share` is the share of the time known in which the page was available."""

    spans: list[AvailabilitySpan]
    ticks: list[VersionTick]
    start: datetime
    end: datetime
    up_share: float


def availability_strip(checks: Sequence[Check], now: datetime) -> AvailabilityStrip | None:
    """The strip of a history, oldest check first; each check holds until the next one. None without any."""
    if not checks:
        return None
    start, end = checks[0].checked_at, max(now, checks[-1].checked_at)
    whole = max((end - start).total_seconds(), 1.0)

    def place(moment: datetime) -> float:
        return round(STRIP_WIDTH * (moment - start).total_seconds() / whole, 2)

    runs = list(_runs(checks, end))
    spans = [
        AvailabilitySpan(state, a, b, n, place(a), max(_LEAST_WIDTH, place(b) - place(a))) for state, a, b, n in runs
    ]
    up = sum((b - a).total_seconds() for state, a, b, _ in runs if state == "up")
    brought = (check for check in checks if check.outcome in (Outcome.NEW, Outcome.CHANGED))
    ticks = [VersionTick(c.version, c.checked_at, place(c.checked_at)) for c in brought if c.version is not None]
    # Of the time in which nobody was allowed to ask nothing is known.
    total = sum((b - a).total_seconds() for state, a, b, _ in runs if state != "refused")
    share = up / total if total else float(runs[-1][0] == "up")
    return AvailabilityStrip(_bounded(spans), ticks[-_MOST_SPANS:], start, end, share)


def _runs(checks: Sequence[Check], end: datetime) -> Iterable[tuple[str, datetime, datetime, int]]:
    state, start, count = _availability(checks[0]), checks[0].checked_at, 0
    for check in checks:
        if _availability(check) != state:
            yield state, start, check.checked_at, count
            state, start, count = _availability(check), check.checked_at, 0
        count += 1
    yield state, start, end, count


def _bounded(spans: list[AvailabilitySpan]) -> list[AvailabilitySpan]:
    """The longest spans in their order: thousands of slivers would only blur."""
    if len(spans) <= _MOST_SPANS:
        return spans
    least = sorted((span.width for span in spans), reverse=True)[_MOST_SPANS]
    return [span for span in spans if span.width > least or span.state != "up"][: 2 * _MOST_SPANS]


def _availability(check: Check) -> str:
    if check.outcome is Outcome.REFUSED:
        return "refused"
    return "up" if check.available else "down"


_ERROR = 400


class CalendarCapture(NamedTuple):
    """A capture as a list shows it: the time of day, where it is shown, its status, whether it brought a version."""

    time: str
    address: str
    status: int
    is_version: bool = False


CalendarDays = list[tuple[str, list[CalendarCapture]]]
"""Days (`2026-03-01`) with their captures."""


class CalendarDay(NamedTuple):
    """A day of a sheet; those without captures lead nowhere. `kind` is version, same, or error for errors alone."""

    day: int
    name: str
    captures: int
    kind: str
    address: str


class CalendarMonth(NamedTuple):
    """A month (`2026-03`) with all its days; `lead` days of the week, from Monday, lie before the first."""

    name: str
    lead: int
    squares: list[CalendarDay]


def calendar_months(days: CalendarDays) -> list[CalendarMonth]:
    """The months from the first to the last with captures."""
    found = dict(days)
    first, last = (int(days[at][0][5:7]) for at in (0, -1))
    year = days[0][0][:4]
    return [_month(year, month, found) for month in range(first, last + 1)]


def _month(year: str, month: int, found: dict[str, list[CalendarCapture]]) -> CalendarMonth:
    lead, length = calendar.monthrange(int(year), month)
    name = f"{year}-{month:02}"
    return CalendarMonth(name, lead, [_square(f"{name}-{day:02}", day, found) for day in range(1, length + 1)])


def _square(name: str, day: int, found: dict[str, list[CalendarCapture]]) -> CalendarDay:
    captures = found.get(name, [])
    kind = "version" if any(one.is_version for one in captures) else "same"
    if captures and all(one.status >= _ERROR for one in captures):
        kind = "error"
    first = next((one for one in captures if one.is_version), captures[0] if captures else None)
    return CalendarDay(day, name, len(captures), kind, first.address if first else "")


MOST_WARM = 30
HEAT_STEPS = 4
"""Shades besides the empty one."""
_CALM = 3
"""Changes a day that earn the darkest shade at least."""


class HeatCell(NamedTuple):
    """Changes of a page on a day, which day that is of those that are shown, and the shade."""

    at: int
    day: str
    changes: int
    shade: int


class HeatRow(NamedTuple):
    """A page with its days."""

    url: str
    total: int
    cells: list[HeatCell]


class HeatMap(NamedTuple):
    """The whole map. `pages` counts all that changed, shown or not."""

    rows: list[HeatRow]
    days: list[str]
    pages: int
    changes: int


def heat_map(changes: Iterable[ChangeRow], first: int, last: int) -> HeatMap:
    """The pages with the most changes between two days since 1970, the liveliest first."""
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for row in changes:
        counts[row.url][row.day] = row.changes
    totals = {url: sum(days.values()) for url, days in counts.items()}
    chosen = sorted(totals, key=lambda url: (-totals[url], url))[:MOST_WARM]
    most = max([_CALM, *(count for url in chosen for count in counts[url].values())])
    names = [iso_day(from_millis(number * DAY)) for number in range(first, last + 1)]
    rows = [
        HeatRow(
            url, totals[url], [_cell(at, name, counts[url].get(first + at, 0), most) for at, name in enumerate(names)]
        )
        for url in chosen
    ]
    return HeatMap(rows, names, len(totals), sum(totals.values()))


def _cell(at: int, name: str, count: int, most: int) -> HeatCell:
    return HeatCell(at, name, count, -(-count * HEAT_STEPS // most) if count else 0)


HOURS = 24
MOST_SECTIONS = 16
TOP_SECTION = "/"
"""The section of the pages that lie in no folder."""


class SiteSection(NamedTuple):
    """A section and its changes in each hour of the day."""

    name: str
    total: int
    hours: list[int]


class ChangesByHour(NamedTuple):
    """The liveliest sections first; `sections` and `changes` count all, shown or not."""

    rows: list[SiteSection]
    sections: int
    changes: int


def section_of(url: str) -> str:
    """`/news/` of a page in that folder or of the folder itself."""
    first, slash, _ = urlsplit(url).path.lstrip("/").partition("/")
    return f"/{first}/" if first and slash else TOP_SECTION


def changes_by_hour(rows: Iterable[HourRow]) -> ChangesByHour:
    """Changes by section and hour."""
    counts: Counter[tuple[str, int]] = Counter()
    totals: Counter[str] = Counter()
    for row in rows:
        name = section_of(row.url)
        counts[name, row.hour] += row.changes
        totals[name] += row.changes
    chosen = sorted(totals, key=lambda name: (-totals[name], name))[:MOST_SECTIONS]
    shown = [SiteSection(name, totals[name], [counts[name, hour] for hour in range(HOURS)]) for name in chosen]
    return ChangesByHour(shown, len(totals), totals.total())


class CurveStep(NamedTuple):
    """A value as long as it held, in a drawing of 1000 by 100; `change` is the share by which it is another one."""

    time: datetime
    text: str
    value: float
    change: float | None
    x: float
    width: float
    y: float


class ValueCurve(NamedTuple):
    """A value over time: its steps, their outlines, which break where there was none, and what stands out."""

    steps: list[CurveStep]
    lines: list[str]
    lowest: CurveStep
    highest: CurveStep
    end: datetime

    @property
    def last(self) -> CurveStep:
        """The newest value."""
        return self.steps[-1]

    @property
    def since_first(self) -> float | None:
        """The share by which the newest value differs from the first one."""
        first = self.steps[0].value
        return self.last.value / first - 1 if first else None


def value_curve(seen: Sequence[tuple[datetime, str, float | None]], now: datetime) -> ValueCurve | None:
    """The curve of texts with numbers, oldest first, each of which held until the next; None without any number."""
    known = [value for _, _, value in seen if value is not None]
    if not known:
        return None
    start, end = seen[0][0], max(now, seen[-1][0])
    whole, low, high = max((end - start).total_seconds(), 1.0), min(known), max(known)
    steps: list[CurveStep] = []
    lines: list[list[str]] = [[]]
    for (time, text, value), until in zip(seen, [one[0] for one in seen[1:]] + [end], strict=True):
        if value is None:
            lines.append([])
            continue
        x, right = (round(1000 * (moment - start).total_seconds() / whole, 1) for moment in (time, until))
        y = round(100 * (high - value) / (high - low), 1) if high > low else 50.0
        before = steps[-1].value if steps else 0.0
        steps.append(CurveStep(time, text, value, value / before - 1 if before else None, x, round(right - x, 1), y))
        lines[-1] += [f"{x},{y}", f"{right},{y}"]
    lowest, highest = min(steps, key=lambda one: one.value), max(steps, key=lambda one: one.value)
    return ValueCurve(steps, [" ".join(line) for line in lines if line], lowest, highest, end)
