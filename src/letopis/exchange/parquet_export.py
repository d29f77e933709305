"""Export to Parquet: checks, versions and links as tables for DuckDB, pandas and the like."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from letopis.archive import Archive
from letopis.archive.cluster import PieceRunner
from letopis.binary import atomic_file
from letopis.errors import MissingExtra, NotReady
from letopis.exchange.selection import ExportPart, ExportSelection, export_parts
from letopis.extract import read_page
from letopis.model import Check, Outcome, Version
from letopis.urls import host

TABLES: Mapping[str, Mapping[str, str]] = {
    "checks": {
        "url": "text", "host": "word", "time": "time", "status": "small", "available": "bool", "outcome": "word",
        "version": "int", "digest": "text", "length": "long", "content_type": "word", "final_url": "text",
        "error": "text", "meaningful": "bool", "score": "float",
    },
    "versions": {
        "url": "text", "host": "word", "number": "int", "time": "time", "valid_until": "time", "digest": "text",
        "content_type": "word", "last_modified": "text", "raw_bytes": "long", "stored_bytes": "long", "method": "word",
        "title": "text", "language": "word",
    },
    "links": {
        "source": "text", "version": "int", "time": "time", "target": "text", "type": "word", "text": "text",
        "rel": "word",
    },
}  # fmt: skip
"""Columns of each table and their kinds. Times are UTC with milliseconds; words repeat and are stored once."""

ROW_GROUP = 50_000
"""Rows that are in memory and written together."""
_NEWS = (Outcome.NEW, Outcome.CHANGED)
_TableRow = tuple[str, dict[str, Any]]


def export_parquet(
    archive: Archive,
    target: Path,
    selected: ExportSelection,
    progress: Callable[[int], None] = lambda done: None,
    spread: PieceRunner | None = None,
) -> dict[str, int]:
    """Writes `checks.parquet`, `versions.parquet` and `links.parquet`; returns how many rows each has.

    `spread` reads pages and their links, otherwise that is done here.
    """
    arrow, pieces = _arrow(), _rows(archive, selected, spread)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"cannot make {target}: {error.strerror}; choose another folder with -o") from None
    with ExitStack() as stack:
        outs = {name: stack.enter_context(atomic_file(target / f"{name}.parquet")) for name in TABLES}
        tables = {name: _Table(arrow, name, outs[name], stack) for name in TABLES}
        for rows in pieces:
            for name, row in rows:
                tables[name].add(row)
            progress(tables["checks"].count)
        for table in tables.values():
            table.flush()
    return {name: table.count for name, table in tables.items()}


def table_file(columns: dict[str, list[Any]]) -> bytes:
    """The bytes of one file with these columns; the type of a column is that of its values."""
    arrow, out = _arrow(), io.BytesIO()
    arrow.parquet.write_table(arrow.table(columns), out, compression="zstd")
    return out.getvalue()


def _arrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415 - an optional dependency
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow; install it with: pip install 'letopis[parquet]'") from None
    return pyarrow


class _Table:
    """One file, written row group by row group."""

    def __init__(self, arrow: Any, name: str, out: BinaryIO, stack: ExitStack) -> None:
        kinds = {
            "text": arrow.string(),
            "word": arrow.dictionary(arrow.int32(), arrow.string()),
            "time": arrow.timestamp("ms", "UTC"),
            "small": arrow.int16(),
            "int": arrow.int32(),
            "long": arrow.int64(),
            "bool": arrow.bool_(),
            "float": arrow.float64(),
        }
        self._arrow = arrow
        self._schema = arrow.schema([(column, kinds[kind]) for column, kind in TABLES[name].items()])
        self._writer = stack.enter_context(arrow.parquet.ParquetWriter(out, self._schema, compression="zstd"))
        self._rows: list[dict[str, Any]] = []
        self.count = 0

    def add(self, row: dict[str, Any]) -> None:
        """Adds one row."""
        self._rows.append(row)
        self.count += 1
        if len(self._rows) >= ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Writes the rows in memory."""
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


def _rows(archive: Archive, selected: ExportSelection, spread: PieceRunner | None) -> Iterator[Iterable[_TableRow]]:
    """Rows with the names of their tables; locally one by one, from workers in pieces."""
    if spread is None:
        return (_part_rows(archive, part) for part in export_parts(archive, selected))
    return spread.each(_part_list, export_parts(archive, selected))


def _part_list(archive: Archive, part: ExportPart) -> list[_TableRow]:
    return list(_part_rows(archive, part))


def _part_rows(archive: Archive, part: ExportPart) -> Iterator[_TableRow]:
    for url in part.urls:
        checks = part.selected.checks(archive, url)[part.start : part.end]
        numbers = {check.version for check in checks if check.outcome in _NEWS}
        yield from (("checks", _check_row(check, host(url))) for check in checks)
        for version in archive.versions(url) if numbers else ():
            if version.number in numbers:
                yield from _version_rows(archive.get(url, version=version.number), host(url), version)


def _check_row(check: Check, site: str) -> dict[str, Any]:
    names = [name for name in TABLES["checks"] if name not in ("host", "time", "outcome")]
    row = {name: getattr(check, name) for name in names}
    return row | {"host": site, "time": check.checked_at, "outcome": str(check.outcome)}


def _version_rows(version: Version, site: str, listed: Version) -> Iterator[_TableRow]:
    """The row of a version, and those of its links in document order."""
    found = read_page(version.body, version.url, version.headers)
    names = [name for name in TABLES["versions"] if name not in ("host", "title", "language")]
    row = {name: getattr(listed, name) for name in names}
    yield "versions", row | {"host": site, "title": _clean(found.title), "language": found.language}
    for link in found.links:
        yield "links", {
            "source": version.url, "version": version.number, "time": version.time, "target": link.target,
            "type": str(link.type), "text": _clean(link.text), "rel": _clean(link.rel),
        }  # fmt: skip


def _clean(text: str) -> str:
    """Text that every reader accepts, without lone surrogates."""
    return text.encode("utf-8", "replace").decode()
