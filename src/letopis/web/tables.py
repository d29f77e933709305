"""One table for all lists: sorted, filtered, with the columns that are wanted, in pages, and as CSV, JSON or Parquet.

Everything that is chosen stands in the address, so that a link shows everybody the same table. Where a page has
several tables, each has a key, which stands before the names of its choices.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Request, Response

from letopis.exchange.parquet_export import table_file
from letopis.model.printing import plain_text
from letopis.operations import json_value
from letopis.tuples import NamedTuple
from letopis.web.languages import current_language, language_of, translate, use_language

PAGE_ROWS = 50
MOST_ROWS = 10_000
"""Rows that a page asks for at most; of a longer list these are sorted and filtered, and the page says so."""
_MOST_FILTER = 200
_OK = 200
T = TypeVar("T")
_DIGITS = re.compile(r"([0-9]+)")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_OWN = ("sort", "filter", "page", "hide", "as")
_NOT_DATA = "actions"
_MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8", "json": "application/json", "parquet": "application/vnd.apache.parquet",
}  # fmt: skip
FORMATS = tuple(name for name in _MEDIA_TYPES if name != "parquet" or find_spec("pyarrow") is not None)
"""What a table can be taken along as; Parquet where its library is installed."""


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """One page of a list. `earlier` and `later` are numbers of the neighbouring pages, None at the ends."""

    rows: Sequence[T]
    number: int
    pages: int
    total: int
    first: int

    @property
    def earlier(self) -> int | None:
        """The page before."""
        return self.number - 1 if self.number > 1 else None

    @property
    def later(self) -> int | None:
        """The page behind."""
        return self.number + 1 if self.number < self.pages else None


def list_page(rows: Sequence[T], wanted: str, size: int = 50) -> ListPage[T]:
    """The page of a whole list that is asked for; nonsense is the first page, too far the last."""
    number, pages = page_position(len(rows), wanted, size)
    start = (number - 1) * size
    return ListPage(rows[start : start + size], number, pages, len(rows), start)


def page_position(total: int, wanted: str, size: int) -> tuple[int, int]:
    """The number of the page asked for, within bounds, and how many there are."""
    pages = max(1, -(-total // size))
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else 1
    return min(max(number, 1), pages), pages


class TableColumn(NamedTuple):
    """A column: the field that it shows, its heading, and how its values are written.

    `kind` is text, number, size, decimal, time, ago, due, page (an address with its own page here), link (any address),
    site, job, state, outcome, status, language or badges; those of the kind 'custom' are drawn by the page, and so are
    'actions', which are no data. One that is `hidden` is shown when it is asked for; one that is `aside` a phone shows
    when a row is opened. It is sorted `by` another field where its own text says less than that. What is written in
    words of ours is `called` so, and the filter finds it by these words.
    """

    name: str
    label: str
    kind: str = "text"
    hidden: bool = False
    aside: bool = False
    by: str = ""
    called: Mapping[str, str] = MappingProxyType({})


class TableQuestion(NamedTuple):
    """What a table answers: an operation and its parameters, so that the table with its filter can be saved."""

    operation: str
    values: Mapping[str, str] = MappingProxyType({})


class TableView(NamedTuple):
    """A table as its template wants it; `found` are all rows that fit, `part` the page of them that is shown.

    So `few` rows are seen at a glance and need no filter.
    """

    columns: Sequence[TableColumn]
    shown: Sequence[TableColumn]
    found: Sequence[Any]
    part: ListPage[Any]
    total: int
    sort: str
    descending: bool
    filter: str
    kept: Mapping[str, str]
    link: Callable[..., str]
    key: str
    form: str
    formats: Sequence[str] = FORMATS
    question: TableQuestion | None = None
    few: int = 0

    @property
    def data_columns(self) -> list[TableColumn]:
        """Those shown that hold data."""
        return [column for column in self.shown if column.kind != _NOT_DATA]

    def with_rows(self, make: Callable[[Sequence[Any]], Sequence[Any]]) -> TableView:
        """The same with all its rows made whole, for a file."""
        return self._replace(found=_Later(make, self.found))

    def with_part(self, make: Callable[[Sequence[Any]], Sequence[Any]]) -> TableView:
        """The same with the rows of its page made whole: what costs much is asked for those that are seen."""
        return self._replace(part=replace(self.part, rows=make(self.part.rows)))

    def cell(self, row: Any, column: TableColumn) -> Any:
        """The value of a row in a column; of an address without contents, such as an error, there is no size."""
        value, status = getattr(row, column.name), getattr(row, "status", None)
        return None if column.kind == "size" and not value and isinstance(status, int) and status != _OK else value

    def sort_link(self, column: TableColumn) -> str:
        """Sorts by a column; once more, the other way round."""
        turned = self.sort == column.name and not self.descending
        return self.link(sort=f"-{column.name}" if turned else column.name, page="")

    def sorted_by(self, column: TableColumn) -> str:
        """What `aria-sort` says of a column."""
        if self.sort != column.name:
            return ""
        return "descending" if self.descending else "ascending"

    @property
    def save_link(self) -> str:
        """Where the table with its filter is saved under a name; empty for one that cannot be asked again."""
        if self.question is None:
            return ""
        values = [("with", f"{name}={value}") for name, value in self.question.values.items()]
        asked = [("question", self.question.operation), *values, ("filter", self.filter), ("page", self.link(page=""))]
        return "/saved/new?" + urlencode([(name, value) for name, value in asked if value])

    def toggle_link(self, column: TableColumn) -> str:
        """Shows or hides a column."""
        names = [one.name for one in self.shown]
        wanted = [one.name for one in self.columns if (one.name in names) != (one.name == column.name)]
        return self.link(hide=",".join(one.name for one in self.columns if one.name not in wanted) or "none")


class _Later(Sequence[Any]):
    """Rows that are made when somebody reads them."""

    def __init__(self, make: Callable[[Sequence[Any]], Sequence[Any]], rows: Sequence[Any]) -> None:
        self._made = cache(lambda: make(rows))
        self._length = len(rows)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: Any) -> Any:
        return self._made()[at]


class TableAddress(NamedTuple):
    """Where a table stands: the address of its page, and the parameters of the page that are ours."""

    path: str
    query: Mapping[str, str]


def table_names(key: str) -> tuple[str, ...]:
    """The names of all choices of a table, as they stand in an address."""
    return tuple(f"{key}.{name}" if key else name for name in _OWN)


def make_table(
    request: Request | TableAddress,
    columns: Sequence[TableColumn],
    rows: Sequence[Any],
    key: str = "",
    size: int = PAGE_ROWS,
    question: TableQuestion | None = None,
    place: str = "",
    few: int = 0,
) -> TableView:
    """The table that an address asks for; what it asks wrongly is left out.

    Its links lead to the `place` on the page where it stands, for one that stands below much else.
    """
    where = request if isinstance(request, TableAddress) else TableAddress(request.url.path, request.query_params)
    mark, own = f"{key}." if key else "", table_names(key)
    asked = {name: where.query.get(mark + name, "") for name in _OWN}
    data = [column for column in columns if column.kind != _NOT_DATA]
    sort, wanted = asked["sort"], asked["filter"][:_MOST_FILTER].strip()
    name, names = sort.removeprefix("-"), [column.name for column in data]
    hidden = asked["hide"].split(",") if asked["hide"] else [column.name for column in columns if column.hidden]
    shown = [column for column in columns if column.name not in hidden] or list(columns[:1])
    kept = {name: value for name, value in where.query.items() if name not in (*own, "checked")}

    def link(**changed: str) -> str:
        values = {name: asked[name] for name in _OWN if name != "as"} | changed
        query = urlencode({**kept, **{mark + name: value for name, value in values.items() if value}})
        return (f"{where.path}?{query}" if query else where.path) + (f"#{place}" if place else "")

    with use_language(current_language() if isinstance(request, TableAddress) else language_of(request)):
        found = [row for row in rows if not wanted or _holds(row, data, wanted.casefold())]
    if name in names:
        by = next(column.by for column in data if column.name == name) or name
        found.sort(key=lambda row: _sort_key(getattr(row, by)), reverse=sort.startswith("-"))
    part = list_page(found, asked["page"], size)
    chosen = name if name in names else ""
    return TableView(
        columns, shown, found, part, len(rows), chosen, sort.startswith("-"), wanted, kept, link, key, asked["as"],
        question=question, few=few,
    )  # fmt: skip


def table_download(table: TableView | None, name: str) -> Response | None:
    """The rows and columns that a table shows, over all its pages, where the address asks for them as a file."""
    if table is None or table.form not in table.formats:
        return None
    form = table.form
    headers = {"content-disposition": f'attachment; filename="{name}.{form}"', "x-content-type-options": "nosniff"}
    return Response(_WRITERS[form](table), media_type=_MEDIA_TYPES[form], headers=headers)


def first_download(tables: Mapping[str, TableView]) -> Response | None:
    """The same of the first of several tables that the address asks for as a file; by the names of the files."""
    found = (table_download(table, name) for name, table in tables.items())
    return next((answer for answer in found if answer is not None), None)


def _holds(row: Any, columns: Sequence[TableColumn], wanted: str) -> bool:
    texts = (text for column in columns for text in _cell_texts(getattr(row, column.name), column.called))
    return any(wanted in text.casefold() for text in texts)


def _cell_texts(value: Any, called: Mapping[str, str]) -> Iterator[str]:
    """What a cell can be found by: its value, and what the reader sees instead."""
    yield plain_text(value)
    several = value if isinstance(value, tuple) else (value,)
    yield from (translate(called[one]) for one in several if called and one in called)


def _sort_key(value: Any) -> tuple[int, Any]:
    """Numbers before texts, in which numbers count as such, and what is missing last; lists by how long they are."""
    if value is None or value in ("", ()):
        return (2, "")
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, tuple | list):
        return (0, len(value))
    parts = enumerate(_DIGITS.split(plain_text(value).casefold()))
    return (1, [(len(part.lstrip("0")), part.lstrip("0")) if at % 2 else part for at, part in parts])


def _csv_bytes(table: TableView) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.name for column in table.data_columns])
    for row in table.found:
        writer.writerow([_safe_cell(getattr(row, column.name)) for column in table.data_columns])
    return out.getvalue().encode()


def _safe_cell(value: Any) -> str:
    """A text from a page never becomes a formula of whoever opens the file."""
    text = plain_text(value)
    return text if isinstance(value, int | float) or not text.startswith(_FORMULA) else f"'{text}"


def _json_bytes(table: TableView) -> bytes:
    names = [column.name for column in table.data_columns]
    return json.dumps(
        [{name: json_value(getattr(row, name)) for name in names} for row in table.found], indent=1
    ).encode()


def _parquet_bytes(table: TableView) -> bytes:
    """Each column with values of one kind: numbers as they are, times as times, everything else as text."""
    columns = {}
    for column in table.data_columns:
        values = [getattr(row, column.name) for row in table.found]
        same = {type(value) for value in values if value is not None}
        plain = same <= {int, float} or same in ({bool}, {datetime})
        columns[column.name] = values if plain else [None if value is None else plain_text(value) for value in values]
    return table_file(columns)


_WRITERS: dict[str, Callable[[TableView], bytes]] = {
    "csv": _csv_bytes, "json": _json_bytes, "parquet": _parquet_bytes,
}  # fmt: skip
