"""Watches: standing checks of pages, the tags that give them defaults, and the alerts that came of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from letopis.archive import OWN, READ, WRITE
from letopis.archive.watches import AlertRow, UndeliveredAlerts, watches_of
from letopis.errors import NotReady, UsageError
from letopis.fetch import private_ok
from letopis.model import from_millis
from letopis.monitor.notifications import send_test, shown_target
from letopis.monitor.watch import (
    ALERT_RULES,
    FILTER_KINDS,
    SPEC_FIELDS,
    AlertCondition,
    AlertConditionKind,
    WatchSpec,
    parse_alert_rules,
)
from letopis.monitor.watch_list import WatchEntry, WatchList
from letopis.operations.answers import Rows, Value
from letopis.operations.context import Context
from letopis.operations.operation import operation
from letopis.operations.parameters import CLI_ONLY, NOT_CLI, Parameters, parameter

_MOST_ENTRIES = 20
_LONGEST_TEXT = 2000
_LONGEST_TAG = 64
_URLS = "Addresses of watched pages."


def _repeated(help: str, metavar: str = "TEXT") -> Any:
    """A text that the command line takes several times; elsewhere it is part of 'filters' or 'conditions'."""
    return parameter(help, default=None, metavar=metavar, longest=_LONGEST_TEXT, doors=CLI_ONLY)


@dataclass(frozen=True, slots=True)
class WatchFilter:
    """One filter of what is compared."""

    kind: str
    expression: str


@dataclass(frozen=True, slots=True)
class WatchDetails:
    """One watch. `notify` is null for whoever is no owner, since targets may hold passwords; `targets` counts them.

    `due` is null while it is paused. `source` is the sitemap that named the page, else empty. `undelivered` counts
    notifications that were not taken and are tried again, or were given up, and `delivery_error` says why.
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
    paused: bool
    due: datetime | None
    added: datetime
    last_judged: datetime | None
    failures: int
    undelivered: int
    delivery_error: str


def _rows(context: Context, entries: Iterable[WatchEntry], remark: str = "") -> Rows[WatchDetails]:
    undelivered = watches_of(context.archive).undelivered()
    return Rows([_details(context, entry, undelivered) for entry in entries], remark=remark)


_ALL_DELIVERED = UndeliveredAlerts(0, 0, "")


def _details(context: Context, entry: WatchEntry, undelivered: Mapping[str, UndeliveredAlerts]) -> WatchDetails:
    watch, lost = entry.watch, undelivered.get(entry.watch.url, _ALL_DELIVERED)
    return WatchDetails(
        watch.url, watch.kind, watch.every, watch.cron, watch.jitter, watch.tag, watch.source,
        filters=tuple(WatchFilter(*one) for one in watch.filters),
        notify=watch.notify if context.may(OWN) else None,
        targets=len(watch.notify),
        when=",".join(map(str, watch.when)),
        conditions=watch.conditions,
        browser=watch.browser,
        paused=entry.paused,
        due=entry.due,
        added=entry.added,
        last_judged=entry.last_judged,
        failures=entry.failures,
        undelivered=lost.retried + lost.failed,
        delivery_error=lost.error,
    )  # fmt: skip


