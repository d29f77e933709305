"""Databases of urlwatch: each row is a version of the page whose address its key was made of.

Rows name their job by the SHA-1 of its address only, so `urls.yaml` is needed to know the addresses; it is read as
plain values, and nothing in it is multiplied. Rows with failed tries repeat the old text at the time of a failure.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from letopis.errors import Damaged, UsageError
from letopis.exchange.body_codings import MAX_BODY
from letopis.exchange.sources import (
    MOST_WATCHES,
    ImportedCapture,
    ImportedWatch,
    ImportReport,
    SourceHints,
    failed_capture,
    file_head,
    read_whole,
)
from letopis_migrate.folders import iso_time, sniffed_type


class _PlainLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Without merged mappings, which a few lines can multiply into gigabytes."""

    def flatten_mapping(self, node: Any) -> None:
        """Refuses `<<`."""
        if any(key.value == "<<" for key, _ in node.value):
            raise yaml.constructor.ConstructorError(None, None, "mappings merged by << are not read", node.start_mark)


def yaml_documents(file: Path) -> list[Any]:
    """All documents of a file; UsageError when it is no YAML."""
    try:
        return list(yaml.load_all(read_whole(file, _MOST_LIST), Loader=_PlainLoader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{file} is not a list of jobs ({' '.join(str(error).split())}); correct it") from None


_MAGIC = b"SQLite format 3\x00"
_NEEDED = {"guid", "timestamp", "data"}
_MOST_LIST = 4 * 1024 * 1024
_LISTS = ("urls.yaml", "urls.yml")
_KINDS = {
    "css": ("css", ""), "xpath": ("xpath", ""), "element-by-id": ("css", '[id="{}"]'),
    "element-by-class": ("css", '[class~="{}"]'),
    "element-by-tag": ("css", ""), "keep_lines_containing": ("include", ""), "grep": ("include", ""),
    "delete_lines_containing": ("exclude", ""), "grepi": ("exclude", ""),
}  # fmt: skip
_DEFAULTS = {"keep_lines_containing": "text", "delete_lines_containing": "text", "grep": "re", "grepi": "re"}
_JOB_LIST = re.compile(r"(?>(?:#|---|%YAML)[^\n]*\n|\s*\n)*+[A-Za-z_]\w*:(?:\s|\Z)")
_JOB_FIELD = re.compile(r"^(?:url|navigate|command):[ \t]+\S", re.MULTILINE)
_MAIN = ("selector", "path", "text", "re")
_LEFT_OUT = (
    "data", "method", "headers", "cookies", "http_proxy", "https_proxy", "additions_only", "deletions_only",
    "diff_filter", "compared_versions",
)  # fmt: skip
"""Fields of a job without which another page is looked at, or other differences are told."""
_HARMLESS = frozenset(("html2text", "strip", "beautify", "pretty-xml", "format-json", "striplines"))


def is_urlwatch(file: Path) -> bool:
    """Whether a file is a SQLite database with a table of snapshots."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            return False
    try:
        with closing(_opened(file)) as database:
            return _table(database) is not None
    except sqlite3.Error:
        return False


def is_job_list(file: Path) -> bool:
    """Whether a file begins like a list of jobs in YAML: a document whose fields name what is fetched."""
    head = file_head(file).decode("utf-8", "replace")
    return _JOB_LIST.match(head) is not None and _JOB_FIELD.search(head) is not None


def urlwatch_captures(file: Path, hints: SourceHints, report: ImportReport) -> Iterator[ImportedCapture]:
    """All snapshots, oldest first."""
    jobs = {_guid(job): _location(job) for job in _jobs(file, hints)}
    try:
        with closing(_opened(file)) as database:
            table = _table(database)
            if table is None:
                raise UsageError(f"{file} has no table of snapshots; give the cache database of urlwatch")
            for row in _rows(database, *table):
                yield from _captures(row, jobs, hints.url, report)
    except sqlite3.Error as error:
        raise Damaged(f"{file} cannot be read to its end ({error}); what was read stays") from None


def _captures(row: sqlite3.Row, jobs: dict[str, str], page: str, report: ImportReport) -> Iterator[ImportedCapture]:
    guid, time, tries = str(row["guid"]), row["timestamp"], row["tries"] or 0
    url = jobs.get(guid, page if not jobs else "")
    if not url.startswith(("http://", "https://")):
        reason = "its job has no web address" if url else "no job of urls.yaml made it; name the list with --urls"
        report.refuse(reason, f"entry {guid}")
        return
    try:
        date = iso_time(float(time))
    except (TypeError, ValueError):
        report.refuse("no time that can be read", url)
        return
    if tries:
        yield failed_capture(url, date, f"urlwatch could not fetch it ({tries} tries)")
        return
    body = row["data"].encode("utf-8", "surrogateescape") if isinstance(row["data"], str) else bytes(row["data"] or b"")
    tag = (("ETag", str(row["etag"])),) if row["etag"] else ()
    kind = sniffed_type(body)
    yield ImportedCapture(url, date, 200, (("Content-Type", f"{kind}; charset=utf-8"), *tag), body, decoded=True)


def _opened(file: Path) -> sqlite3.Connection:
    """Only for reading, and with bounds on what a hostile file can ask for."""
    database = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BODY)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def _table(database: sqlite3.Connection) -> tuple[str, set[str]] | None:
    """The table of snapshots and its columns, whatever the release called it; views could run for ever."""
    plain = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' AND sql NOT LIKE '%AS (%'"
    for row in database.execute(plain).fetchmany(100):
        name = str(row["name"]).replace('"', '""')
        columns = {str(column["name"]).lower() for column in database.execute(f'PRAGMA table_info("{name}")')}
        if columns >= _NEEDED:
            return name, columns
    return None


def _rows(database: sqlite3.Connection, name: str, columns: set[str]) -> Iterator[sqlite3.Row]:
    rest = [column if column in columns else f"NULL AS {column}" for column in ("tries", "etag")]
    chosen = ", ".join(["guid", "timestamp", "data", *rest])
    yield from database.execute(f'SELECT {chosen} FROM "{name}" ORDER BY timestamp, rowid')  # noqa: S608


def urlwatch_watches(file: Path, hints: SourceHints) -> Iterator[ImportedWatch]:
    """A watch for each job. What a command prints cannot be watched: its address is none, so that it is named."""
    for job in _jobs(file, hints):
        chosen, left_out = _filters(job.get("filter"))
        url = str(job.get("url") or job.get("navigate") or f"command://{job.get('command', '')}")
        fields = tuple(name for name in _LEFT_OUT if job.get(name))
        browser = () if job.get("url") or not job.get("navigate") else ("browser",)
        yield ImportedWatch(url, None, chosen, "", _is_off(job), (*left_out, *fields, *browser))


def _is_off(job: dict[str, Any]) -> bool:
    return job.get("enabled") is False


def _filters(given: Any) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Filters with a counterpart, and the names of the others."""
    steps = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    chosen: list[tuple[str, str]] = []
    left_out: list[str] = []
    for step in steps[:1000]:
        name, value = next(iter(step.items()), ("", "")) if isinstance(step, dict) else str(step).partition(":")[::2]
        found = _filter(str(name), value)
        left_out += [f"{part} of its {name}" for part in _unread(str(name), value)]
        if found and chosen and found[-1][0] == chosen[-1][0] and found[-1][0] in _NARROWING:
            narrower = _narrowed(found[-1][0], chosen[-1][1], found[-1][1])
            left_out += [] if narrower else [f"second {name}"]
            chosen[-1:] = [(found[-1][0], narrower or chosen[-1][1])]
            continue
        chosen += found
        left_out += [str(name)] if not found and name not in _HARMLESS else []
    return tuple(chosen), tuple(left_out)


_NARROWING = ("css", "xpath", "include")


def _narrowed(kind: str, first: str, second: str) -> str:
    """One filter for two steps, each of which takes what the one before left; empty where there is none.

    Filters of ours of one kind choose together.
    """
    if kind == "css" and "," not in first + second:
        return f"{first} {second}"
    return f"^(?=.*(?:{first}))(?=.*(?:{second}))" if kind == "include" else ""


def _unread(name: str, value: Any) -> list[str]:
    """What a step says and no filter of ours does."""
    options = value if isinstance(value, dict) else {}
    return [
        part for part in ("skip", "maxitems", "exclude") if options.get(part) and (name, part) != ("css", "exclude")
    ]


def _filter(name: str, value: Any) -> list[tuple[str, str]]:
    """One step as filters of ours; lines are found by plain text unless the step says `re`."""
    options = value if isinstance(value, dict) else {_DEFAULTS.get(name, "selector"): value}
    removed = [("remove", str(options["exclude"]))] if name == "css" and options.get("exclude") else []
    key = next((key for key in _MAIN if isinstance(options.get(key), str) and options[key]), "")
    kind, form = _KINDS.get(name, ("", ""))
    if not key or not kind:
        return removed
    text = re.escape(options[key]) if key == "text" else options[key]
    return [*removed, (kind, form.format(text) if form else text)]


def _guid(job: dict[str, Any]) -> str:
    return hashlib.sha1(_location(job).encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def _location(job: dict[str, Any]) -> str:
    return str(job.get("user_visible_url") or job.get("url") or job.get("navigate") or job.get("command") or "")


def _jobs(file: Path, hints: SourceHints) -> list[dict[str, Any]]:
    """The jobs of `urls.yaml`, named or lying beside the database or in the folder of settings."""
    places = [hints.urls] if hints.urls else [file.parent / name for name in _LISTS]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        if hints.url:
            return []
        raise UsageError(f"{file} does not contain addresses; name the urls.yaml of urlwatch with --urls")
    return [job for job in yaml_documents(found) if isinstance(job, dict)][:MOST_WATCHES]
