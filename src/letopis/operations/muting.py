"""Muting: changes of a page that did not count, and the rules that people set for a page or a whole host."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from letopis.archive import READ, WRITE, Archive
from letopis.archive.mute_rules import MuteKind, MuteRule, MuteRuleBook
from letopis.errors import LetopisError, NotFound
from letopis.model import Check
from letopis.operations.context import Context
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import parse_user_url

_LONGEST_TEXT = 500
_MOST_COMPARED = 100
"""Versions that are read again for what differs in them."""
_PLACE = "A page, or a host for all of its pages."


def mute_place(text: str) -> str:
    """The URL, or the host where no scheme and no path is given."""
    if "://" in text or "/" in text:
        return parse_user_url(text)
    return host_of(parse_user_url(text))


class MutedQuery(Parameters):
    """Of which page."""

    url: str = parameter("Address of the page.", argument=True)
    limit: int = parameter("Maximum number of rows.", default=100, at_least=1, at_most=10_000)


class MutedChange(NamedTuple):
    """A text that differed in a version and did not count, and since which version."""

    time: datetime
    version: int | None
    why: str
    text: str


@operation(
    "muted", right=READ, verb="muted", route=("GET", "/muted"), errors=(404,),
    examples=("letopis muted https://example.org/",),
)  # fmt: skip
def muted(context: Context, asked: MutedQuery) -> Rows[MutedChange]:
    """List differences between versions of a page that did not count as changes, with the reason, newest first.

    Counters, dates and identifiers at places that always change, items that take turns, and what a rule mutes. For a
    version in which only clocks, counters or markup differed the first line of its text that differs is shown; of the
    hundred newest of these.
    """
    checks = context.archive.history(asked.url)
    rows = [row for check in reversed(checks) for row in _muted_in(check)][: asked.limit]
    unnamed = [at for at, row in enumerate(rows) if not row.text]
    for at in unnamed[:_MOST_COMPARED]:
        rows[at] = rows[at]._replace(text=_first_difference(context.archive, asked.url, rows[at].version))
    return Rows(rows, remark="" if rows else "nothing was muted")


def _first_difference(archive: Archive, url: str, version: int | None) -> str:
    """The first line of text that a version has and the one before has not; nothing where either is not kept."""
    if not version:
        return ""
    try:
        old, new = (archive.get(url, version=number) for number in (version - 1, version))
        lines = str(archive.difference(old, new)).splitlines()[2:]
    except LetopisError:
        return ""
    return next((line[1:] for line in lines if line.startswith("+")), "")[:_LONGEST_TEXT]


def _muted_in(check: Check) -> Iterator[MutedChange]:
    if check.verdict == "noise" and not check.muted:
        yield MutedChange(check.checked_at, check.version, check.reason, "")
    for entry in check.muted:
        why, _, text = entry.partition(": ")
        yield MutedChange(check.checked_at, check.version, why, text)


class MuteCommand(Parameters):
    """Where, which text, and what to do with it."""

    place: str = parameter(_PLACE, argument=True, metavar="URL|HOST")
    text: str = parameter("The text of a block; numbers in it match any number.", argument=True, longest=_LONGEST_TEXT)
    kind: MuteKind = parameter(
        "always: mute it; behind: mute what follows it; never: do not mute it however often it changes.",
        default="always",
    )


class RuleOfPlace(Parameters):
    """Which rule."""

    place: str = parameter(_PLACE, argument=True, metavar="URL|HOST")
    text: str = parameter("The text of the rule.", argument=True, longest=_LONGEST_TEXT)


class RulesQuery(Parameters):
    """Of which place."""

    place: str | None = parameter(_PLACE, default=None, argument=True, metavar="[URL|HOST]")


def _sentence(rule: MuteRule) -> str:
    said = {"always": "muted", "behind": "muted behind it", "never": "never muted"}[rule.kind]
    return f"{said} at {rule.place} from now on: {rule.text}"


@operation(
    "mute_add", right=WRITE, verb="mute add", route=("POST", "/mutes"), sentence=_sentence,
    examples=(
        "letopis mute add https://example.org/ 'Visitor number 17'",
        "letopis mute add example.org 'Quote of the day' --kind behind",
        "letopis mute add https://example.org/ 'Downloads: 17' --kind never",
    ),
)  # fmt: skip
def mute_add(context: Context, asked: MuteCommand) -> Value[MuteRule]:
    """Mute changes of a text on a page or a host, or of what follows it; or never mute it.

    It holds for verdicts from now on, in all doors alike; what is recorded stays.
    """
    return Value(MuteRuleBook(context.archive).add(mute_place(asked.place), asked.kind, asked.text))


@operation(
    "mute_remove", right=WRITE, verb="mute remove", route=("DELETE", "/mutes"), creates=False, errors=(404,),
    sentence=lambda rule: f"no rule any more at {rule.place}: {rule.text}",
    examples=("letopis mute remove example.org 'Quote of the day'",),
)  # fmt: skip
def mute_remove(context: Context, asked: RuleOfPlace) -> Value[MuteRule]:
    """Remove the rule for changes of a text."""
    place, book = mute_place(asked.place), MuteRuleBook(context.archive)
    found = book.find(place, asked.text)
    if found is None:
        raise NotFound(f"{place} has no such rule; see 'letopis mute list'")
    book.remove(place, asked.text)
    return Value(found)


@operation(
    "mute_list", right=READ, verb="mute list", route=("GET", "/mutes"), columns=("place", "kind", "text", "added"),
    examples=("letopis mute list", "letopis mute list example.org"),
)  # fmt: skip
def mute_list(context: Context, asked: RulesQuery) -> Rows[MuteRule]:
    """List the mute rules: texts that are always muted, what follows a text, texts that are never muted."""
    places = () if asked.place is None else (mute_place(asked.place),)
    rows = MuteRuleBook(context.archive).rules(*places)
    return Rows(rows, remark="" if rows else "no rules")
