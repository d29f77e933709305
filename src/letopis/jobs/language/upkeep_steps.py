"""Steps that are verbs about single pages and the archive: check, diff, compact, cleaner."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from lxml import etree

from letopis.jobs.language.documents import attributes
from letopis.jobs.language.markup import around, element, start
from letopis.jobs.language.running import Cancelled, Run, flag, texts
from letopis.jobs.retention import clean
from letopis.model import Check
from letopis.monitor import Monitor, check_row, sides_asked

_AT_ONCE = 64
"""Checks between two looks at whether the job is still wanted."""


def check_step(step: etree._Element, run: Run) -> bytes:
    """Looks at pages now; one row an address, whether it was there or not."""
    urls, checks = texts(step, "url"), list[Check]()
    with Monitor(run.archive, step.get("as", "default")) as monitor:
        options = replace(
            monitor.options,
            now=flag(step, "now"),
            force=flag(step, "force"),
            head=flag(step, "head"),
            private_ok=run.around.private_allowed,
        )
        for begin in range(0, len(urls), _AT_ONCE):
            run.go_on()
            checks += monitor.look(urls[begin : begin + _AT_ONCE], options)
            run.around.progress.share(len(checks) / len(urls))
    return around("check", {"as": step.get("as"), "count": len(checks)}, map(_checked, map(check_row, checks)))


def _checked(row: dict[str, Any]) -> str:
    """A check as an element, with one element inside for each redirect."""
    hops, plain = row.pop("redirects"), {name: value for name, value in row.items() if value not in ("", (), [])}
    if not hops:
        return element("page", plain)
    return start("page", plain) + "".join(element("redirect", hop) for hop in hops) + "</page>"


def diff_step(step: etree._Element, run: Run) -> bytes:
    """What changed on a page between two times, or since somebody's last look."""
    url, form, private = step.get("url", ""), step.get("format", "unified"), run.around.private_allowed
    uid = step.get("as")
    if uid is not None:
        with Monitor(run.archive, uid) as monitor:
            monitor.options = replace(monitor.options, private_ok=private)
            shown = monitor.get(url).changes(form)
    else:
        times = run.moment(step, "from"), run.moment(step, "to")
        sides = sides_asked(run.archive, url, *times, offline=flag(step, "offline"), private_ok=private)
        shown = run.archive.difference(*sides, form)
    text = shown.decode("utf-8", "replace") if isinstance(shown, bytes) else shown
    return element("diff", attributes(step), text).encode()


def compact_step(step: etree._Element, run: Run) -> bytes:
    """Re-compresses, carries out retention, gives space back."""
    stop = run.around.progress.cancelled
    report = run.archive.compact(effort="quick" if flag(step, "quick") else "full", stop=stop)
    if stop():
        raise Cancelled("the job was stopped; what was compacted stays so, and the rest comes next time")
    return element("compact", asdict(report)).encode()


def cleaner_step(step: etree._Element, run: Run) -> bytes:
    """Forgets ended jobs, their results and files when they are older than `jobs.keep_for`."""
    return element("cleaner", {"jobs": clean(run.archive)}).encode()
