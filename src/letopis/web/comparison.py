"""`/compare/<url>?from=&to=`: what changed between two versions, in five views."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.api.requests import origin_of
from letopis.archive.differences import DiffSide, diff_side, read_texts
from letopis.archive.verdicts import verdict_between
from letopis.change.diff_formats import link_changes
from letopis.change.text_diff import DiffPiece, diff_pieces
from letopis.change.values import first_number
from letopis.change.visual_diff import FIRST_CHANGE, visual_html_in_time, with_first_change
from letopis.errors import UsageError
from letopis.extract.rewriter import rewrite_under
from letopis.model import Change, Version, rfc3339, stamp14, to_millis
from letopis.model.rights import WRITE
from letopis.monitor.views import filtered_verdict, filtered_version
from letopis.monitor.watch import FilterText, parse_filters
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context, bind
from letopis.operations.alerts import AlertsQuery, watch_alerts
from letopis.operations.muting import MuteCommand, mute_add
from letopis.operations.pages import DiffQuery, diff_sides
from letopis.replay.csp import SAFE_HEADERS
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.web.history import READ_BEFORE, mark_seen, unread_marks
from letopis.web.languages import translatable
from letopis.web.pages import FormDep, PageAddress, PageRoute, page_address, render_page, url_in_path
from letopis.web.timebar import chosen_moment, chosen_time, time_bar

MOST_ROWS = 3000
_CONTEXT = 3
_FOLD = 700
_EDGE = 120
_FEW_WORDS = 3
_DIGITS = re.compile(r"\d[\d.,\s]*")


class TextRun(NamedTuple):
    """Text of one kind: `same`, `gone`, `came`, or `fold` for equal text that is hidden at first."""

    kind: str
    text: str


class DiffLine(NamedTuple):
    """One line of one side."""

    number: int
    runs: tuple[TextRun, ...]


class DiffRow(NamedTuple):
    """A line of the old text beside one of the new; `hidden` counts equal ones left out from `first` on."""

    old: DiffLine | None
    new: DiffLine | None
    changed: bool
    hidden: int = 0
    first: int = 0


class WordCounts(NamedTuple):
    """How many words went and came."""

    gone: int
    came: int


def count_words(pieces: Sequence[DiffPiece]) -> WordCounts:
    """Words that went and came."""
    changed = [piece for piece in pieces if piece.tag != "equal"]
    return WordCounts(
        sum(len(piece.old.split()) for piece in changed), sum(len(piece.new.split()) for piece in changed)
    )


class NumberStep(NamedTuple):
    """One number that became another, with what is written around it, and by what share."""

    old: str
    new: str
    change: float | None


def number_step(old: str, new: str) -> NumberStep | None:
    """What became of the only value of a part of a page; None for anything else."""
    before, after = first_number(old), first_number(new)
    around = [_DIGITS.sub("", text).split() for text in (old, new)]
    if before is None or after is None or before == after or around[0] != around[1] or len(old.split()) > _FEW_WORDS:
        return None
    return NumberStep(old.strip(), new.strip(), (after - before) / abs(before) if before else None)


def running_text(pieces: Sequence[DiffPiece]) -> list[TextRun]:
    """One text with what went and came inside it; long equal stretches become a fold."""
    runs: list[TextRun] = []
    last = len(pieces) - 1
    for at, piece in enumerate(pieces):
        if piece.tag == "equal":
            runs += _folded(piece.new, first=at == 0, last=at == last)
        else:
            runs += [TextRun(kind, text) for pair in _paired(piece) for kind, text in pair if text]
    return runs


def _paired(piece: DiffPiece) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """What went and came: line beside line where as many came as went, otherwise all of the one before the other."""
    old, new = piece.old.splitlines(keepends=True), piece.new.splitlines(keepends=True)
    pairs = zip(old, new, strict=True) if len(old) == len(new) else [(piece.old, piece.new)]
    yield from ((("gone", before), ("came", after)) for before, after in pairs)


def _folded(text: str, first: bool, last: bool) -> Iterator[TextRun]:
    if len(text) <= _FOLD or (first and last):
        yield TextRun("same", text)
        return
    head = 0 if first else _break_after(text, _EDGE)
    tail = len(text) if last else _break_before(text, len(text) - _EDGE)
    yield from (TextRun(kind, part) for kind, part in (("same", text[:head]), ("fold", text[head:tail])) if part)
    if text[tail:]:
        yield TextRun("same", text[tail:])


def _break_after(text: str, at: int) -> int:
    return next((found + 1 for mark in "\n " if (found := text.find(mark, at, at + _EDGE)) >= 0), at)


def _break_before(text: str, at: int) -> int:
    return next((found + 1 for mark in "\n " if (found := text.rfind(mark, at - _EDGE, at)) >= 0), at)


def side_by_side(pieces: Sequence[DiffPiece]) -> list[DiffRow]:
    """Two columns, line by line, equal stretches left out but for a few lines around changes."""
    return list(_shortened(list(_diff_rows(pieces))))


class _Side:
    """One column while it is laid out."""

    def __init__(self) -> None:
        self.number = 0
        self.done: list[DiffLine] = []
        self.runs: list[TextRun] = []

    def write(self, kind: str, text: str) -> None:
        first, *others = text.split("\n")
        self._add(kind, first)
        for line in others:
            self.end()
            self._add(kind, line)

    def _add(self, kind: str, text: str) -> None:
        if text:
            self.runs.append(TextRun(kind, text))

    def end(self) -> None:
        self.number += 1
        self.done.append(DiffLine(self.number, tuple(self.runs)))
        self.runs = []

    def take(self) -> list[DiffLine]:
        taken, self.done = self.done, []
        return taken


def _diff_rows(pieces: Sequence[DiffPiece]) -> Iterator[DiffRow]:
    """Both columns are level again wherever an equal line ends."""
    old, new = _Side(), _Side()
    changed = False
    for piece in pieces:
        if piece.tag != "equal":
            old.write("gone", piece.old)
            new.write("came", piece.new)
            changed = True
            continue
        for text in piece.new.splitlines(keepends=True):
            for side in (old, new):
                side.write("same", text)
            if text.endswith("\n"):
                yield from _level(old, new, changed)
                changed = False
    for side in (old, new):
        if side.runs:
            side.end()
    yield from _level(old, new, changed)


def _level(old: _Side, new: _Side, changed: bool) -> Iterator[DiffRow]:
    for left, right in zip_longest(old.take(), new.take()):
        same = left is not None and right is not None and left.runs == right.runs
        yield DiffRow(left, right, changed and not same)


def _shortened(rows: Sequence[DiffRow]) -> Iterator[DiffRow]:
    near = [False] * len(rows)
    for at, row in enumerate(rows):
        if row.changed:
            for other in range(max(0, at - _CONTEXT), min(len(rows), at + _CONTEXT + 1)):
                near[other] = True
    shown = 0
    for kept, group in groupby(zip(rows, near, strict=True), itemgetter(1)):
        stretch = [row for row, _ in group]
        if not kept:
            first = stretch[0].new
            yield DiffRow(None, None, False, len(stretch), first.number if first else 0)
            continue
        yield from stretch[: MOST_ROWS - shown]
        shown += len(stretch)
        if shown > MOST_ROWS:
            return


router = APIRouter(route_class=PageRoute)

COMPARE_VIEWS = {
    "words": translatable("Words"),
    "sides": translatable("Side by side"),
    "visual": translatable("Rendered"),
    "pictures": translatable("Pictures"),
    "links": translatable("Links"),
    "raw": translatable("Source"),
}
_FRAME = "frame"
"""Beside the views that have a tab: the marked page inside of its frame."""
_WHOLE = {"lines": "sides", "source": "raw"}
"""And those with all their lines, each with the view that leaves equal ones out."""
_CHOICES = 200


class VersionPair(NamedTuple):
    """The two versions, those beside the newer one, and the last ones."""

    old: Version
    new: Version
    before: Version | None
    after: Version | None
    choices: list[Version]


class ComparedSides(NamedTuple):
    """Both versions as they are compared, the verdict on them, and the filters that they were read through.

    `problem` says why filters were not applied, `unmatched` is the number of the version of which they select nothing.
    """

    old: DiffSide
    new: DiffSide
    verdict: Change
    filters: tuple[FilterText, ...] = ()
    problem: str = ""
    unmatched: int = 0


@router.get("/compare/{rest:path}")
def comparison(request: Request) -> Response:
    """Two versions: by default the newest and the one before it; with `filter` and a number as that watch sees them.

    `filter=watch` means the first watch of the page with filters, `alert` and a number the watch of that alert. Who
    comes from an alert or a watch has read what was new of the page up to the version that is shown.
    """
    context = context_of(request)
    archive = context.archive
    asked = page_address(archive, request.scope, "/compare/", ("from", "to", "view", "filter", "alert"))
    view = asked.own.get("view", "words")
    if view not in (*_FILLED, _FRAME):
        raise UsageError(f"unknown view '{view[:40]}'; choose one of {', '.join(COMPARE_VIEWS)}")
    chosen = asked.own.get("filter", "") or _watch_of_alert(context, asked)
    pair, watch = _version_pair(context, asked, chosen_time(request)), _filtering_watch(context, asked.url, chosen)
    sides = _sides_of(context, pair, watch.filters if watch is not None and chosen else ())
    pictures = _pictures(context, pair)
    title = (diff_side(pair.new) if sides.filters else sides.new).page.title
    if view == _FRAME:
        return _framed(sides.old, sides.new, origin_of(request.scope))
    now = context.moment()
    until = None if pair.after is None else to_millis(pair.after.time) - 1  # what came after what is shown stays unread
    seen_now = mark_seen(request, context, asked.url, until) if chosen else READ_BEFORE
    return render_page(
        request, "compare.html", url=asked.url, host=host_of(asked.url), title=title, pair=pair,
        view=view, views={name: label for name, label in COMPARE_VIEWS.items() if name != "pictures" or any(pictures)},
        tab=_WHOLE.get(view, view), pictures=pictures, first_change=FIRST_CHANGE, verdict=sides.verdict,
        watch=watch, filtered=chosen if sides.filters else "", sides=sides, may_write=principal_of(request).may(WRITE),
        link=f"from={rfc3339(pair.old.time)}&to={rfc3339(pair.new.time)}", choices=pair.choices[::-1],
        seen_now=seen_now, step=number_step(*read_texts(sides.old, sides.new)) if sides.filters else None,
        unread=bool(unread_marks(request, context).unread([asked.url])),
        bar=time_bar(
            request, pair.new.time if pair.after and "to" in asked.own else chosen_moment(request, now),
            ((one.time, 1) for one in pair.choices), now, ("from", "to"),
        ),
        **_FILLED[view](sides.old, sides.new),
    )  # fmt: skip


def _pictures(context: Context, pair: VersionPair) -> tuple[str, ...]:
    """Addresses of the pictures that were kept of both versions while they were there; empty where none was."""
    following = context.archive.answers.versions(pair.old.url, pair.old.number + 1, 1)
    ends = (following[0].time if following else None, pair.after.time if pair.after is not None else None)
    return tuple(_picture(context, one, end) for one, end in zip((pair.old, pair.new), ends, strict=True))


def _picture(context: Context, version: Version, end: datetime | None) -> str:
    found = context.archive.sets.of(version.url, version.time, end)
    kept = [one for one in found if one.has_screenshot and (end is None or one.time < end)]
    return f"/api/v1/screenshot?{urlencode({'url': version.url, 'at': rfc3339(kept[0].time)})}" if kept else ""


class FilteringWatch(NamedTuple):
    """A watch through whose filters versions may be read."""

    id: int
    filters: tuple[FilterText, ...]


def _filtering_watch(context: Context, url: str, chosen: str) -> FilteringWatch | None:
    """The watch with a number, else the first watch of the page with filters."""
    found = [entry for entry in WatchList(context.archive).of_page(url) if entry.watch.filters]
    named = [entry for entry in found if str(entry.id) == chosen] if chosen.isdigit() else found
    return FilteringWatch(named[0].id, named[0].watch.filters) if named else None


def _watch_of_alert(context: Context, asked: PageAddress) -> str:
    """The number of the watch that an alert of the page came from, "watch" where it names none; empty for no alert."""
    number = asked.own.get("alert", "")
    if not (number.isascii() and number.isdigit() and len(number) < 18):
        return ""
    found = list(watch_alerts(context, AlertsQuery(url=asked.url, limit=1, before=int(number) + 1)))
    return (str(found[0].watch) if found[0].watch else "watch") if found and found[0].id == int(number) else ""


def _sides_of(context: Context, pair: VersionPair, filters: tuple[FilterText, ...]) -> ComparedSides:
    """Through the filters, unless the page is no longer what they were written for: that is said."""
    try:
        return _filtered_sides(context, pair, filters) if filters else _whole_sides(context, pair)
    except UsageError as error:
        return _whole_sides(context, pair)._replace(problem=str(error))


def _whole_sides(context: Context, pair: VersionPair) -> ComparedSides:
    old, new = diff_side(pair.old), diff_side(pair.new)
    return ComparedSides(old, new, verdict_between(context.archive, pair.old, pair.new, (old.page, new.page)))


def _filtered_sides(context: Context, pair: VersionPair, filters: tuple[FilterText, ...]) -> ComparedSides:
    parsed = parse_filters(filters)
    old, new = filtered_version(pair.old, parsed), filtered_version(pair.new, parsed)
    verdict = filtered_verdict(context.archive, ((pair.old, old), (pair.new, new)), parsed)
    before, after = (DiffSide(one, seen.page, seen.source) for one, seen in ((pair.old, old), (pair.new, new)))
    unmatched = next((one.version.number for one, seen in ((after, new), (before, old)) if not seen.text.strip()), 0)
    return ComparedSides(before, after, verdict, filters, unmatched=unmatched)


@router.post("/mute")
def mute(request: Request, form: FormDep) -> Response:
    """What somebody says of a text that changes: mute it, or never do, on its page or its whole host."""
    context, url = context_of(request), form.get("url", "")
    place = host_of(url) if form.get("scope") == "host" else url
    values = {"place": place, "text": form.get("text", ""), "kind": form.get("kind", "always")}
    mute_add(context, bind(MuteCommand, values, context.moment(), door="http"))
    return RedirectResponse(f"/compare/{url_in_path(url)}?to={quote(form.get('to', ''))}", 303)


def _framed(old: DiffSide, new: DiffSide, ours: str) -> Response:
    """The newer page with marks: it has no origin, runs nothing, and loads nothing but captured pictures.

    Both pages lead to captures of the newer one's time, so that only what really changed differs.
    """
    folder = f"/web/{stamp14(new.version.time)}/"
    before, after = (rewrite_under(folder, one.version.url, one.source, page=True) for one in (old, new))
    text = with_first_change(visual_html_in_time(before, after, remote=True))
    policy = (
        f"sandbox; default-src 'none'; style-src 'unsafe-inline' {ours}/web/; img-src {ours}/web/ data:; "
        f"font-src {ours}/web/ data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    )
    return Response(
        text, headers={"content-security-policy": policy, **SAFE_HEADERS}, media_type="text/html; charset=utf-8"
    )


def _version_pair(context: Context, asked: PageAddress, as_of: str) -> VersionPair:
    """The versions that are asked for; where none are, that of the moment from which everything is seen."""
    times = {name: asked.own[name] for name in ("from", "to") if asked.own.get(name)}
    times = times or ({"to": as_of} if as_of else {})
    old, new = diff_sides(context, bind(DiffQuery, {"url": asked.url, **times}, context.moment()))
    answers = context.archive.answers
    beside = {version.number: version for version in answers.versions(asked.url, new.number - 1, 3)}
    choices = answers.versions(asked.url, answers.resource(asked.url).versions - _CHOICES)
    return VersionPair(old, new, beside.get(new.number - 1), beside.get(new.number + 1), choices)


def _words(old: DiffSide, new: DiffSide) -> dict[str, Any]:
    texts = read_texts(old, new)
    found = diff_pieces(*texts)
    return {"runs": running_text(found), "counts": count_words(found), "same": texts[0] == texts[1]}


def _sides(old: DiffSide, new: DiffSide, whole: bool = False) -> dict[str, Any]:
    texts = read_texts(old, new)
    found = diff_pieces(*texts)
    rows = list(_diff_rows(found))[:MOST_ROWS] if whole else side_by_side(found)
    return {"rows": rows, "counts": count_words(found), "whole": whole, "same": texts[0] == texts[1]}


def _links(old: DiffSide, new: DiffSide) -> dict[str, Any]:
    return {"links": link_changes(old.page, new.page)}


def _raw(old: DiffSide, new: DiffSide, whole: bool = False) -> dict[str, Any]:
    """Line by line with what changed inside of each, all lines or those around changes."""
    if not (old.is_text and new.is_text):
        return {"lines": None}
    rows = list(_diff_rows(diff_pieces(old.source, new.source)))
    return {"lines": rows[:MOST_ROWS] if whole else list(_shortened(rows)), "whole": whole}


_FILLED: dict[str, Callable[[DiffSide, DiffSide], dict[str, Any]]] = {
    "words": _words,
    "sides": _sides,
    "visual": lambda old, new: {},
    "pictures": lambda old, new: {},
    "links": _links,
    "raw": _raw,
    "lines": partial(_sides, whole=True),
    "source": partial(_raw, whole=True),
}
