"""The options of a watch, shared by all commands: times, filters, alerts and targets; and tags with their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from letopis.archive import OWN, READ, WRITE
from letopis.errors import Refused, UsageError
from letopis.fetch.page_steps import MOST_STEPS, STEP_HELP
from letopis.monitor.watch import (
    ALERT_RULES,
    FILTER_KINDS,
    AlertCondition,
    AlertConditionKind,
    FilterText,
    WatchSpec,
    parse_alert_rules,
)
from letopis.monitor.watch_list import WatchEntry, WatchList
from letopis.operations.context import Context
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import CLI_ONLY, NOT_CLI, NoParameters, Parameters, parameter
from letopis.tuples import NamedTuple

_MOST_ENTRIES = 20
_LONGEST_TEXT = 2000
LONGEST_TAG = 64


def _repeated(help: str, metavar: str = "TEXT") -> Any:
    """A text that the command line takes several times; elsewhere it is part of 'filters' or 'conditions'."""
    return parameter(help, default=None, metavar=metavar, longest=_LONGEST_TEXT, doors=CLI_ONLY)


@dataclass(frozen=True, slots=True)
class WatchFilter:
    """One filter of what is compared."""

    kind: str
    expression: str


class WatchOptions(Parameters):
    """How to watch; None means not given."""

    every: timedelta | None = parameter("Time between two checks (10m, 1h); never below the minimum.", default=None)
    cron: str | None = parameter(
        "Cron times of checks, in the time zone.", default=None, longest=200, metavar='"M H D M W"'
    )
    jitter: timedelta | None = parameter("Delay each check randomly by up to this much.", default=None)
    tag: str | None = parameter(
        "Group of watches; with no address the other options become its defaults.", default=None, longest=LONGEST_TAG
    )
    browser: bool | None = parameter("Check the page as a browser shows it, after its scripts have run.", default=None)
    requisites: bool | None = parameter("Fetch images, styles and scripts of the page too.", default=None)
    step: tuple[str, ...] | None = parameter(STEP_HELP, default=None, metavar="STEP", at_most=MOST_STEPS)
    css: tuple[str, ...] | None = _repeated("Compare only elements that match; can be repeated.", "SELECTOR")
    xpath: tuple[str, ...] | None = _repeated("Compare only what an XPath selects; can be repeated.", "XPATH")
    remove: tuple[str, ...] | None = _repeated("Leave out elements that match; can be repeated.", "SELECTOR")
    jsonpath: tuple[str, ...] | None = _repeated("Compare only values of a JSON document; can be repeated.", "PATH")
    include: tuple[str, ...] | None = _repeated("Compare only lines that match; can be repeated.", "REGEX")
    exclude: tuple[str, ...] | None = _repeated("Leave out lines that match; can be repeated.", "REGEX")
    ignore: tuple[str, ...] | None = _repeated("Leave out the text that matches; can be repeated.", "REGEX")
    price: tuple[str, ...] | None = _repeated(
        "Compare only the price found here; html: anywhere on the page.", "SELECTOR"
    )
    stock: tuple[str, ...] | None = _repeated(
        "Compare only whether it is in stock; html: anywhere on the page.", "SELECTOR"
    )
    filters: tuple[Mapping[str, Any], ...] | None = parameter(
        f"What is compared: objects with 'kind' ({', '.join(FILTER_KINDS)}) and 'expression'.", default=None,
        at_most=_MOST_ENTRIES, doors=NOT_CLI,
    )  # fmt: skip
    notify: tuple[str, ...] | None = parameter(
        "Where alerts go: https://..., file:/path, or an address of apprise; can be repeated.", default=None,
        at_most=_MOST_ENTRIES, metavar="TARGET",
    )  # fmt: skip
    when: str | None = parameter(f"What to alert of: {ALERT_RULES}.", default=None, longest=200, joined=",")
    contains: tuple[str, ...] | None = _repeated("Alert only if the difference contains this text.")
    adds: tuple[str, ...] | None = _repeated("Alert only if this text was added.")
    removes: tuple[str, ...] | None = _repeated("Alert only if this text was removed.")
    more_than: tuple[str, ...] | None = _repeated("Alert only if more of the page differs.", "PERCENT")
    below: tuple[str, ...] | None = _repeated("Alert only if the first added number is below.", "NUMBER")
    above: tuple[str, ...] | None = _repeated("Alert only if the first added number is above.", "NUMBER")
    conditions: tuple[Mapping[str, Any], ...] | None = parameter(
        f"Conditions that a difference must meet: objects with 'kind' ({', '.join(AlertConditionKind)}) and 'value'.",
        default=None, at_most=_MOST_ENTRIES, doors=NOT_CLI,
    )  # fmt: skip
    zone: str | None = parameter("Time zone of cron times and hours; UTC by default.", default=None, longest=64)
    hours: str | None = parameter(
        "Check only within these hours, such as 'mon-fri 08:00-18:00; sat 9:00-12:00'.",
        default=None,
        longest=200,
        joined=";",
    )
    quiet_hours: str | None = parameter(
        "Hours in which notifications wait until they are over, such as 22:00-07:00.",
        default=None,
        longest=200,
        joined=";",
    )
    summary: str | None = parameter(
        "Cron times at which all alerts since the last one go to a target as one notification.",
        default=None, longest=200, metavar='"M H D M W"',
    )  # fmt: skip
    headers: tuple[str, ...] | None = parameter(
        "A header 'Name: value' to send with requests for the page; can be repeated.", default=None,
        flags=("--header",), at_most=_MOST_ENTRIES, metavar="LINE",
    )  # fmt: skip
    private: bool | None = parameter(
        "Allow a private address, unless fetch.private is 'never'; owners only.", default=None,
        doors=NOT_CLI,
    )  # fmt: skip


def refuse_others(context: Context, entries: Sequence[WatchEntry]) -> Sequence[WatchEntry]:
    """The watches themselves; Refused when one of them belongs to somebody else."""
    for entry in entries:
        refuse_other(context, entry)
    return entries


def refuse_other(context: Context, entry: WatchEntry) -> None:
    """Refused for a watch that belongs to somebody else."""
    if not context.may_change(entry.watch.owner):
        whose = f"to '{entry.watch.owner}'" if entry.watch.owner else "to the owners"
        raise Refused(f"the watch {entry.id} of {entry.watch.url} belongs {whose}; make one of your own under a name")


def refuse_other_tag(context: Context, tag: str) -> None:
    """Refused where the defaults of a tag are those of others, or would be given to watches of others."""
    watches = WatchList(context.archive)
    defaults = watches.tag_defaults().get(tag)
    owners = {one.watch.owner for one in watches.entries(tag)} if defaults is None else {defaults.owner}
    if not all(context.may_change(owner) for owner in owners):
        raise Refused(f"the tag '{tag}' belongs to others; choose a tag of your own, or ask an owner")


def spec_of(context: Context, asked: WatchOptions) -> tuple[WatchSpec, list[str]]:
    """What was said, and the names of fields that were said to be empty."""
    filters, conditions = filters_of(asked), _conditions(asked)
    said: dict[str, Any] = {
        "every": asked.every.total_seconds() if asked.every is not None else None,
        "cron": asked.cron,
        "jitter": asked.jitter.total_seconds() if asked.jitter is not None else None,
        "filters": filters,
        "notify": asked.notify if asked.notify is None else tuple(filter(None, asked.notify)),
        "when": parse_alert_rules(asked.when) if asked.when else None if asked.when is None else (),
        "conditions": conditions,
        "browser": asked.browser,
        "requisites": asked.requisites,
        "steps": asked.step if asked.step is None else tuple(filter(None, asked.step)),
        "zone": asked.zone,
        "hours": asked.hours,
        "quiet": asked.quiet_hours,
        "summary": asked.summary,
        "headers": None if asked.headers is None else tuple(map(_header, filter(None, asked.headers))),
    }
    given = {name: value for name, value in said.items() if value is not None}
    return WatchSpec(**given, **_answered_for(context, asked), owner=context.user), [
        name for name, value in given.items() if value in ("", ())
    ]


def _answered_for(context: Context, asked: WatchOptions) -> dict[str, Any]:
    """Who asked, as far as private addresses go: an owner may stand in for whoever sits at the machine.

    That is for the page alone; targets of notifications are held to what their door may.
    """
    if not asked.private:
        return {"origin": context.origin}
    if not context.may(OWN):
        raise Refused("only owners may watch private addresses; ask an owner")
    return {"origin": "cli", "notify_origin": context.origin}


def filters_of(asked: WatchOptions) -> tuple[FilterText, ...] | None:
    """The filters that were said, None where nothing was."""
    if asked.filters is not None:
        return tuple(_pair(one, "filters", "kind", "expression") for one in asked.filters)
    return _by_kind(FILTER_KINDS, lambda kind: getattr(asked, kind))


def _conditions(asked: WatchOptions) -> tuple[AlertCondition, ...] | None:
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
        raise UsageError(f"'{kind[:70]}' is not a kind of condition; choose {', '.join(AlertConditionKind)}")
    return AlertCondition(AlertConditionKind(kind), text)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise UsageError(f"'{line[:70]}' is not a header; write 'Name: value'")
    return name.strip(), value.strip()


def _pair(one: Mapping[str, Any], where: str, *names: str) -> tuple[str, str]:
    """The two texts of an object, which has nothing else."""
    first, second = (one.get(name) for name in names)
    if set(one) != set(names) or not isinstance(first, str) or not isinstance(second, str):
        raise UsageError(f"each of {where} must be an object with the texts '{names[0]}' and '{names[1]}'")
    if not 0 < len(second) <= _LONGEST_TEXT:
        raise UsageError(f"'{names[1]}' in {where} must have 1 to {_LONGEST_TEXT} characters")
    return first, second


class WatchTag(NamedTuple):
    """A tag, how many watches have it, and its defaults; null or empty if it has none.

    Targets and steps are null for those who may not change them. Watches without a tag are listed under the empty name.
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
    requisites: bool | None
    step: tuple[str, ...] | None


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
    filters, own = tuple(WatchFilter(*one) for one in spec.filters), context.may_change(spec.owner)
    return WatchTag(
        name, watches, spec.every, spec.cron, spec.jitter, filters, spec.notify if own else None, len(spec.notify),
        ",".join(map(str, spec.when)), spec.conditions, spec.browser, spec.requisites, spec.steps if own else None,
    )  # fmt: skip


class ForgetTag(Parameters):
    """Which tag loses its defaults."""

    tag: str = parameter("The tag.", argument=True, longest=LONGEST_TAG)


class ForgottenTag(NamedTuple):
    """A tag without defaults, and how many watches have it."""

    tag: str
    watches: int


@operation(
    "watch_forget_tag", right=WRITE, verb="watch forget-tag", route=("DELETE", "/watches/tags"),
    audited="watch tag forgotten", creates=False, errors=(403, 404), examples=("letopis watch forget-tag news",),
    sentence=lambda row: f"the tag '{row.tag}' has no defaults any more",
)  # fmt: skip
def watch_forget_tag(context: Context, asked: ForgetTag) -> Value[ForgottenTag]:
    """Drop the defaults of a tag; its watches stay and fall back to the settings. For who gave them, and for owners."""
    refuse_other_tag(context, asked.tag)
    watches = WatchList(context.archive)
    watches.forget_tag(asked.tag)
    return Value(ForgottenTag(asked.tag, watches.tag_counts().get(asked.tag, 0)))
