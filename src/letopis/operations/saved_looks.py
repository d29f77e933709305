"""Running saved searches again: when new versions arrive, by the process that runs the watches, or at once on
request.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import suppress

from letopis.archive import READ, WRITE, Archive
from letopis.archive.activity import newest_change
from letopis.archive.watches import (
    CLAIM_MILLIS,
    FOUND,
    AlertRow,
    FoundResult,
    NewAlert,
    SavedLook,
    SavedSearchRow,
    saved_searches_of,
)
from letopis.errors import Busy, LetopisError, NotReady, shell_words
from letopis.fetch import private_ok
from letopis.model import to_millis
from letopis.operations.context import Context
from letopis.operations.operation import Rows, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.operations.saved_searches import (
    MOST_NUMBER,
    SavedQuestion,
    SavedResult,
    own_search,
    results_of,
    saved_result,
)

POLL_SECONDS = 2.0
_PAUSE_MILLIS, _PAUSE_AFTER_ERROR = 10_000, 60_000
_SHARE = 20
"""A search that took a second rests for twenty: looks take a small share of the machine, however many pages come."""
_LONGEST_PAUSE_MILLIS = 1_800_000
_NAMED = 5
_KEPT_IN_ALERT = 100


def look_again(context: Context, row: SavedSearchRow) -> list[FoundResult]:
    """Asks a saved search again, records what is new with its alert, and answers it; nothing when another looks.

    The order of writes stands in `catalog.saved_searches`. A question that fails is told beside it, not raised.
    """
    archive, searches = context.archive, saved_searches_of(context.archive)
    claimed = searches.claim(row, to_millis(archive.clock()) + CLAIM_MILLIS)
    if claimed is None:
        return []
    saved, position = SavedQuestion.from_json(row.spec), newest_change(archive)
    asker = context._replace(user=row.owner, rights=READ, origin=saved.origin)
    began, found, error = time.monotonic(), [], ""
    try:
        found = results_of(asker, saved)
    except LetopisError as failure:
        error = shell_words(failure)
    took = round((time.monotonic() - began) * 1000)
    now = to_millis(archive.clock())
    rest = min(max(_PAUSE_AFTER_ERROR if error else _PAUSE_MILLIS, took * _SHARE), _LONGEST_PAUSE_MILLIS)
    look = SavedLook(row.position if error else position, now, now + rest, error)
    return searches.record_look(claimed, look, found, lambda new: _alert(archive, row, saved, new))


def _alert(archive: Archive, row: SavedSearchRow, saved: SavedQuestion, new: Sequence[FoundResult]) -> NewAlert:
    """One alert of all that a look found."""
    now = to_millis(archive.clock())
    names = "; ".join(one.title or one.url for one in new[:_NAMED]) + ("; ..." if len(new) > _NAMED else "")
    count = f"{len(new)} new {'result' if len(new) == 1 else 'results'}"
    lines = "\n".join(f"+ {one.title} {one.url}".rstrip() for one in new[:_KEPT_IN_ALERT])
    facts = {"saved": row.id, "name": row.name, "difference": lines, "results": len(new)}
    alert = AlertRow(0, new[0].url, FOUND, now, f"'{row.name}' has {count}: {names}", json.dumps(facts))
    guarded = not private_ok(archive.settings.fetch.private, saved.origin)
    return NewAlert(alert, [(target, guarded) for target in saved.notify])


class CheckSavedCommand(Parameters):
    """Which saved searches."""

    id: int | None = parameter(
        "Number of the saved search; default: all of yours.",
        default=None, argument=True, at_least=1, at_most=MOST_NUMBER,
    )  # fmt: skip


@operation(
    "saved_check", right=WRITE, verb="saved check", route=("POST", "/saved/check"), step="savedcheck",
    listed="results", element="result", creates=False, errors=(403, 404), columns=("time", "title", "url"),
    examples=("letopis saved check", "letopis saved check 1"),
)  # fmt: skip
def saved_check(context: Context, asked: CheckSavedCommand) -> Rows[SavedResult]:
    """Run saved searches now, and list what is new; the daemon sends the alerts."""
    searches = saved_searches_of(context.archive)
    if asked.id is not None:
        rows = [own_search(context, asked.id)]
    else:
        rows = [row for row in searches.all() if context.may_change(row.owner)]
    found: list[FoundResult] = []
    for number, row in enumerate(rows, 1):
        context.raise_if_cancelled()
        found += look_again(context, row)
        context.progress.show(number, "searches", len(rows))
    asked_now = {row.id for row in rows}
    failed = [row for row in searches.all() if row.id in asked_now and row.error]
    faults = [NotReady(f"the saved search '{row.name}' could not be run: {row.error}") for row in failed]
    return Rows(map(saved_result, found), faults=faults, remark="" if found else "nothing new")


class SavedSearchLoop:
    """Runs saved searches again when versions arrive. Several processes may run in parallel: each run is done by one
    of them.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run` after the look in hand; safe to call from a signal handler of the loop."""
        self._stopping.set()

    async def run(self) -> None:
        """Goes on until `stop`."""
        while not self._stopping.is_set():
            with suppress(Busy):
                await asyncio.to_thread(self.look_at_due)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), POLL_SECONDS)

    def look_at_due(self) -> int:
        """Looks at those whose time has come; answers how many new results they have."""
        archive, found = self._archive, 0
        due = saved_searches_of(archive).due(to_millis(archive.clock()), newest_change(archive))
        for row in due:
            if self._stopping.is_set():
                break
            found += len(look_again(Context(archive), row))
        return found
