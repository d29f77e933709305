"""Settings that owners of an archive may change while it runs, by the web interface or `letopis settings set`.

Only what bounds and times work, and what notifications say: nothing that is secret, names a file, a program or an
address to listen on, opens private networks, drops what was recorded, or weakens how people sign in. Whoever runs the
machine has the last word: what stands in the settings file, the environment or the command line is not changed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from letopis.config.loader import fitted_value, format_size, unknown_setting
from letopis.config.settings import DAY, Setting, Settings, SettingSource, find_setting, setting_value
from letopis.errors import SettingError, UsageError

_GiB = 2**30
_YEAR = 366 * DAY
EDITABLE: dict[str, tuple[float, float] | None] = {
    "fetch.max_bytes": (1024, _GiB),
    "fetch.max_hops": (0, 100),
    "fetch.connect": (0.1, 300),
    "fetch.first_byte": (0.1, 600),
    "fetch.total": (1, 3600),
    "fetch.retries": (0, 10),
    "capture.take": None,
    "capture.resources": (0, 10_000),
    "capture.bytes": (1024, 4 * _GiB),
    "capture.media_bytes": (1024, _GiB),
    "capture.load": (1, 600),
    "capture.quiet": (0, 120),
    "capture.scroll": None,
    "capture.screenshot": None,
    "capture.screenshot_height": (100, 20_000),
    "capture.screenshot_scale": (0.1, 1),
    "capture.text": None,
    "capture.reuse": (0, 7 * DAY),
    "monitor.min_interval": (0, DAY),
    "monitor.every": (10, _YEAR),
    "monitor.concurrency": (1, 256),
    "monitor.delay": (0, 3600),
    "monitor.title": None,
    "monitor.message": None,
    "change.count": None,
    "change.threshold": (0, 1),
    "change.known": (0, 1),
    "crawl.contact": None,
    "crawl.delay": (0.1, 3600),
    "crawl.delay_factor": (0, 1000),
    "crawl.order": None,
    "crawl.new_share": (0, 1),
    "crawl.max_per_host": (0, 10**9),
    "crawl.max_depth": (0, 10_000),
    "crawl.max_hosts": (0, 10**9),
    "crawl.concurrency": (1, 1024),
    "crawl.bandwidth": (0, 100 * _GiB),
    "crawl.sitemaps": None,
    "crawl.trap_depth": (1, 1000),
    "crawl.trap_pages": (1, 10**9),
    "schedule.policy": None,
    "schedule.interval": (60, 10 * _YEAR),
    "schedule.min": (60, 10 * _YEAR),
    "schedule.max": (60, 10 * _YEAR),
    "schedule.increase": (0, 10),
    "schedule.decrease": (0, 1),
    "schedule.budget": (0, 10_000),
    "schedule.objective": None,
    "search.learn": None,
    "serve.statistics": None,
    "serve.checks_a_day": (0, 10**9),
    "serve.watches_a_day": (0, 10**9),
    "jobs.queued": (1, 10**6),
    "jobs.run_time": (1, 30 * DAY),
    "jobs.keep_for": (0, 100 * _YEAR),
}
"""Their names, with the least and the most that a number may be."""
LONGEST_VALUE = 2000
SOURCE: SettingSource = "archive"


def edited_value(settings: Settings, name: str, text: str) -> Any:
    """What a text means for a setting; UsageError when it cannot be changed here or does not fit."""
    row = _editable(name)
    if not is_editable(settings, row):
        raise UsageError(f"{name} is set in the {settings.source_of(name)}; change it there")
    if len(text) > LONGEST_VALUE or any(ord(letter) < 32 and letter not in "\n\r\t" for letter in text):
        raise UsageError(f"{name}: at most {LONGEST_VALUE} characters are taken, none of them control characters")
    bounds = EDITABLE[name]
    try:
        value = fitted_value(row, text.replace("\r\n", "\n").strip())
    except SettingError as error:
        # Of a number people want to hear these bounds, not those that hold for settings of the machine.
        raise UsageError(_outside(row, bounds) if bounds and _is_number(text) else str(error)) from None
    if bounds and not bounds[0] <= value <= bounds[1]:
        raise UsageError(_outside(row, bounds))
    _refuse_turned(_changed(settings, {name: value}))
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _outside(row: Setting, bounds: tuple[float, float]) -> str:
    least, most = (format_size(int(b)) if row.unit == "bytes" else f"{b:g} {row.unit}".rstrip() for b in bounds)
    return f"{row.name} must be between {least} and {most}"


def is_editable(settings: Settings, row: Setting) -> bool:
    """Whether owners may change a setting, and the machine's own settings leave it to them."""
    source = settings.source_of(row.name)
    free = source == SOURCE or (source == "default" and setting_value(settings, row.name) == row.default)
    return row.name in EDITABLE and free


def pending_value(row: Setting, text: str | None) -> Any:
    """What a setting will be with the text that is kept for it; the default for none, and for one that fits no more."""
    try:
        return row.default if text is None else fitted_value(row, text)
    except SettingError:
        return row.default


def with_edited(settings: Settings, texts: Mapping[str, str]) -> Settings:
    """The settings with what owners changed, but for what the machine's own settings say.

    A text that does not fit any more, of an earlier release, is left out.
    """
    values = {}
    for name, text in texts.items():
        if name in EDITABLE:
            try:
                values[name] = edited_value(settings, name, text)
            except UsageError:
                continue
    if not values:
        return settings
    return _changed(settings, values).with_sources({**settings.sources, **dict.fromkeys(values, SOURCE)})


def _editable(name: str) -> Setting:
    row = find_setting(name)
    if row is None:
        raise UsageError(unknown_setting(name))
    if name not in EDITABLE:
        raise UsageError(f"'{name[:70]}' is not changed here; set it in the settings file or in the environment")
    return row


def _changed(settings: Settings, values: Mapping[str, Any]) -> Settings:
    for name, value in values.items():
        section, _, key = name.partition(".")
        settings = replace(settings, **{section: replace(getattr(settings, section), **{key: value})})
    return settings


def _refuse_turned(settings: Settings) -> None:
    """Times of visits fit together."""
    schedule = settings.schedule
    if not schedule.min <= schedule.interval <= schedule.max:
        raise UsageError("schedule.min, schedule.interval and schedule.max must not become smaller in this order")
