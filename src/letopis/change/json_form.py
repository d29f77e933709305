"""A difference for programs."""

from __future__ import annotations

from letopis.change.link_lists import link_changes
from letopis.change.text_diff import WORDS, Bounds, Level, pieces
from letopis.model import Change, Link, Page

_NAMES: dict[Level, str] = {1: "lines", 2: "words", 3: "characters"}


def as_json(
    old: str,
    new: str,
    level: Level = WORDS,
    pages: tuple[Page, Page] | None = None,
    change: Change | None = None,
    bounds: Bounds | None = None,
) -> dict[str, object]:
    """Operations with texts and positions, link changes and the verdict, ready for `json.dumps`.

    Positions count characters. Equal runs give their length only; the sum of
    all runs is the whole text. `coarse` tells that bounds cut the depth.
    """
    bounds = bounds or Bounds()
    operations: list[dict[str, object]] = []
    at_old = at_new = 0
    for piece in pieces(old, new, level, bounds):
        entry: dict[str, object] = {"op": piece.tag, "old": [at_old, at_old + len(piece.old)]}
        at_old, at_new = at_old + len(piece.old), at_new + len(piece.new)
        entry["new"] = [at_new - len(piece.new), at_new]
        if piece.tag != "equal":
            entry |= {"removed": piece.old, "added": piece.new}
        operations.append(entry)
    result: dict[str, object] = {"level": _NAMES[level], "coarse": bounds.coarse, "operations": operations}
    if pages:
        changes = link_changes(*pages)
        result["links"] = {"added": [_link(x) for x in changes.added], "removed": [_link(x) for x in changes.removed]}
    if change:
        result |= _verdict(change)
    return result


def _link(link: Link) -> dict[str, str]:
    return {"target": link.target, "type": str(link.type), "text": link.text}


def _verdict(change: Change) -> dict[str, object]:
    blocks = [{"action": b.action, "kind": str(b.kind), "text": b.text} for b in change.blocks]
    return {
        "same_bytes": change.same_bytes,
        "same_text": change.same_text,
        "meaningful": change.meaningful,
        "score": change.score,
        "blocks": blocks,
    }