class AddWatches(Parameters):
    """What to watch, and how; None is what was not said."""

    urls: tuple[str, ...] = parameter(
        "Addresses of pages to watch.", default=(), named="url", argument=True, metavar="[URL]..."
    )
    sitemaps: tuple[str, ...] = parameter(
        "Watch every page that this sitemap names; can be repeated.", default=(), flags=("--sitemap",), metavar="URL",
        doors=CLI_ONLY,
    )  # fmt: skip
    sitemap: bool = parameter(
        "The addresses are sitemaps: watch every page that they name.", default=False, doors=NOT_CLI
    )
    every: timedelta | None = parameter("Time between two checks (10m, 1h); never below the minimum.", default=None)
    cron: str | None = parameter(
        "Times of checks in UTC, as cron writes them.", default=None, longest=200, metavar='"M H D M W"'
    )
    jitter: timedelta | None = parameter("Check up to this much later, by chance.", default=None)
    tag: str | None = parameter(
        "Group of watches; with no address the other options become its defaults.", default=None, longest=_LONGEST_TAG
    )
    browser: bool | None = parameter("Check the page as a browser shows it, after its scripts have run.", default=None)
    css: tuple[str, ...] | None = _repeated("Compare only elements that match; can be repeated.", "SELECTOR")
    xpath: tuple[str, ...] | None = _repeated("Compare only what an XPath selects; can be repeated.", "XPATH")
    remove: tuple[str, ...] | None = _repeated("Leave out elements that match; can be repeated.", "SELECTOR")
    jsonpath: tuple[str, ...] | None = _repeated("Compare only values of a JSON document; can be repeated.", "PATH")
    include: tuple[str, ...] | None = _repeated("Compare only lines that match; can be repeated.", "REGEX")
    exclude: tuple[str, ...] | None = _repeated("Leave out lines that match; can be repeated.", "REGEX")
    ignore: tuple[str, ...] | None = _repeated("Leave out the text that matches; can be repeated.", "REGEX")
    filters: tuple[Mapping[str, Any], ...] | None = parameter(
        f"What is compared: objects with 'kind' ({', '.join(FILTER_KINDS)}) and 'expression'.", default=None,
        at_most=_MOST_ENTRIES, doors=NOT_CLI,
    )  # fmt: skip
    notify: tuple[str, ...] | None = parameter(
        "Where alerts go: https://..., file:/path, or an address of apprise; can be repeated.", default=None,
        at_most=_MOST_ENTRIES, metavar="TARGET",
    )  # fmt: skip
    when: str | None = parameter(f"What to alert of: {ALERT_RULES}.", default=None, longest=200)
    contains: tuple[str, ...] | None = _repeated("Alert only if the difference holds this text.")
    adds: tuple[str, ...] | None = _repeated("Alert only if this text came.")
    removes: tuple[str, ...] | None = _repeated("Alert only if this text went.")
    more_than: tuple[str, ...] | None = _repeated("Alert only if more of the page differs.", "PERCENT")
    conditions: tuple[Mapping[str, Any], ...] | None = parameter(
        f"What a difference must hold: objects with 'kind' ({', '.join(AlertConditionKind)}) and 'value'.",
        default=None, at_most=_MOST_ENTRIES, doors=NOT_CLI,
    )  # fmt: skip
    replace: bool = parameter("Forget the earlier options of pages that are already watched.", default=False)


def _sentence(row: WatchDetails) -> str:
    pace = f"at '{row.cron}'" if row.cron else f"every {row.every:g} s"
    return f"{row.url} stays paused, then {pace}" if row.paused else f"watching {row.url}, {pace}"


@operation(
    "watch_add", right=WRITE, verb="watch add", route=("POST", "/watches"), status=201, listed="watches", single="url",
    audited="watch added", subject=lambda asked: " ".join((*asked.urls, *asked.sitemaps)) or f"tag {asked.tag}",
    sentence=_sentence, errors=(429, 501), tool=True,
    examples=(
        "letopis watch add https://example.org/ --every 10m --css main --notify https://example.org/hook",
        'letopis watch add https://example.org/prices --cron "0 7 * * mon-fri" --adds "sold out"',
        "letopis watch add https://example.org/ --when unavailable:3,recovered --notify file:/tmp/alerts.jsonl",
        "letopis watch add https://example.org/prices --browser --css .price",
        "letopis watch add --sitemap https://example.org/sitemap.xml --tag example",
        "letopis watch add --tag example --every 6h --notify mailto://user:password@example.org",
    ),
)  # fmt: skip
def watch_add(context: Context, asked: AddWatches) -> Rows[WatchDetails]:
    """Watch pages from now on, or set the defaults of a tag.

    A page that is already watched keeps what is not given again: its tag, its
    times, filters, targets and conditions, and it stays paused if it was. What
    is given replaces what was: new filters replace all earlier ones, an
    interval replaces cron times. An empty value takes an option back; with
    'replace' all of them begin anew. A sitemap counts as one watch.

    What is not given at all is taken from the tag, then from the settings.
    With a tag and no address nothing is watched: the tag gets these defaults.
    """
    sitemaps = (*asked.sitemaps, *(asked.urls if asked.sitemap else ()))
    spec, cleared = _spec(context, asked)
    made = WatchList(context.archive).add(
        () if asked.sitemap else asked.urls,
        spec,
        asked.tag,
        sitemaps,
        forgotten=(*SPEC_FIELDS, "kind") if asked.replace else cleared,
        charge=lambda count: context.charge("watches", count),
    )
    remark = "" if made else f"these are now defaults of watches with the tag '{asked.tag}'"
    return _rows(context, made, remark)


