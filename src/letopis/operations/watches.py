"""Watches: regular checks of pages: add, change, show and remove them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from letopis.archive import READ, WRITE
from letopis.archive.watches import UndeliveredAlerts, watch_key, watches_of
from letopis.errors import NotFound, UsageError
from letopis.lazy import lazy
from letopis.model import from_millis, rfc3339, written_duration
from letopis.monitor.watch import SPEC_FIELDS, AlertCondition, WatchSpec, parse_filters
from letopis.monitor.watch_list import WatchEntry, WatchList
from letopis.operations.context import Context
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import CLI_ONLY, NOT_CLI, Parameters, parameter
from letopis.operations.watch_options import (
    LONGEST_TAG,
    WatchFilter,
    WatchOptions,
    filters_of,
    refuse_other,
    refuse_other_tag,
    refuse_others,
    spec_of,
)
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

if TYPE_CHECKING:
    from letopis.monitor import views
else:
    views = lazy("letopis.monitor.views")

_LONGEST_NAME = 64
_MOST_PREVIEW = 100_000
_URLS = "Addresses of watched pages, each for all watches of the page, or numbers of watches."


@dataclass(frozen=True, slots=True)
class WatchDetails:
    """One watch. `notify` and `headers` are null for those who may not change it, because they may contain passwords;
    `targets` counts the targets. `notify` is also null if the tag of another user sets it. `name` tells several watches
    of a page apart, `owner` is who created it.

    `due` is null while it is paused; until `snoozed` its notifications wait. `source` is the sitemap that listed the
    page, else empty. `undelivered` counts notifications that were not accepted and are tried again, or were given up,
    and `delivery_error` says why.
    """

    url: str
    kind: str
    every: float
    cron: str
    jitter: float
    tag: str
    source: str
    filters: tuple[WatchFilter, ...]
    notify: tuple[str, ...] | None
    targets: int
    when: str
    conditions: tuple[AlertCondition, ...]
    browser: bool
    requisites: bool
    step: tuple[str, ...] | None
    paused: bool
    due: datetime | None
    added: datetime
    last_judged: datetime | None
    failures: int
    undelivered: int
    delivery_error: str
    id: int
    name: str
    owner: str
    zone: str
    hours: str
    quiet_hours: str
    headers: tuple[str, ...] | None
    snoozed: datetime | None
    summary: str


def _own(context: Context, urls: Sequence[str]) -> list[str]:
    """Numbers of the watches that are meant, all of which may be changed."""
    return [str(entry.id) for entry in refuse_others(context, WatchList(context.archive).known_entries(urls))]


def _rows(context: Context, entries: Iterable[WatchEntry], remark: str = "") -> Rows[WatchDetails]:
    undelivered = watches_of(context.archive).undelivered()
    return Rows([_details(context, entry, undelivered) for entry in entries], remark=remark)


def _fields(row: WatchDetails) -> dict[str, Any]:
    return {one.name: getattr(row, one.name) for one in fields(row)}


_ALL_DELIVERED = UndeliveredAlerts(0, 0, "")


def _details(context: Context, entry: WatchEntry, undelivered: Mapping[str, UndeliveredAlerts]) -> WatchDetails:
    watch = entry.watch
    lost, own = undelivered.get(watch_key(watch.url, watch.name), _ALL_DELIVERED), context.may_change(watch.owner)
    # A target may be a password, and that of a tag is its owner's, whoever takes the tag.
    targets_shown = own and (watch.notify == entry.spec.notify or context.may_change(watch.tag_owner))
    now = context.moment()
    return WatchDetails(
        watch.url, watch.kind, watch.every, watch.cron, watch.jitter, watch.tag, watch.source,
        filters=tuple(WatchFilter(*one) for one in watch.filters),
        notify=watch.notify if targets_shown else None,
        targets=len(watch.notify),
        when=",".join(map(str, watch.when)),
        conditions=watch.conditions,
        browser=watch.browser, requisites=watch.requisites, step=watch.steps if own else None, paused=entry.paused,
        due=entry.due,
        added=entry.added,
        last_judged=entry.last_judged,
        failures=entry.failures,
        undelivered=lost.retried + lost.failed,
        delivery_error=lost.error,
        id=entry.id,
        name=watch.name,
        owner=watch.owner,
        zone=watch.zone,
        hours=watch.hours,
        quiet_hours=watch.quiet,
        headers=tuple(": ".join(one) for one in watch.headers) if own else None,
        snoozed=from_millis(watch.snooze) if watch.snooze and from_millis(watch.snooze) > now else None,
        summary=watch.summary,
    )  # fmt: skip


class AddWatches(WatchOptions):
    """What to watch, and how; None means not given."""

    urls: tuple[str, ...] = parameter(
        "Addresses of pages to watch.", default=(), named="url", argument=True, metavar="[URL]..."
    )
    sitemaps: tuple[str, ...] = parameter(
        "Watch every page that this sitemap lists; can be repeated.", default=(), flags=("--sitemap",), metavar="URL",
        doors=CLI_ONLY,
    )  # fmt: skip
    sitemap: bool = parameter(
        "The addresses are sitemaps: watch every page that they list.", default=False, doors=NOT_CLI
    )
    name: str = parameter("A name that tells several watches of a page apart.", default="", longest=_LONGEST_NAME)
    another: bool = parameter("Add another watch of pages that are already watched, under its own name.", default=False)
    replace: bool = parameter(
        "Forget the options of pages that are already watched, and take these instead.", default=False
    )


@dataclass(frozen=True, slots=True)
class AddedWatch(WatchDetails):
    """A watch and the result: `added`, `kept` unchanged because the page is already watched, or `changed`."""

    outcome: Literal["added", "kept", "changed"]


def _added_sentence(row: AddedWatch) -> str:
    if row.outcome != "kept":
        return _sentence(row)
    state = "paused" if row.paused else f"at '{row.cron}'" if row.cron else f"every {written_duration(row.every)}"
    return f"{row.url} is watched already ({state}) and stays as it is; 'letopis watch edit {row.id}' changes it"


def _sentence(row: WatchDetails) -> str:
    pace = f"at '{row.cron}'" if row.cron else f"every {written_duration(row.every)}"
    watched = f"{row.url} ({row.name})" if row.name else row.url
    return f"{watched} stays paused, then {pace}" if row.paused else f"watching {watched}, {pace}"


@operation(
    "watch_add",
    right=WRITE,
    verb="watch add",
    route=("POST", "/watches"),
    status=201,
    listed="watches",
    single="url",
    audited="watch added",
    subject=lambda asked: " ".join((*asked.urls, *asked.sitemaps)) or f"tag {asked.tag}",
    sentence=_added_sentence,
    errors=(403, 429, 501),
    tool=True,
    examples=(
        "letopis watch add https://example.org/ --every 10m --css main --notify https://example.org/hook",
        'letopis watch add https://example.org/prices --cron "0 7 * * mon-fri" --adds "sold out"',
        "letopis watch add https://example.org/ --when unavailable:3,recovered --notify file:/tmp/alerts.jsonl",
        "letopis watch add https://example.org/prices --browser --css .price",
        "letopis watch add https://example.org/prices --name cheap --price html --below 100",
        "letopis watch add https://example.org/ --every 1h --hours 'mon-fri 08:00-18:00' --zone Europe/Prague",
        "letopis watch add --sitemap https://example.org/sitemap.xml --tag example",
        "letopis watch add --tag example --every 6h --notify mailto://user:password@example.org",
    ),
)  # fmt: skip
def watch_add(context: Context, asked: AddWatches) -> Rows[AddedWatch]:
    """Watch pages from now on, or set the defaults of a tag.

    A page that is already watched keeps what is not given again: its tag, its times, filters, targets and conditions,
    its owner, and a pause. What is given replaces what was, and an empty value takes an option back; with 'replace' all
    options begin anew. With 'another' or a name the page gets one more watch. A sitemap counts as one watch; a page
    that only a sitemap named becomes a watch of its own.

    A page may have several watches, told apart by their names; they all look at it in one way, with a browser or with
    the same headers. Whoever makes a watch owns it: only they and the owners of the archive change it.

    What is not given at all is taken from the tag, then from the settings. With a tag and no address nothing is
    watched: the tag gets these defaults. Only who gave them first and the owners of the archive change them, and only
    watches of whoever gave them send the headers or take the steps.
    """
    return add_watches(context, asked)


def add_watches(context: Context, asked: AddWatches, *, keep: bool = False) -> Rows[AddedWatch]:
    """The same; with `keep` a page that is already watched stays as it is, whatever is given."""
    sitemaps = (*asked.sitemaps, *(asked.urls if asked.sitemap else ()))
    spec, cleared = spec_of(context, asked)
    urls = () if asked.sitemap else asked.urls
    if asked.another and urls:
        return _added(context, _add_others(context, urls, spec, asked.tag or "", asked.name), {})
    watches = WatchList(context.archive)
    known = [watches.by_id(number) for number in watches.numbers((*urls, *sitemaps), asked.name)]
    if asked.tag and not urls and not sitemaps:
        refuse_other_tag(context, asked.tag)
    made = watches.add(
        urls, spec, asked.tag, sitemaps, name=asked.name,
        forgotten=(*SPEC_FIELDS, "kind") if asked.replace else cleared, keep=keep,
        charge=lambda count: context.charge("watches", count), allow=lambda entry: refuse_other(context, entry),
    )  # fmt: skip
    remark = "" if made else f"these are now defaults of watches with the tag '{asked.tag}'"
    return _added(context, made, {entry.id: entry for entry in known}, remark)


def _added(
    context: Context, made: Sequence[WatchEntry], known: Mapping[int, WatchEntry], remark: str = ""
) -> Rows[AddedWatch]:
    rows = [
        AddedWatch(**_fields(row), outcome=_outcome(known.get(entry.id), entry))
        for row, entry in zip(_rows(context, made), made, strict=True)
    ]
    return Rows(rows, remark=remark)


def _outcome(before: WatchEntry | None, now: WatchEntry) -> Literal["added", "kept", "changed"]:
    if before is None:
        return "added"
    return "kept" if before.watch == now.watch else "changed"


def _add_others(context: Context, urls: Sequence[str], spec: WatchSpec, tag: str, name: str) -> list[WatchEntry]:
    watches = WatchList(context.archive)
    distinct = list(dict.fromkeys(map(parse_user_url, urls)))
    charge = partial(context.charge, "watches")
    return [watches.add_another(url, spec, tag, name, charge) for url in distinct]


class EditWatch(WatchOptions):
    """Which watch, and what to change; None leaves an option unchanged."""

    id: int = parameter("Number of the watch.", argument=True, at_least=1, at_most=2**62)
    name: str | None = parameter("Another name.", default=None, longest=_LONGEST_NAME)
    replace: bool = parameter("Reset options that are not given, except name, tag and snooze.", default=False)


@operation(
    "watch_edit", right=WRITE, verb="watch edit", route=("PUT", "/watches/{id}"), audited="watch changed",
    creates=False, sentence=_sentence, errors=(403, 404, 501),
    examples=("letopis watch edit 1 --every 6h", "letopis watch edit 1 --css .price --below 100"),
)  # fmt: skip
def watch_edit(context: Context, asked: EditWatch) -> Value[WatchDetails]:
    """Change one watch: only the options that are given change, an empty value resets an option."""
    watches = WatchList(context.archive)
    refuse_other(context, watches.by_id(asked.id))
    spec, cleared = spec_of(context, asked)
    forgotten = [name for name in SPEC_FIELDS if name != "snooze"] if asked.replace else cleared
    return _value(context, watches.edit(asked.id, spec, asked.tag, asked.name, forgotten))


class OneWatch(Parameters):
    """Which watch."""

    id: int = parameter("Number of the watch.", argument=True, at_least=1, at_most=2**62)


@operation(
    "watch_show", right=READ, verb="watch show", route=("GET", "/watches/{id}"), errors=(404,),
    examples=("letopis watch show 1",),
)  # fmt: skip
def watch_show(context: Context, asked: OneWatch) -> Value[WatchDetails]:
    """Show one watch."""
    return _value(context, WatchList(context.archive).by_id(asked.id))


def _value(context: Context, entry: WatchEntry) -> Value[WatchDetails]:
    return Value(_details(context, entry, watches_of(context.archive).undelivered()))


@operation(
    "watch_clone", right=WRITE, verb="watch clone", route=("POST", "/watches/{id}/clone"), status=201,
    audited="watch cloned", creates=False, sentence=_sentence, errors=(403, 404, 429),
    examples=("letopis watch clone 1",),
)  # fmt: skip
def watch_clone(context: Context, asked: OneWatch) -> Value[WatchDetails]:
    """Copy a watch of a page under another name; the copy belongs to whoever makes it."""
    watches = WatchList(context.archive)
    original = watches.by_id(asked.id)
    refuse_other(context, original)
    made = watches.clone(
        asked.id, context.user, context.origin, charge=lambda count: context.charge("watches", count)
    )  # fmt: skip
    return _value(context, made)


class SnoozeWatches(Parameters):
    """Which watches, and for how long."""

    urls: tuple[str, ...] = parameter(_URLS, named="url", argument=True, metavar="URL...")
    time: timedelta | None = parameter(
        "How long (8h, 2d, 30d at most); without it the snooze ends.", default=None, named="for", flags=("--for",)
    )


@operation(
    "watch_snooze", right=WRITE, verb="watch snooze", route=("POST", "/watches/snooze"), listed="watches",
    single="url", audited="watch snoozed", creates=False, errors=(403, 404),
    sentence=lambda row: f"{row.url} notifies again{f' from {rfc3339(row.snoozed)}' if row.snoozed else ''}",
    examples=("letopis watch snooze https://example.org/ --for 8h",),
)  # fmt: skip
def watch_snooze(context: Context, asked: SnoozeWatches) -> Rows[WatchDetails]:
    """Hold back the notifications of watches for a while: checks go on, and alerts are sent afterwards."""
    until = None if asked.time is None else context.moment() + asked.time
    return _rows(context, WatchList(context.archive).snooze(_own(context, asked.urls), until))


class PreviewQuery(WatchOptions):
    """Which page, and through which filters."""

    url: str = parameter("Address of the page.", argument=True)


class WatchPreview(NamedTuple):
    """What filters leave of the newest version of a page, as text; `whole` counts the characters without filters."""

    url: str
    version: int
    time: datetime
    text: str
    whole: int


@operation(
    "watch_preview", right=READ, verb="watch preview", route=("POST", "/watches/preview"), errors=(404,),
    sentence=lambda row: row.text or f"the filters select nothing of version {row.version}", creates=False,
    examples=("letopis watch preview https://example.org/ --css main",),
)  # fmt: skip
def watch_preview(context: Context, asked: PreviewQuery) -> Value[WatchPreview]:
    """Show what a watch with filters would compare: the filtered text of the newest version."""
    version = context.archive.get(parse_user_url(asked.url))
    seen = views.filtered_version(version, parse_filters(filters_of(asked) or ()))
    whole = views.filtered_version(version, ())
    return Value(WatchPreview(version.url, version.number, version.time, seen.text[:_MOST_PREVIEW], len(whole.text)))


class WatchListQuery(Parameters):
    """Which watches."""

    tag: str | None = parameter("Only watches with this tag.", default=None, longest=LONGEST_TAG)
    limit: int | None = parameter("Maximum number of rows; default: all.", default=None, at_least=1, at_most=100_000)
    offset: int = parameter("Rows to skip.", default=0, at_least=0, at_most=2**31)


@operation(
    "watch_list", right=READ, verb="watch list", route=("GET", "/watches"), listed="watches", tool=True,
    row_key=("id",),
    columns=(
        "id", "url", "name", "owner", "every", "cron", "tag", "when", "paused", "due", "failures", "undelivered",
        "delivery_error",
    ),
    examples=("letopis watch list", "letopis watch list --tag news --json"),
)  # fmt: skip
def watch_list(context: Context, asked: WatchListQuery) -> Rows[WatchDetails]:
    """List what is watched, oldest first."""
    return _rows(context, WatchList(context.archive).entries(asked.tag, asked.limit, asked.offset))


class WatchedUrls(Parameters):
    """Which watches a command is for; if one of them is not watched, nothing is done."""

    urls: tuple[str, ...] = parameter(_URLS, named="url", argument=True, metavar="URL...")


class RemovedWatch(NamedTuple):
    """How many watches were removed with that of a URL: one, or for a sitemap all pages that it listed."""

    url: str
    removed: int


@operation(
    "watch_remove", right=WRITE, verb="watch remove", route=("DELETE", "/watches"), listed="watches", single="url",
    audited="watch removed", creates=False, tool=True,
    sentence=lambda row: f"no longer watched: {row.url} ({row.removed} {'watch' if row.removed == 1 else 'watches'})",
    errors=(403, 404), examples=("letopis watch remove https://example.org/",),
)  # fmt: skip
def watch_remove(context: Context, asked: WatchedUrls) -> Rows[RemovedWatch]:
    """Stop watching pages; of a sitemap, all pages that it named. Records stay."""
    return Rows([RemovedWatch(*row) for row in WatchList(context.archive).remove(_own(context, asked.urls))])


@operation(
    "watch_pause", right=WRITE, verb="watch pause", route=("POST", "/watches/pause"), listed="watches",
    single="url", audited="watch paused", creates=False, sentence=lambda row: f"paused: {row.url}", errors=(403, 404),
    examples=("letopis watch pause https://example.org/",),
)  # fmt: skip
def watch_pause(context: Context, asked: WatchedUrls) -> Rows[WatchDetails]:
    """Pause watches until they are resumed."""
    return _rows(context, WatchList(context.archive).pause(_own(context, asked.urls)))


@operation(
    "watch_resume", right=WRITE, verb="watch resume", route=("POST", "/watches/resume"), listed="watches",
    single="url", audited="watch resumed", creates=False, sentence=_sentence, errors=(403, 404),
    examples=("letopis watch resume https://example.org/",),
)  # fmt: skip
def watch_resume(context: Context, asked: WatchedUrls) -> Rows[WatchDetails]:
    """Resume paused watches, beginning now; others keep their times."""
    return _rows(context, WatchList(context.archive).resume(_own(context, asked.urls)))


class WatchesToCheck(Parameters):
    """Which watches: those that are named, and those of a tag."""

    urls: tuple[str, ...] = parameter(_URLS, default=(), named="url", argument=True, metavar="[URL]...")
    tag: str | None = parameter("All watches with this tag.", default=None, longest=LONGEST_TAG)


@operation(
    "watch_check", right=WRITE, verb="watch check", route=("POST", "/watches/check"), listed="watches",
    single="url", audited="watch checked", creates=False, sentence=lambda row: f"due: {row.url}", errors=(403, 404),
    examples=("letopis watch check https://example.org/", "letopis watch check --tag news"),
    subject=lambda asked: " ".join(asked.urls) or f"tag {asked.tag}",
)  # fmt: skip
def watch_check(context: Context, asked: WatchesToCheck) -> Rows[WatchDetails]:
    """Make watches due now, paused ones too: checked within seconds, and `monitor.min_interval` apart."""
    if not asked.urls and asked.tag is None:
        raise UsageError("name the watches to check, or their tag")
    watches = WatchList(context.archive)
    tagged = [] if asked.tag is None else refuse_others(context, watches.entries(asked.tag))
    if asked.tag is not None and not tagged:
        raise NotFound(f"no watch has the tag '{asked.tag}'; see 'letopis watch tags'")
    named = [*_own(context, asked.urls), *(str(entry.id) for entry in tagged)]
    asked_for = watches.check_now(list(dict.fromkeys(named)))
    return _rows(context, asked_for, "\n".join(filter(None, (_wait_sentence(context, one) for one in asked_for))))


def _wait_sentence(context: Context, entry: WatchEntry) -> str:
    """Of a page that may not be asked again yet: when it was, and when it is next."""
    left = (entry.due - context.moment()).total_seconds() if entry.due is not None else 0.0
    if left <= 0:
        return ""
    ago = context.archive.settings.monitor.min_interval - left
    return (
        f"{entry.watch.url} was checked {ago:.0f} s ago; the next look is possible in {left:.0f} s and will happen then"
    )


class TagWatches(Parameters):
    """Which watches, and their new tag."""

    urls: tuple[str, ...] = parameter(_URLS, named="url", argument=True, metavar="URL...")
    tag: str | None = parameter("The new tag; without it, watches lose theirs.", default=None, longest=LONGEST_TAG)


@operation(
    "watch_tag", right=WRITE, verb="watch tag", route=("POST", "/watches/tag"), listed="watches", single="url",
    audited="watch tagged", creates=False,
    sentence=lambda row: f"{row.url} has the tag '{row.tag}'" if row.tag else f"{row.url} has no tag",
    errors=(403, 404), examples=("letopis watch tag https://example.org/ --tag news",),
)  # fmt: skip
def watch_tag(context: Context, asked: TagWatches) -> Rows[WatchDetails]:
    """Change the tag of watches, or remove it; the defaults of the new tag apply from now on."""
    return _rows(context, WatchList(context.archive).retag(_own(context, asked.urls), asked.tag or ""))
