"""One table for all lists: sorted, filtered, with the columns that are wanted, in pages, and as CSV or JSON.

Everything that is chosen stands in the address, so that a link shows everybody the same table.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Request, Response

from letopis.model import rfc3339
from letopis.operations import json_value
from letopis.web.pages import ListPage, list_page

PAGE_ROWS = 50
_MOST_FILTER = 200
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_OWN = ("sort", "filter", "page", "hide", "as")


class TableColumn(NamedTuple):
    """A column: the field that it shows, its heading, and how its values are written.

    `kind` is text, number, size, time, page (an address with its own page here), status or badges. One that is
    `hidden` is shown when it is asked for.
    """

    name: str
    label: str
    kind: str = "text"
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as its template wants it."""

    columns: Sequence[TableColumn]
    shown: Sequence[TableColumn]
    part: ListPage[Any]
    total: int
    sort: str
    descending: bool
    filter: str
    kept: Mapping[str, str]
    link: Callable[..., str]

    def cell(self, row: Any, column: TableColumn) -> Any:
        """The value of a row in a column."""
        return getattr(row, column.name)

    def sort_link(self, column: TableColumn) -> str:
        """Sorts by a column; once more, the other way round."""
        turned = self.sort == column.name and not self.descending
        return self.link(sort=f"-{column.name}" if turned else column.name, page="")

    def sorted_by(self, column: TableColumn) -> str:
        """What `aria-sort` says of a column."""
        if self.sort != column.name:
            return ""
        return "descending" if self.descending else "ascending"

    def toggle_link(self, column: TableColumn) -> str:
        """Shows or hides a column."""
        names = [one.name for one in self.shown]
        wanted = [one.name for one in self.columns if (one.name in names) != (one.name == column.name)]
        return self.link(hide=",".join(one.name for one in self.columns if one.name not in wanted) or "none")


def make_table(request: Request, columns: Sequence[TableColumn], rows: Sequence[Any]) -> TableView:
    """The table that an address asks for; what it asks wrongly is left out."""
    asked = request.query_params
    sort, wanted = asked.get("sort", ""), asked.get("filter", "")[:_MOST_FILTER].strip()
    name, names = sort.removeprefix("-"), [column.name for column in columns]
    hidden = asked["hide"].split(",") if asked.get("hide") else [column.name for column in columns if column.hidden]
    shown = [column for column in columns if column.name not in hidden] or list(columns[:1])
    kept = {key: value for key, value in asked.items() if key not in _OWN}

    def link(**changed: str) -> str:
        values = {key: asked.get(key, "") for key in _OWN if key != "as"} | changed
        query = urlencode({**kept, **{key: value for key, value in values.items() if value}})
        return f"{request.url.path}?{query}" if query else request.url.path

    found = [row for row in rows if not wanted or _holds(row, columns, wanted.casefold())]
    if name in names:
        found.sort(key=lambda row: _sort_key(getattr(row, name)), reverse=sort.startswith("-"))
    part = list_page(found, asked.get("page", ""), PAGE_ROWS)
    chosen = name if name in names else ""
    return TableView(columns, shown, part, len(rows), chosen, sort.startswith("-"), wanted, kept, link)


def table_download(request: Request, columns: Sequence[TableColumn], rows: Sequence[Any], name: str) -> Response | None:
    """The rows that the table shows, over all its pages, where the address asks for CSV or JSON."""
    form = request.query_params.get("as", "")
    if form not in ("csv", "json"):
        return None
    table = make_table(request, columns, rows)
    wanted, sort = table.filter.casefold(), table.sort
    found = [row for row in rows if not wanted or _holds(row, columns, wanted)]
    if sort:
        found.sort(key=lambda row: _sort_key(getattr(row, sort)), reverse=table.descending)
    text = "".join(_csv_lines(table.shown, found)) if form == "csv" else _json_text(table.shown, found)
    media = "text/csv; charset=utf-8" if form == "csv" else "application/json"
    headers = {"content-disposition": f'attachment; filename="{name}.{form}"', "x-content-type-options": "nosniff"}
    return Response(text, media_type=media, headers=headers)


def _holds(row: Any, columns: Sequence[TableColumn], wanted: str) -> bool:
    return any(wanted in _plain(getattr(row, column.name)).casefold() for column in columns)


def _sort_key(value: Any) -> tuple[int, Any]:
    """Numbers before texts, and what is missing last."""
    if value is None or value == "":
        return (2, "")
    if isinstance(value, int | float):
        return (0, value)
    return (1, _plain(value).casefold())


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, tuple | list):
        return " ".join(map(str, value))
    return str(value)


def _csv_lines(columns: Sequence[TableColumn], rows: Sequence[Any]) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.name for column in columns])
    for row in rows:
        writer.writerow([_safe_cell(getattr(row, column.name)) for column in columns])
    yield out.getvalue()


def _safe_cell(value: Any) -> str:
    """A text from a page never becomes a formula of whoever opens the file."""
    text = _plain(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _json_text(columns: Sequence[TableColumn], rows: Sequence[Any]) -> str:
    return json.dumps([{one.name: json_value(getattr(row, one.name)) for one in columns} for row in rows], indent=1)
