"""The difference of two versions in the requested form."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import get_args

from letopis import extract
from letopis.archive.reader import DiffFormat
from letopis.change.diff_formats import (
    char_diff,
    diff_as_json,
    link_diff,
    make_binary_delta,
    side_by_side_html,
    unified_diff,
    word_diff,
)
from letopis.change.visual_diff import visual_html_in_time
from letopis.errors import UsageError
from letopis.model import Change, Page, Version, rfc3339
from letopis.tuples import NamedTuple

PairJudge = Callable[[Version, Version, tuple[Page, Page]], Change]
_MARKUP = ("text/html", "application/xhtml+xml")


class DiffSide(NamedTuple):
    """A version with what could be read of it."""

    version: Version
    page: Page
    source: str

    @property
    def name(self) -> str:
        """Its name in the head of a difference."""
        return f"{self.version.url} version {self.version.number} of {rfc3339(self.version.time)}"

    @property
    def is_text(self) -> bool:
        """Whether its bytes are text."""
        return self.page.content_type.startswith("text/") or self.page.content_type.endswith(("xml", "json"))


def diff_side(version: Version) -> DiffSide:
    """Reads a version for comparison."""
    page = extract.read_page(version.body, version.url, version.headers)
    return DiffSide(version, page, extract.decode(version.body, page.charset).text)


def render_difference(old: Version, new: Version, form: str, verdict: PairJudge) -> str | bytes:
    """The difference; empty text when there is none. `binary` gives bytes for `letopis patch`.

    `verdict` decides whether two versions, with what was read of them, differ meaningfully.
    """
    if form not in get_args(DiffFormat):
        raise UsageError(f"unknown format '{form}'; choose one of {', '.join(get_args(DiffFormat))}")
    if form == "binary":
        return make_binary_delta(old.body, new.body)
    before, after = diff_side(old), diff_side(new)
    if form == "json":
        return _json(before, after, verdict(old, new, (before.page, after.page)))
    return _RENDERERS[form](before, after)


def read_texts(old: DiffSide, new: DiffSide) -> tuple[str, str]:
    """The visible text of two versions; the source if it is no markup."""
    if new.page.content_type in _MARKUP or not new.is_text:
        return old.page.text + "\n", new.page.text + "\n"
    return old.source, new.source


def diff_texts(old: DiffSide, new: DiffSide) -> tuple[str, str]:
    """The visible text of two versions; the source if that is the same or there is nothing else."""
    before, after = read_texts(old, new)
    return (before, after) if before != after or not new.is_text else (old.source, new.source)


def _plain(render: Callable[..., str]) -> Callable[[DiffSide, DiffSide], str]:
    def rendered(old: DiffSide, new: DiffSide) -> str:
        before, after = diff_texts(old, new)
        if before == after and old.version.body != new.version.body:
            return f"{old.name} and {new.name} differ, but not in their text; ask for the format 'binary'\n"
        return render(before, after) if before != after else ""

    return rendered


def _unified(old: DiffSide, new: DiffSide) -> str:
    return _plain(lambda before, after: unified_diff(before, after, old.name, new.name))(old, new)


def _html(old: DiffSide, new: DiffSide) -> str:
    return side_by_side_html(*diff_texts(old, new), old_name=old.name, new_name=new.name)


def _visual(old: DiffSide, new: DiffSide) -> str:
    return visual_html_in_time(old.source, new.source, new.version.url)


def _json(old: DiffSide, new: DiffSide, change: Change) -> str:
    document = diff_as_json(*diff_texts(old, new), pages=(old.page, new.page), change=change)
    return json.dumps(document, ensure_ascii=False) + "\n"


_RENDERERS: dict[str, Callable[[DiffSide, DiffSide], str]] = {
    "unified": _unified,
    "words": _plain(word_diff),
    "chars": _plain(char_diff),
    "html": _html,
    "visual": _visual,
    "links": lambda old, new: link_diff(old.page, new.page),
}
