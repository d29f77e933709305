"""The answer to "did it change?", with its three parts kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from letopis.model.page import BlockKind


class BlockChange(NamedTuple):
    """One block that came or went."""

    action: Literal["added", "removed"]
    kind: BlockKind
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """How a new version differs from the one before.

    `same_bytes` implies `same_text`. `meaningful` says whether a person
    would call it a change (None: not judged, as for the first version);
    `score` is 0 for nothing and 1 for everything.
    """

    same_bytes: bool
    same_text: bool
    meaningful: bool | None
    score: float = 0.0
    blocks: tuple[BlockChange, ...] = ()
