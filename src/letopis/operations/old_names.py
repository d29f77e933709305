"""Names of earlier releases that scripts may still use: accepted for one more version, with a warning.

Each is a row of a table here; doors use these tables and know no old name themselves. A name is removed with its row,
all of them by removing this module and the calls that then fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from letopis.archive import Archive
from letopis.errors import LetopisError
from letopis.model import parse_time, rfc3339
from letopis.operations.parameters import Door
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

DEPRECATED_SINCE = datetime(2026, 11, 16, tzinfo=UTC)
DEPRECATION = {"deprecation": f"@{DEPRECATED_SINCE.timestamp():.0f}"}
"""The header of answers that hold old names, as RFC 9745 has it."""


class OldOption(NamedTuple):
    """An option that is now a word of its verb: formerly `VERB WORD FLAG`, now `VERB NOW`; `word` may be empty."""

    verb: str
    word: str
    flag: str
    now: str


OLD_OPTIONS = (OldOption("watch", "list", "--alerts", "alerts"), OldOption("map", "", "--report", "report"))
OLD_PARAMETERS: Mapping[str, Mapping[str, str]] = {"links": {"time": "at"}}
"""Of a query string, by operation: the old name and the present one."""


def current_words(verb: str, words: Sequence[str]) -> tuple[list[str], str]:
    """The words that follow a verb as they are written today, and the warning if they were old; else it is empty."""
    options = words[: words.index("--")] if "--" in words else words
    for old in OLD_OPTIONS:
        if old.verb == verb and old.flag in options and (not old.word or old.word in options):
            left = list(words)
            for gone in filter(None, (old.flag, old.word)):
                left.remove(gone)
            before = " ".join(filter(None, (verb, old.word, old.flag)))
            warning = f"'{before}' is '{verb} {old.now}' now; the old way goes with the next version"
            return [old.now, *left], warning
    return list(words), ""


def current_parameters(operation: str, query: Mapping[str, str]) -> dict[str, str]:
    """Values that were given under old names, under the present ones."""
    return {now: query[old] for old, now in OLD_PARAMETERS.get(operation, {}).items() if old in query}


# Fields of answers


Row = Mapping[str, Any]


def _planted(archive: Archive | None, row: Row) -> Row:
    return {"planted": len(row["seeds"])}


def _finding(archive: Archive | None, row: Row) -> Row:
    return {"well": row["ok"], "said": row["detail"]}


def _version_of_links(archive: Archive | None, row: Row) -> Row:
    """The version whose links they were; links to a page and those of a whole site had none."""
    if archive is None or row["direction"] == "in" or "/" not in row["url"]:
        return {}
    try:
        found = archive.answers.at(parse_user_url(row["url"]), parse_time(row["at"], archive.clock()))
    except LetopisError:
        return {}
    return {"time": rfc3339(found.time), "version": found.number}


OLD_FIELDS: Mapping[tuple[Door, str], Callable[[Archive | None, Row], Row]] = {
    ("http", "enqueue_seeds"): _planted,
    ("http", "links"): _version_of_links,
    ("cli", "doctor"): _finding,
}
"""What stands in answers beside the present fields, by door and operation: of each row, or of a whole HTTP answer."""


def with_old_fields(door: Door, operation: str, row: Any, archive: Archive | None = None) -> Any:
    """An answer of a door with the fields that it had in earlier releases."""
    old = OLD_FIELDS.get((door, operation))
    return row if old is None else {**row, **old(archive, row)}


def uses_old_names(operation: str, query: Mapping[str, str]) -> bool:
    """Whether an HTTP answer holds old names, or was asked for by one."""
    return ("http", operation) in OLD_FIELDS or bool(current_parameters(operation, query))
