"""Saved searches: a question that is run again when versions arrive, with alerts and a feed of new results.

Every question whose operation declares what identifies its rows can be saved: the words of a search, or the table of
a page with its filter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from letopis.archive import READ, WRITE
from letopis.archive.activity import newest_change
from letopis.archive.watches import (
    FOUND,
    FoundResult,
    SavedSearchRow,
    saved_key,
    saved_searches_of,
    stored_json,
    watches_of,
)
from letopis.errors import Refused, UsageError
from letopis.fetch import Origin
from letopis.lazy import lazy
from letopis.model import from_millis, to_millis
from letopis.model.printing import plain_text
from letopis.monitor.notifications import validate_target
from letopis.operations.context import Context
from letopis.operations.operation import Operation, Rows, Value, all_operations, operation
from letopis.operations.parameters import Parameters, bind, parameter

if TYPE_CHECKING:
    from letopis.operations import words
else:
    words = lazy("letopis.operations.words")  # whoever runs watches looks for saved searches, of which most have none

SEARCH = "search"
MOST_FOUND = 1000
"""Results that one look takes."""
_MOST_READ = 100_000
"""Rows of an answer that are held against the filter."""
_LONGEST_NAME, _LONGEST_FILTER, _LONGEST_PAGE = 100, 200, 2000
_MOST_TARGETS = 20
_PAGE = re.compile(r"/(?![/\\])[^\x00-\x20\\]*")
_TITLES = ("title", "name", "text", "detail", "message")
_ADDRESSES = ("url", "target")
MOST_NUMBER = 2**31 - 1
_NUMBER = "Number of the saved search."


@dataclass(frozen=True, slots=True)
class SavedQuestion:
    """A saved question: the name of an operation, its parameters as given, and a text that its rows contain.

    Times are stored as they were written, so that '7d ago' counts from each run. `page` is where the web interface
    shows the same; `origin` is the door through which the targets were set.
    """

    question: str
    values: Mapping[str, Any]
    filter: str = ""
    notify: tuple[str, ...] = ()
    origin: Origin = "http"
    page: str = ""

    def to_json(self) -> str:
        """As it is stored."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> SavedQuestion:
        """The inverse."""
        fields = stored_json(text)
        return cls(**fields | {"notify": tuple(fields["notify"])})

    @property
    def asked(self) -> tuple[Any, ...]:
        """What decides which rows it has."""
        return self.question, dict(self.values), self.filter


def savable(name: str) -> Operation[Any, Any]:
    """The operation of a question that can be saved; UsageError for others."""
    found = all_operations().get(name)
    if found is None or not found.row_key or found.right != READ:
        known = ", ".join(one.name for one in all_operations().values() if one.row_key)
        raise UsageError(f"'{name[:70]}' cannot be saved; choose one of {known}")
    return found


def results_of(context: Context, saved: SavedQuestion) -> list[FoundResult]:
    """The rows that the question has now, each once; errors of the question are raised.

    Nobody sees this answer: it counts for nothing that is learned from what people are shown.
    """
    asked = savable(saved.question)
    if saved.question == SEARCH:
        words.take_in_by_batches(context)
    values = dict(saved.values)
    limits = [one for one in asked.parameters_in("http") if one.alias == "limit"]
    if limits and "limit" not in values:
        values["limit"] = min(MOST_FOUND, int(limits[0].declared.at_most or MOST_FOUND))
    quiet = context._replace(unseen=True, rights=READ, offline=True)
    rows = asked(quiet, bind(asked.parameters, values, context.moment(), strict=True, door="http"))
    wanted, now = saved.filter.casefold(), to_millis(context.moment())
    fitting = (row for row in islice(rows, _MOST_READ) if _fits(row, wanted))
    found = (_result(asked, row, now) for row in fitting)
    return list({one.digest: one for one in islice(found, MOST_FOUND)}.values())


