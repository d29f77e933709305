"""Tags of watches, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from letopis.archive import READ, WRITE
from letopis.monitor.watch import AlertCondition, WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.operations.answers import Rows, Value
from letopis.operations.context import Context
from letopis.operations.operation import operation
from letopis.operations.parameters import Parameters, parameter
from letopis.operations.watch_options import LONGEST_TAG, WatchFilter, may_change, refuse_other_tag


class NoParameters(Parameters):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class WatchTag:
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
    filters, own = tuple(WatchFilter(*one) for one in spec.filters), may_change(context, spec.owner)
    return WatchTag(
        name, watches, spec.every, spec.cron, spec.jitter, filters, spec.notify if own else None, len(spec.notify),
        ",".join(map(str, spec.when)), spec.conditions, spec.browser, spec.requisites, spec.steps if own else None,
    )  # fmt: skip


class ForgetTag(Parameters):
    """Which tag loses its defaults."""

    tag: str = parameter("The tag.", argument=True, longest=LONGEST_TAG)


@dataclass(frozen=True, slots=True)
class ForgottenTag:
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
