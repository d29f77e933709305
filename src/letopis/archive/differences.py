"""The difference of two versions in the form that was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from letopis import extract
from letopis.archive.formats import FORMATS
from letopis.change import (
    as_json,
    chars,
    compare,
    links,
    make_delta,
    side_by_side_html,
    unified,
    visual,
    words,
)
from letopis.errors import UsageError
from letopis.model import Page, Version, rfc3339

_MARKUP = ("text/html", "application/xhtml+xml")


class Side(NamedTuple):
    """A version with what can be read of it."""

    version: Version
    page: Page
    source: str

    @property
    def name(self) -> str:
        """As the head of a difference names it."""
        return f"{self.version.url} version {self.version.number} of {rfc3339(self.version.time)}"

    @property
    def is_text(self) -> bool:
        """Whether its bytes are text."""
        return self.page.content_type.startswith("text/") or self.page.content_type.endswith(("xml", "json"))


def side(version: Version) -> Side:
    """Reads a version for comparison."""
    page = extract.page(version.body, version.url, version.headers)
    return Side(version, page, extract.decode(version.body, page.charset).text)


def difference(old: Version, new: Version, form: str = "unified") -> str | bytes:
    """The difference; empty text when there is none. `binary` gives bytes for `letopis patch`."""
    if form not in FORMATS:
        raise UsageError(f"there is no format '{form}'; choose one of {', '.join(FORMATS)}")
    if form == "binary":
        return make_delta(old.body, new.body)
    before, after = side(old), side(new)
    return _RENDERERS[form](before, after)


def texts_of(old: Side, new: Side) -> tuple[str, str]:
    """What people read of two versions; the source where that is the same or is all there is."""
    if new.page.content_type in _MARKUP or not new.is_text:
        before, after = old.page.text + "\n", new.page.text + "\n"
        if before != after or not new.is_text:
            return before, after
    return old.source, new.source


def _plain(render: Callable[..., str]) -> Callable[[Side, Side], str]:
    def rendered(old: Side, new: Side) -> str:
        before, after = texts_of(old, new)
        if before == after and old.version.body != new.version.body:
            return f"{old.name} and {new.name} differ, but not in their text; use --format binary\n"
        return render(before, after) if before != after else ""

    return rendered


def _unified(old: Side, new: Side) -> str:
    return _plain(lambda before, after: unified(before, after, old.name, new.name))(old, new)


def _html(old: Side, new: Side) -> str:
    return side_by_side_html(*texts_of(old, new), old_name=old.name, new_name=new.name)


def _visual(old: Side, new: Side) -> str:
    return visual(old.source, new.source, new.version.url)


def _json(old: Side, new: Side) -> str:
    same = old.version.body == new.version.body
    change = compare(new.page, [old.page], same_bytes=same)
    document = as_json(*texts_of(old, new), pages=(old.page, new.page), change=change)
    return json.dumps(document, ensure_ascii=False) + "\n"


_RENDERERS: dict[str, Callable[[Side, Side], str]] = {
    "unified": _unified,
    "words": _plain(words),
    "chars": _plain(chars),
    "html": _html,
    "visual": _visual,
    "links": lambda old, new: links(old.page, new.page),
    "json": _json,
}
