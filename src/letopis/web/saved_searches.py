"""`/saved`: saved searches and tables, each asked again when versions come. `/saved/<number>`: one with its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.door import context_of
from letopis.errors import LetopisError, shell_words
from letopis.operations import Context, bind
from letopis.operations import saved_searches as operations
from letopis.operations.alerts import DeliveriesQuery, saved_test, watch_deliveries
from letopis.operations.operation import Rows
from letopis.operations.saved_looks import CheckSavedCommand, saved_check
from letopis.tuples import NamedTuple
from letopis.web.languages import translatable
from letopis.web.pages import FieldsDep, PageRoute, form_status, render_page
from letopis.web.tables import TableColumn, make_table, table_download

router = APIRouter(route_class=PageRoute)

_MOST_RESULTS = 2000
_DELIVERIES = 8
QUESTION_NAMES = {
    "search": translatable("search"),
    "mapdiff": translatable("changes of a site"),
    "broken": translatable("broken links"),
    "report": translatable("findings about a site"),
    "site_audit": translatable("audit of a site"),
    "links": translatable("links"),
    "duplicates": translatable("duplicates"),
    "watch_list": translatable("watches"),
    "watch_alerts": translatable("alerts"),
}
SAVED_COLUMNS = (
    TableColumn("name", translatable("Name"), "custom"),
    TableColumn("question", translatable("Kind"), "named"),
    TableColumn("asked", translatable("Query")),
    TableColumn("results", translatable("Results so far"), "number"),
    TableColumn("newest", translatable("Newest result"), "ago", aside=True),
    TableColumn("looked", translatable("Last run"), "ago", aside=True),
    TableColumn("targets", translatable("Notified"), "number", hidden=True),
    TableColumn("owner", translatable("Owner"), aside=True),
    TableColumn("error", translatable("Problem"), hidden=True),
)
RESULT_COLUMNS = (
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("title", translatable("Title"), hidden=True),
    TableColumn("time", translatable("Found"), "ago"),
)
_DONE = {
    "added": translatable("Saved. New results appear here, among the alerts and in the feed."),
    "saved": translatable("Changes saved."),
    "checked": translatable("It was run just now."),
    "tested": translatable("The test notification was delivered."),
    "removed": translatable("The saved search is removed; its alerts stay."),
}  # fmt: skip


class SavedLine(NamedTuple):
    """A saved search as the list shows it."""

    saved: operations.SavedSearch
    asked: str
    newest: Any

    def __getattr__(self, name: str) -> Any:
        """Fields of the search are columns of the table."""
        return getattr(self.saved, name)


def written_question(values: Mapping[str, Any], wanted: str) -> str:
    """What is asked for, as people read it: words, what they are narrowed by, the filter; a site alone by its name."""
    pairs = [
        str(value)
        if name == "q" or list(values) == ["site"]
        else f"{name}: {' '.join(value) if isinstance(value, list) else value}"
        for name, value in values.items()
    ]
    return ", ".join([*pairs, *([f"“{wanted}”"] if wanted else [])])


def _line(context: Context, saved: operations.SavedSearch) -> SavedLine:
    newest = next(iter(operations.saved_results(context, operations.SavedResultsQuery(id=saved.id, limit=1))), None)
    return SavedLine(saved, written_question(saved.values, saved.filter), newest and newest.time)


@router.get("/saved")
def saved_list(request: Request, done: str = "") -> Response:
    """All of them."""
    context = context_of(request)
    found = operations.saved_list(context, operations.SavedSearchesQuery())
    table = make_table(request, SAVED_COLUMNS, [_line(context, one) for one in found])
    return table_download(table, "saved-searches") or render_page(
        request, "saved_list.html", table=table, called=QUESTION_NAMES, done=_DONE.get(done, "")
    )


class SavedNotice(NamedTuple):
    """What to say above the form, and what it holds."""

    form: Mapping[str, Any]
    done: str = ""
    problem: str = ""


@router.get("/saved/new")
def new_search(request: Request) -> Response:
    """The form, with what a search or a table was saved from."""
    given = request.query_params
    form = {name: given.get(name, "") for name in ("name", "q", "question", "filter", "page", "notify")}
    return _new_page(request, SavedNotice(form | {"with": given.getlist("with")}))


def _new_page(request: Request, notice: SavedNotice, status: int = 200) -> Response:
    form = notice.form
    pairs = dict(pair.partition("=")[::2] for pair in form["with"])
    suggested = form["name"] or form["q"] or written_question(pairs, form["filter"])
    return render_page(
        request, "saved_new.html", status, ask=notice, form=form, suggested=suggested[:100], called=QUESTION_NAMES,
        asked=written_question(pairs, ""),
    )  # fmt: skip


def _form_values(fields: Mapping[str, list[str]]) -> dict[str, Any]:
    """What a form says; one target a line."""
    said: dict[str, Any] = {name: fields[name][0] for name in ("name", "q", "question", "page") if fields.get(name)}
    said |= {"filter": fields.get("filter", [""])[0], "notify": fields.get("notify", [""])[0].split()}
    return said | ({"with": fields["with"]} if fields.get("with") else {})


@router.post("/saved")
def save(request: Request, fields: FieldsDep) -> Response:
    """Saves what the form says."""
    context, said = context_of(request), _form_values(fields)
    try:
        made = operations.saved_add(context, bind(operations.SaveSearch, said, context.moment(), door="http")).value
    except LetopisError as error:
        empty = {"name": "", "q": "", "question": "", "page": "", "with": []}
        form = {**empty, **said, "notify": "\n".join(said["notify"])}
        return _new_page(request, SavedNotice(form, problem=shell_words(error)), form_status(error))
    return RedirectResponse(f"/saved/{made.id}?done=added", 303)


@router.get("/saved/{number:row}")
def saved_page(request: Request, number: int, done: str = "") -> Response:
    """One of them: what it asks, what it has found, its feeds."""
    return _saved_page(request, number, SavedNotice({}, _DONE.get(done, "")))


def _saved_page(request: Request, number: int, notice: SavedNotice, status: int = 200) -> Response:
    context = context_of(request)
    saved = operations.saved_show(context, operations.OneSavedSearch(id=number)).value
    asked = operations.SavedResultsQuery(id=number, limit=_MOST_RESULTS)
    table = make_table(request, RESULT_COLUMNS, list(operations.saved_results(context, asked)))
    sent = watch_deliveries(context, DeliveriesQuery(limit=1000))
    page = saved.page or ("/search?" + urlencode(saved.values, doseq=True) if saved.question == "search" else "")
    return table_download(table, f"saved-{number}") or render_page(
        request, "saved.html", status, saved=saved, table=table, page=page, called=QUESTION_NAMES, ask=notice,
        asked=written_question(saved.values, saved.filter),
        deliveries=[row for row in sent if row.saved == number][:_DELIVERIES],
        may_change=context.may_change(saved.owner),
        form=notice.form or {"name": saved.name, "q": saved.values.get("q", ""), "filter": saved.filter,
                             "notify": "\n".join(saved.notify or ())},
    )  # fmt: skip


@router.post("/saved/{number:row}")
def change(request: Request, number: int, fields: FieldsDep) -> Response:
    """Saves the form, asks again, or removes it."""
    context, action, said = context_of(request), fields.get("action", ["save"])[0], _form_values(fields)
    try:
        if action == "remove":
            operations.saved_remove(context, operations.OneSavedSearch(id=number))
            return RedirectResponse("/saved?done=removed", 303)
        if action in ("check", "test"):
            for fault in _DOES[action](context, number).faults:
                raise fault
            return RedirectResponse(f"/saved/{number}?done={action}ed", 303)
        _edit(context, number, said)
    except LetopisError as error:
        form = {"name": "", "q": "", **said, "notify": "\n".join(said["notify"])} if action == "save" else {}
        return _saved_page(request, number, SavedNotice(form, problem=shell_words(error)), form_status(error))
    return RedirectResponse(f"/saved/{number}?done=saved", 303)


_DOES: dict[str, Callable[[Context, int], Rows[Any]]] = {
    "check": lambda context, number: saved_check(context, CheckSavedCommand(id=number)),
    "test": lambda context, number: saved_test(context, operations.OneSavedSearch(id=number)),
}


def _edit(context: Context, number: int, said: dict[str, Any]) -> None:
    """Other words replace those of a search; what it is narrowed by stays."""
    before = operations.saved_show(context, operations.OneSavedSearch(id=number)).value
    kept = [
        f"{name}={value}"
        for name, values in before.values.items()
        for value in (values if isinstance(values, list) else [values])
        if name != "q"
    ]
    values = {"id": number, "name": said.get("name", ""), "filter": said["filter"], "notify": said["notify"] or [""]}
    if "q" in said:
        values |= {"q": said["q"], "with": kept}
    operations.saved_edit(context, bind(operations.EditSearch, values, context.moment(), door="http"))