def _fits(row: Any, wanted: str) -> bool:
    """Whether a row holds a text; alerts of saved searches are left out, which would alert of themselves."""
    values = _fields(row)
    if values.get("kind") == FOUND:
        return False
    return not wanted or any(wanted in plain_text(value).casefold() for value in values.values())


def _fields(row: Any) -> dict[str, Any]:
    names = getattr(row, "_fields", None) or getattr(row, "__slots__", None) or vars(row)
    return {name: getattr(row, name) for name in names}


def _result(asked: Operation[Any, Any], row: Any, now: int) -> FoundResult:
    values = _fields(row)
    key = json.dumps([plain_text(values[name]) for name in asked.row_key])
    title = next((str(values[name]) for name in _TITLES if values.get(name)), "")
    url = next((str(values[name]) for name in _ADDRESSES if values.get(name)), "")
    return FoundResult(hashlib.sha256(key.encode()).hexdigest()[:32], now, url, title[:500] or url)


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """One saved search. `notify` is null for those who may not change it, because targets may contain passwords.

    `results` counts what it has found so far, `looked` is when it was last run, `error` why that failed.
    """

    id: int
    name: str
    owner: str
    question: str
    values: dict[str, Any]
    filter: str
    notify: tuple[str, ...] | None
    targets: int
    page: str
    results: int
    looked: datetime
    error: str
    undelivered: int
    delivery_error: str
    added: datetime


def _details(context: Context, rows: Sequence[SavedSearchRow]) -> list[SavedSearch]:
    counts, undelivered = saved_searches_of(context.archive).counts(), watches_of(context.archive).undelivered()
    made = []
    for row in rows:
        saved, lost = SavedQuestion.from_json(row.spec), undelivered.get(saved_key(row.id))
        own = context.may_change(row.owner)
        made.append(SavedSearch(
            row.id, row.name, row.owner, saved.question, dict(saved.values), saved.filter,
            saved.notify if own else None, len(saved.notify), saved.page, counts.get(row.id, 0),
            from_millis(row.looked), row.error, lost.retried + lost.failed if lost else 0,
            lost.error if lost else "", from_millis(row.added),
        ))  # fmt: skip
    return made


def own_search(context: Context, number: int) -> SavedSearchRow:
    """A saved search that whoever asks may change; Refused when it belongs to somebody else."""
    row = saved_searches_of(context.archive).by_id(number)
    if not context.may_change(row.owner):
        whose = f"to '{row.owner}'" if row.owner else "to the owners"
        raise Refused(f"the saved search {row.id} belongs {whose}; save one of your own")
    return row


class _SavedFields(Parameters):
    """The options of a saved search; None means not given."""

    question: str | None = parameter(
        "Question: search, or a table such as broken, site_audit, mapdiff, versions; default: search.",
        default=None, longest=64, metavar="NAME",
    )  # fmt: skip
    values: tuple[str, ...] | None = parameter(
        "A parameter of the question, such as site=example.org; can be repeated.", default=None, named="with",
        metavar="NAME=VALUE", at_most=50,
    )  # fmt: skip
    filter: str | None = parameter("Only rows that contain this text.", default=None, longest=_LONGEST_FILTER)
    notify: tuple[str, ...] | None = parameter(
        "Where alerts go: https://..., file:/path, or an address of apprise; can be repeated.", default=None,
        at_most=_MOST_TARGETS, metavar="TARGET",
    )  # fmt: skip
    page: str | None = parameter(
        "Where the web interface shows the same, such as /site/example.org?view=broken.",
        default=None, longest=_LONGEST_PAGE, metavar="PATH",
    )  # fmt: skip


class SaveSearch(_SavedFields):
    """What to save, and under which name."""

    name: str = parameter("Name of the saved search.", argument=True, longest=_LONGEST_NAME)
    query: str | None = parameter(
        "Words, as for a search.", default=None, named="q", argument=True, metavar="[QUERY]", longest=4096
    )


