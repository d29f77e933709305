"""Which links a page gained and lost."""

from __future__ import annotations

from typing import NamedTuple

from letopis.model import Link, LinkType, Page


class LinkChanges(NamedTuple):
    """Links by target and type, in document order; a link that only moved is in neither."""

    added: tuple[Link, ...]
    removed: tuple[Link, ...]


def link_changes(old: Page, new: Page) -> LinkChanges:
    """The links of `new` that `old` has not, and those it had and lost; repeats count once."""
    before = {(link.target, link.type): link for link in reversed(old.links)}
    after = {(link.target, link.type): link for link in reversed(new.links)}
    added = {key: after[key] for key in _order(new) if key not in before}
    removed = {key: before[key] for key in _order(old) if key not in after}
    return LinkChanges(tuple(added.values()), tuple(removed.values()))


def _order(page: Page) -> list[tuple[str, LinkType]]:
    return [(link.target, link.type) for link in page.links]


def links(old: Page, new: Page) -> str:
    """One line a link: sign, type, target, text; empty when none came or went."""
    changes = link_changes(old, new)
    lines = [_line("-", link) for link in changes.removed] + [_line("+", link) for link in changes.added]
    return "".join(lines)


def _line(sign: str, link: Link) -> str:
    text = " ".join(link.text.split())
    return f"{sign} {link.type} {link.target}" + (f"  {text}" if text else "") + "\n"