def _spec(context: Context, asked: AddWatches) -> tuple[WatchSpec, list[str]]:
    """What was said, and the names of fields that were said to be empty."""
    filters, conditions = _filters(asked), _conditions(asked)
    said: dict[str, Any] = {
        "every": asked.every.total_seconds() if asked.every is not None else None,
        "cron": asked.cron,
        "jitter": asked.jitter.total_seconds() if asked.jitter is not None else None,
        "filters": filters,
        "notify": asked.notify if asked.notify is None else tuple(filter(None, asked.notify)),
        "when": parse_alert_rules(asked.when) if asked.when else None if asked.when is None else (),
        "conditions": conditions,
        "browser": asked.browser,
    }
    given = {name: value for name, value in said.items() if value is not None}
    return WatchSpec(**given, origin=context.origin), [name for name, value in given.items() if value in ("", ())]


def _filters(asked: AddWatches) -> tuple[tuple[str, str], ...] | None:
    if asked.filters is not None:
        return tuple(_pair(one, "filters", "kind", "expression") for one in asked.filters)
    return _by_kind(FILTER_KINDS, lambda kind: getattr(asked, kind))


def _conditions(asked: AddWatches) -> tuple[AlertCondition, ...] | None:
    if asked.conditions is not None:
        return tuple(_condition(*_pair(one, "conditions", "kind", "value")) for one in asked.conditions)
    pairs = _by_kind(AlertConditionKind, lambda kind: getattr(asked, kind.replace("-", "_")))
    return None if pairs is None else tuple(_condition(kind, text) for kind, text in pairs)


def _by_kind(
    kinds: Iterable[str], texts: Callable[[str], tuple[str, ...] | None]
) -> tuple[tuple[str, str], ...] | None:
    """What stands in a field for each kind as pairs; None when nothing was said, empty when only empty texts were."""
    said = {kind: texts(kind) for kind in kinds}
    if all(value is None for value in said.values()):
        return None
    return tuple((kind, text) for kind, value in said.items() for text in value or () if text)


def _condition(kind: str, text: str) -> AlertCondition:
    if kind not in list(AlertConditionKind):
        raise UsageError(f"'{kind[:70]}' is no kind of condition; choose {', '.join(AlertConditionKind)}")
    return AlertCondition(AlertConditionKind(kind), text)


def _pair(one: Mapping[str, Any], where: str, *names: str) -> tuple[str, str]:
    """The two texts of an object, which has nothing else."""
    first, second = (one.get(name) for name in names)
    if set(one) != set(names) or not isinstance(first, str) or not isinstance(second, str):
        raise UsageError(f"each of {where} must be an object with the texts '{names[0]}' and '{names[1]}'")
    if not 0 < len(second) <= _LONGEST_TEXT:
        raise UsageError(f"'{names[1]}' in {where} must have 1 to {_LONGEST_TEXT} characters")
    return first, second


class WatchListQuery(Parameters):
    """Which watches."""

    tag: str | None = parameter("Only watches with this tag.", default=None, longest=_LONGEST_TAG)
    limit: int | None = parameter("Most rows; default: all.", default=None, at_least=1, at_most=100_000)
    offset: int = parameter("Rows to leave out first.", default=0, at_least=0, at_most=2**31)


@operation(
    "watch_list", right=READ, verb="watch list", route=("GET", "/watches"), listed="watches", tool=True,
    columns=("url", "every", "cron", "tag", "when", "paused", "due", "failures", "undelivered", "delivery_error"),
    examples=("letopis watch list", "letopis watch list --tag news --json"),
)  # fmt: skip
def watch_list(context: Context, asked: WatchListQuery) -> Rows[WatchDetails]:
    """List what is watched, oldest first."""
    return _rows(context, WatchList(context.archive).entries(asked.tag, asked.limit, asked.offset))


class WatchedUrls(Parameters):
    """Which watches a command is for; when one of them is not watched, nothing is done."""

    urls: tuple[str, ...] = parameter(_URLS, named="url", argument=True, metavar="URL...")


@dataclass(frozen=True, slots=True)
class RemovedWatch:
    """How many watches ended with that of a URL: one, and for a sitemap all pages that it named."""

    url: str
    removed: int