class EditSearch(_SavedFields):
    """Which one, and what to change; None leaves an option unchanged."""

    id: int = parameter(_NUMBER, argument=True, at_least=1, at_most=MOST_NUMBER)
    name: str | None = parameter("Another name.", default=None, longest=_LONGEST_NAME)
    query: str | None = parameter("Other words, as for a search.", default=None, named="q", longest=4096)


def _given_values(asked: SaveSearch | EditSearch, before: Mapping[str, Any], question: str) -> dict[str, Any]:
    """The parameters that were said as name=value, those of a list several times; those before where none were."""
    if asked.values is None and asked.query is None:
        return dict(before)
    kinds = {one.alias: one for one in savable(question).parameters_in("http")}
    values: dict[str, Any] = {}
    for pair in asked.values or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"'{pair[:70]}' is not a parameter; write name=value")
        if name in kinds and kinds[name].repeated:
            values.setdefault(name, []).append(value)
        else:
            values[name] = value
    return values | ({"q": asked.query} if asked.query is not None else {})


def _question(context: Context, asked: SaveSearch | EditSearch, before: SavedQuestion) -> SavedQuestion:
    """What is saved from now on; everything in it can be used."""
    name = before.question if asked.question is None else asked.question
    page = before.page if asked.page is None else asked.page
    if page and not _PAGE.fullmatch(page):
        raise UsageError("page must be a path of the web interface, such as /search?q=harvest")
    saved = replace(
        before,
        question=name,
        values=_given_values(asked, before.values if name == before.question else {}, name),
        filter=before.filter if asked.filter is None else asked.filter.strip(),
        page=page,
    )
    if asked.notify is None:
        return saved
    private = context.settings.fetch.private
    targets = [validate_target(one, context.origin, private) for one in asked.notify if one]
    return replace(saved, notify=tuple(targets), origin=context.origin)


def _sentence(row: SavedSearch) -> str:
    return f"saved as {row.id}: {row.name}, {row.results} {'result' if row.results == 1 else 'results'} so far"


@operation(
    "saved_add", right=WRITE, verb="saved add", route=("POST", "/saved"), status=201, audited="search saved",
    sentence=_sentence, errors=(403, 404, 429, 501), creates=False,
    subject=lambda asked: asked.name,
    examples=(
        "letopis saved add Harvest 'harvest site:example.org' --notify https://example.org/hook",
        "letopis saved add 'Dead links' --question broken --with site=example.org --filter 404",
    ),
)  # fmt: skip
def saved_add(context: Context, asked: SaveSearch) -> Value[SavedSearch]:
    """Save a search or a table; it runs again as versions arrive, and alerts of new results.

    Of the results that it has already nobody is alerted. A feed of its results is at /feed/saved/ID. Whoever saves
    it owns it: only they and the owners of the archive change it.
    """
    if not asked.name.strip():
        raise UsageError("name is empty: a name of your own for it")
    saved = _question(context, asked, SavedQuestion(SEARCH, {}))
    if saved.question == SEARCH and not saved.values.get("q"):
        raise UsageError("q is empty: the words to search for")
    position, now = newest_change(context.archive), to_millis(context.moment())
    found = results_of(context, saved)
    context.charge("watches", 1)
    row = SavedSearchRow(0, asked.name.strip(), context.user, saved.to_json(), position, now, now, "", now)
    return Value(_details(context, [saved_searches_of(context.archive).add(row, found)])[0])


