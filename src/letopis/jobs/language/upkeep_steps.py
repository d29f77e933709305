"""Steps that are verbs about single pages and the archive: check, diff, export, compact, cleaner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from lxml import etree

from letopis.errors import NotReady, UsageError
from letopis.exchange.cdxj_out import export_cdxj
from letopis.exchange.selecting import Selected
from letopis.exchange.wacz_out import export_wacz
from letopis.exchange.warc_out import export_warc
from letopis.exchange.warc_writer import Compression
from letopis.exchange.whole_file import whole_file
from letopis.jobs.language.documents import attributes
from letopis.jobs.language.markup import around, element, start
from letopis.jobs.language.running import Cancelled, Run, flag, texts
from letopis.jobs.retention import clean
from letopis.model import Check
from letopis.monitor import Monitor, check_row, sides_asked

_AT_ONCE = 64
"""Checks between two looks at whether the job is still wanted."""
_ENDINGS = {"gzip": ".warc.gz", "zstd": ".warc.zst", "none": ".warc"}


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


def export_step(step: etree._Element, run: Run) -> bytes:
    """Writes a part of the archive to a file of the job; the result says where it lies."""
    kind, compression = step.get("kind", ""), cast(Compression, step.get("compression", "gzip"))
    ending = _ENDINGS[compression] if kind == "warc" else f".{kind}"
    target = _folder(run) / step.get("file", f"export{ending}")
    selected = Selected(
        step.get("site", ""), run.moment(step, "from"), run.moment(step, "to"), flag(step, "latest"),
        step.get("project", ""),
    )  # fmt: skip
    count = _write_export(run, kind, target, selected, compression)
    about = {"kind": kind, "file": _shown(target, run), "records": count, "bytes": target.stat().st_size}
    return element("export", about).encode()


def _shown(target: Path, run: Run) -> str:
    """Where a file lies in the archive; whoever reads the result need not know where the archive is."""
    inside = target.is_relative_to(run.archive.folder)
    return str(target.relative_to(run.archive.folder)) if inside else target.name


def _write_export(run: Run, kind: str, target: Path, selected: Selected, compression: Compression) -> int:
    if kind == "wacz":
        return export_wacz(run.archive, target, selected, _stopping(run))
    with whole_file(target) as out:
        if kind == "cdxj":
            return export_cdxj(run.archive, out, selected, _stopping(run))
        return export_warc(run.archive, out, selected, compression, _stopping(run))


def _stopping(run: Run) -> Callable[[int], None]:
    return lambda done: run.go_on()


def _folder(run: Run) -> Path:
    folder = run.around.output
    if folder is None:
        raise UsageError("this job may write no files; leave <export> out or ask the owner of the archive")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"cannot make {folder}: {error.strerror}; check its permissions") from None
    return folder


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