@operation(
    "watch_remove", right=WRITE, verb="watch remove", route=("DELETE", "/watches"), listed="watches", single="url",
    audited="watch removed", creates=False, tool=True,
    sentence=lambda row: f"no longer watched: {row.url} ({row.removed} {'watch' if row.removed == 1 else 'watches'})",
    errors=(404,), examples=("letopis watch remove https://example.org/",),
)  # fmt: skip
def watch_remove(context: Context, asked: WatchedUrls) -> Rows[RemovedWatch]:
    """Watch pages no longer; of a sitemap, all pages that it named. What was recorded stays."""
    return Rows([RemovedWatch(*row) for row in WatchList(context.archive).remove(asked.urls)])


@operation(
    "watch_pause", right=WRITE, verb="watch pause", route=("POST", "/watches/pause"), listed="watches",
    single="url", creates=False, sentence=lambda row: f"paused: {row.url}", errors=(404,),
    examples=("letopis watch pause https://example.org/",),
)  # fmt: skip
def watch_pause(context: Context, asked: WatchedUrls) -> Rows[WatchDetails]:
    """Check watched pages no more until they are resumed."""
    return _rows(context, WatchList(context.archive).pause(asked.urls))


@operation(
    "watch_resume", right=WRITE, verb="watch resume", route=("POST", "/watches/resume"), listed="watches",
    single="url", creates=False, sentence=_sentence, errors=(404,),
    examples=("letopis watch resume https://example.org/",),
)  # fmt: skip
def watch_resume(context: Context, asked: WatchedUrls) -> Rows[WatchDetails]:
    """Go on with paused watches, beginning now; the others keep their times."""
    return _rows(context, WatchList(context.archive).resume(asked.urls))


@operation(
    "watch_check", right=WRITE, verb="watch check", route=("POST", "/watches/check"), listed="watches",
    single="url", creates=False, sentence=lambda row: f"due now: {row.url}", errors=(404,),
    examples=("letopis watch check https://example.org/",),
)  # fmt: skip
def watch_check(context: Context, asked: WatchedUrls) -> Rows[WatchDetails]:
    """Make watches due now, paused ones too; whatever runs the watches checks them within seconds."""
    return _rows(context, WatchList(context.archive).check_now(asked.urls))


@dataclass(frozen=True, slots=True)
class TestedTarget:
    """Whether a target of a watch took a test notification, and why not; only owners see the target in full."""

    url: str
    target: str
    delivered: bool
    error: str


def _test_sentence(row: TestedTarget) -> str:
    return f"{row.url}: {row.target} took the test notification" if row.delivered else f"{row.url}: {row.error}"


@operation(
    "watch_test", right=WRITE, verb="watch test", route=("POST", "/watches/test"), listed="targets", creates=False,
    sentence=_test_sentence, errors=(404, 429), examples=("letopis watch test https://example.org/",),
)  # fmt: skip
def watch_test(context: Context, asked: WatchedUrls) -> Rows[TestedTarget]:
    """Send a test notification to every target of watches now, and say which of them took it."""
    archive = context.archive
    entries = WatchList(archive).known_entries(asked.urls)
    pairs = [(entry.watch, target) for entry in entries for target in entry.watch.notify]
    if not pairs:
        raise UsageError("these watches notify nobody; give them a target with 'letopis watch add URL --notify TARGET'")
    context.charge("checks", len(pairs))
    rows = []
    for watch, target in pairs:
        guarded = not private_ok(archive.settings.fetch.private, watch.notify_origin)
        error = send_test(archive, watch.url, target, guarded=guarded)
        rows.append(TestedTarget(watch.url, target if context.may(OWN) else shown_target(target), not error, error))
    failed = [row for row in rows if row.error]
    return Rows(rows, faults=[NotReady(f"no test notification of {row.url} arrived: {row.error}") for row in failed])


class TagWatches(Parameters):
    """Which watches, and their new tag."""

    urls: tuple[str, ...] = parameter(_URLS, named="url", argument=True, metavar="URL...")
    tag: str | None = parameter("The new tag; without one they have none.", default=None, longest=_LONGEST_TAG)


@operation(
    "watch_tag", right=WRITE, verb="watch tag", route=("POST", "/watches/tag"), listed="watches", single="url",
    creates=False,
    sentence=lambda row: f"{row.url} has the tag '{row.tag}'" if row.tag else f"{row.url} has no tag",
    errors=(404,), examples=("letopis watch tag https://example.org/ --tag news",),
)  # fmt: skip
def watch_tag(context: Context, asked: TagWatches) -> Rows[WatchDetails]:
    """Give watches another tag, or none; the defaults of the new one hold from now on."""
    return _rows(context, WatchList(context.archive).retag(asked.urls, asked.tag or ""))