@operation(
    "saved_edit", right=WRITE, verb="saved edit", route=("PUT", "/saved/{id}"), audited="saved search changed",
    creates=False, sentence=_sentence, errors=(403, 404, 501),
    examples=("letopis saved edit 1 --name 'Harvest news' --notify https://example.org/hook",),
)  # fmt: skip
def saved_edit(context: Context, asked: EditSearch) -> Value[SavedSearch]:
    """Change a saved search: only what is given changes, an empty value resets it.

    With another question, words or filter the results so far are those that it has now, of which nobody is alerted.
    """
    row = own_search(context, asked.id)
    before = SavedQuestion.from_json(row.spec)
    saved = _question(context, asked, before)
    name = row.name if asked.name is None else asked.name.strip()
    if not name:
        raise UsageError("name is empty: a name of your own for it")
    now = to_millis(context.moment())
    changed = row._replace(name=name, spec=saved.to_json(), due=now)
    found = None
    if saved.asked != before.asked:
        changed = changed._replace(position=newest_change(context.archive), looked=now, error="")
        found = results_of(context, saved)
    saved_searches_of(context.archive).change(changed, found)
    return Value(_details(context, [changed])[0])


class SavedSearchesQuery(Parameters):
    """Which saved searches."""

    owner: str | None = parameter("Only those of this person.", default=None, longest=64)


@operation(
    "saved_list", right=READ, verb="saved list", route=("GET", "/saved"), listed="saved", creates=False,
    columns=("id", "name", "owner", "question", "values", "filter", "results", "looked", "error"),
    examples=("letopis saved list",),
)  # fmt: skip
def saved_list(context: Context, asked: SavedSearchesQuery) -> Rows[SavedSearch]:
    """List the saved searches, oldest first."""
    rows = [row for row in saved_searches_of(context.archive).all() if asked.owner in (None, row.owner)]
    remark = "" if rows else "no search is saved; 'letopis saved add NAME WORDS' saves one"
    return Rows(_details(context, rows), remark=remark)


class OneSavedSearch(Parameters):
    """Which saved search."""

    id: int = parameter(_NUMBER, argument=True, at_least=1, at_most=MOST_NUMBER)


@operation(
    "saved_show", right=READ, verb="saved show", route=("GET", "/saved/{id}"), errors=(404,), creates=False,
    examples=("letopis saved show 1",),
)  # fmt: skip
def saved_show(context: Context, asked: OneSavedSearch) -> Value[SavedSearch]:
    """Show one saved search."""
    return Value(_details(context, [saved_searches_of(context.archive).by_id(asked.id)])[0])


class SavedResultsQuery(OneSavedSearch):
    """Of which saved search, and how many."""

    limit: int = parameter("Maximum number of rows.", default=100, at_least=1, at_most=10_000)


@dataclass(frozen=True, slots=True)
class SavedResult:
    """A result of a saved search, and when it was first found."""

    time: datetime
    url: str
    title: str


@operation(
    "saved_results", right=READ, verb="saved results", route=("GET", "/saved/{id}/results"), listed="results",
    errors=(404,), creates=False, about={"id": int, "name": str}, columns=("time", "title", "url"),
    examples=("letopis saved results 1",),
)  # fmt: skip
def saved_results(context: Context, asked: SavedResultsQuery) -> Rows[SavedResult]:
    """List what a saved search has found so far, the newest first, each with when it was found."""
    searches = saved_searches_of(context.archive)
    row = searches.by_id(asked.id)
    return Rows(map(saved_result, searches.results(asked.id, asked.limit)), {"id": row.id, "name": row.name})


def saved_result(one: FoundResult) -> SavedResult:
    """A result as it is shown."""
    return SavedResult(from_millis(one.time), one.url, one.title)


@operation(
    "saved_remove", right=WRITE, verb="saved remove", route=("DELETE", "/saved/{id}"), creates=False,
    audited="saved search removed", errors=(403, 404), sentence=lambda row: f"no longer saved: {row.name}",
    examples=("letopis saved remove 1",),
)  # fmt: skip
def saved_remove(context: Context, asked: OneSavedSearch) -> Value[SavedSearch]:
    """Remove a saved search with its results; its alerts stay."""
    row = own_search(context, asked.id)
    gone = _details(context, [row])[0]
    saved_searches_of(context.archive).remove(asked.id)
    return Value(gone)
