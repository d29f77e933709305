"""Watches, added, listed and removed from the command line; and those taken over from other tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from letopis.archive import Archive
from letopis.cli.context import CliContext, verb
from letopis.errors import LetopisError
from letopis.exchange.sources import ImportedWatch, ImportReport
from letopis.model import from_millis, parse_duration
from letopis.monitor.views import parse_watch_filters
from letopis.monitor.watch import AlertCondition, AlertConditionKind, WatchSpec, parse_alert_rules
from letopis.monitor.watch_list import WatchEntry, WatchList

_COLUMNS = ("url", "every", "cron", "tag", "when", "due", "failures")
_ALERTS = ("id", "time", "kind", "url", "message")


def _duration(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    return None if text is None else parse_duration(text)


@verb(
    "add",
    "letopis watch add https://example.org/ --every 10m --css main --notify https://example.org/hook",
    'letopis watch add https://example.org/prices --cron "0 7 * * mon-fri" --adds "sold out"',
    "letopis watch add https://example.org/ --when unavailable:3,recovered --notify file:/tmp/alerts.jsonl",
    "letopis watch add https://example.org/prices --browser --css .price",
    "letopis watch add --sitemap https://example.org/sitemap.xml --tag example",
    "letopis watch add --tag example --every 6h --notify mailto://user:password@example.org",
)
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--sitemap", "sitemaps", multiple=True, metavar="URL", help="Watch every page that a sitemap names.")
@click.option("--every", callback=_duration, help="Time between two looks (10m, 1h); never below the minimum.")
@click.option("--cron", default="", metavar='"M H D M W"', help="Times of looks in UTC, as cron writes them.")
@click.option("--jitter", callback=_duration, help="Look up to this much later, by chance.")
@click.option("--tag", default="", help="Group of watches; with no URL the other options become its defaults.")
@click.option("--browser", is_flag=True, help="Look at the page as a browser shows it, after its scripts have run.")
@click.option("--css", multiple=True, metavar="SELECTOR", help="Compare only elements that match.")
@click.option("--xpath", multiple=True, metavar="XPATH", help="Compare only what an XPath selects.")
@click.option("--jsonpath", multiple=True, metavar="PATH", help="Compare only values of a JSON document.")
@click.option("--ignore", multiple=True, metavar="REGEX", help="Leave matching text out of the comparison.")
@click.option("--notify", multiple=True, metavar="TARGET", help="https://..., file:/path, or an address of apprise.")
@click.option("--when", default="", help="changed, status, unavailable:3, recovered, redirect, unchanged:7d.")
@click.option("--contains", multiple=True, metavar="TEXT", help="Alert only if the difference holds this text.")
@click.option("--adds", multiple=True, metavar="TEXT", help="Alert only if this text came.")
@click.option("--removes", multiple=True, metavar="TEXT", help="Alert only if this text went.")
@click.option("--more-than", multiple=True, metavar="PERCENT", help="Alert only if more of the page differs.")
def add_verb(given: CliContext, urls: tuple[str, ...], sitemaps: tuple[str, ...], tag: str, **options: Any) -> None:
    """Watch pages from now on. A page that is already watched gets the new options."""
    with given.open() as archive:
        entries = WatchList(archive).add(urls, _spec(options), tag, sitemaps)
    for entry in entries:
        given.output.row(_row(entry), f"watching {entry.watch.url}, {_pace(entry)}")
    if not entries:
        given.output.remark(f"these are now the defaults of watches with the tag '{tag}'")


def _spec(options: Mapping[str, Any]) -> WatchSpec:
    kinds = ("css", "xpath", "jsonpath", "ignore")
    return WatchSpec(
        every=options["every"],
        cron=options["cron"],
        jitter=options["jitter"],
        filters=tuple((kind, text) for kind in kinds for text in options[kind]),
        notify=options["notify"],
        when=parse_alert_rules(options["when"]) if options["when"] else (),
        conditions=tuple(
            AlertCondition(kind, text) for kind in AlertConditionKind for text in options[kind.replace("-", "_")]
        ),
        browser=options["browser"],
    )


def _pace(entry: WatchEntry) -> str:
    return f"at '{entry.watch.cron}'" if entry.watch.cron else f"every {entry.watch.every:g} s"


def _row(entry: WatchEntry) -> dict[str, Any]:
    watch = entry.watch
    return {
        "url": watch.url,
        "kind": watch.kind,
        "every": watch.every,
        "cron": watch.cron,
        "jitter": watch.jitter,
        "tag": watch.tag,
        "source": watch.source,
        "filters": [{"kind": kind, "expression": text} for kind, text in watch.filters],
        "notify": watch.notify,
        "when": ",".join(map(str, watch.when)),
        "conditions": watch.conditions,
        "browser": watch.browser,
        "due": entry.due,
        "added": entry.added,
        "last_judged": entry.last_judged,
        "failures": entry.failures,
    }


@verb("list", "letopis watch list", "letopis watch list --tag news --json")
@click.option("--tag", help="Only watches with this tag.")
@click.option("--alerts", is_flag=True, help="List what the watches have told, newest first.")
def list_verb(given: CliContext, tag: str | None, alerts: bool) -> None:
    """List what is watched, or with --alerts what was told."""
    with given.open(create=False) as archive:
        book = WatchList(archive)
        if alerts:
            shown = [row._asdict() | {"time": from_millis(row.time)} for row in book.alerts()]
            given.output.rows(shown, _ALERTS)
        else:
            given.output.rows([_row(entry) for entry in book.entries(tag)], _COLUMNS)


@verb("remove", "letopis watch remove https://example.org/")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
def remove_verb(given: CliContext, urls: tuple[str, ...]) -> None:
    """Watch pages no longer; of a sitemap, all pages that it named. What was recorded stays."""
    with given.open(create=False) as archive:
        for url in urls:
            count = WatchList(archive).remove(url)
            given.output.row({"url": url, "removed": count}, f"no longer watched: {url} ({count} watches)")


def add_imported_watches(archive: Archive, wishes: Iterable[ImportedWatch], report: ImportReport) -> int:
    """Watches what can be watched, and answers how many; the report names the others."""
    book = WatchList(archive)
    return sum(_add_imported_watch(book, wish, report) for wish in wishes)


def _add_imported_watch(book: WatchList, wish: ImportedWatch, report: ImportReport) -> bool:
    for name in wish.left_out:
        report.refuse(f"the watch is kept without its {name}, which has no counterpart", wish.url)
    filters = tuple(one for one in wish.filters if _is_usable_filter(one, wish.url, report))
    try:
        book.add([wish.url], WatchSpec(every=wish.every, filters=filters), wish.tag)
        if wish.paused:
            book.pause([wish.url])
    except LetopisError as error:
        report.refuse(f"its watch cannot be kept ({error})", wish.url)
        return False
    return True


def _is_usable_filter(one: tuple[str, str], url: str, report: ImportReport) -> bool:
    """Whether a filter can be carried out here; one that cannot is named, and the watch is kept without it."""
    try:
        parse_watch_filters([one])
    except LetopisError as error:
        report.refuse(f"the watch is kept without a filter ({error})", url)
        return False
    return True