class NoParameters(Parameters):
    """Nothing is asked for but all."""


@dataclass(frozen=True, slots=True)
class WatchTag:
    """A tag, how many watches have it, and the defaults that it gives them; null or empty where it gives none.

    Watches without a tag stand under the empty name.
    """

    tag: str
    watches: int
    every: float | None
    cron: str
    jitter: float | None
    filters: tuple[WatchFilter, ...]
    notify: tuple[str, ...] | None
    targets: int
    when: str
    conditions: tuple[AlertCondition, ...]
    browser: bool | None


@operation(
    "watch_tags", right=READ, verb="watch tags", route=("GET", "/watches/tags"), listed="tags",
    columns=("tag", "watches", "every", "cron", "when", "targets"), examples=("letopis watch tags",),
)  # fmt: skip
def watch_tags(context: Context, asked: NoParameters) -> Rows[WatchTag]:
    """List the tags of watches with the defaults that they give."""
    watches = WatchList(context.archive)
    counts, defaults = watches.tag_counts(), watches.tag_defaults()
    names = sorted({*counts, *defaults})
    return Rows([_tag(context, name, counts.get(name, 0), defaults.get(name, WatchSpec())) for name in names])


def _tag(context: Context, name: str, watches: int, spec: WatchSpec) -> WatchTag:
    filters, targets = tuple(WatchFilter(*one) for one in spec.filters), spec.notify if context.may(OWN) else None
    return WatchTag(
        name, watches, spec.every, spec.cron, spec.jitter, filters, targets, len(spec.notify),
        ",".join(map(str, spec.when)), spec.conditions, spec.browser,
    )  # fmt: skip


class ForgetTag(Parameters):
    """Whose defaults."""

    tag: str = parameter("The tag.", argument=True, longest=_LONGEST_TAG)


@dataclass(frozen=True, slots=True)
class ForgottenTag:
    """A tag without defaults, and how many watches have it."""

    tag: str
    watches: int


@operation(
    "watch_forget_tag", right=WRITE, verb="watch forget-tag", route=("DELETE", "/watches/tags"),
    audited="watch tag forgotten", creates=False, errors=(404,), examples=("letopis watch forget-tag news",),
    sentence=lambda row: f"the tag '{row.tag}' gives no defaults any more",
)  # fmt: skip
def watch_forget_tag(context: Context, asked: ForgetTag) -> Value[ForgottenTag]:
    """Drop the defaults of a tag; its watches stay and go by the settings where they say nothing themselves."""
    watches = WatchList(context.archive)
    watches.forget_tag(asked.tag)
    return Value(ForgottenTag(asked.tag, watches.tag_counts().get(asked.tag, 0)))


class AlertsQuery(Parameters):
    """Which alerts."""

    url: str | None = parameter("Only alerts of this page.", default=None, argument=True)
    limit: int = parameter("Most rows.", default=100, at_least=1, at_most=1000)
    before: int | None = parameter("Only alerts older than the one with this id.", default=None, at_least=0)


@dataclass(frozen=True, slots=True)
class AlertDetails:
    """Something that a watch has noticed; `tag` is that of the watch then, `version` the number of what it saw."""

    id: int
    time: datetime
    kind: str
    url: str
    message: str
    tag: str
    version: int | None
    score: float | None
    reason: str


@operation(
    "watch_alerts", right=READ, verb="watch alerts", route=("GET", "/watches/alerts"), listed="alerts", tool=True,
    columns=("id", "time", "kind", "url", "message"),
    examples=("letopis watch alerts", "letopis watch alerts https://example.org/ --limit 10 --json"),
)  # fmt: skip
def watch_alerts(context: Context, asked: AlertsQuery) -> Rows[AlertDetails]:
    """List the alerts of watches, newest first; earlier ones come with the id of the last row as 'before'."""
    return Rows(map(_alert, WatchList(context.archive).alerts(asked.url, asked.limit, asked.before)))


def _alert(row: AlertRow) -> AlertDetails:
    facts = json.loads(row.facts)
    return AlertDetails(
        row.id, from_millis(row.time), row.kind, row.url, row.message, facts.get("tag", ""), facts.get("version"),
        facts.get("score"), facts.get("reason", ""),
    )  # fmt: skip
