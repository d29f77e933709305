"""Did it change? Three answers kept apart: same bytes, same text, changed meaningfully."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from letopis.change.boilerplate import HostProfile
from letopis.change.evidence import Evidence, Judge, share
from letopis.change.fingerprint import Fingerprint, fingerprint
from letopis.change.habits import PageHabits
from letopis.change.paragraphs import KNOWN_FROM, known_share_of
from letopis.config import ChangeSettings
from letopis.model import BlockChange, Change, Page

State = Page | Fingerprint
"""A state of a page: read just now, or kept as numbers."""

_HALF_WAY = 15.0
_MOST_BLOCKS = 100
_MOST_TEXT = 500
_DEFAULTS = ChangeSettings()


def compare(
    new: State,
    history: Sequence[State],
    host: HostProfile | None = None,
    settings: ChangeSettings = _DEFAULTS,
    *,
    habits: PageHabits | None = None,
    same_bytes: bool = False,
) -> Change:
    """How `new` differs from the newest of `history` (newest first).

    Older states and `habits` (whichever the caller keeps) teach what on this
    page never stays; `host` what all pages of the host share. An empty
    history is not judged. With the rule "paragraphs-50" the answer needs
    pages, not fingerprints; without them the digest of the text decides.
    """
    if not history:
        return Change(same_bytes, same_bytes, None)
    if same_bytes:
        return Change(True, True, False)
    old, now = _numbers(history[0]), _numbers(new)
    same_text = old.text_hash == now.text_hash
    if settings.count == "paragraphs-50":
        return _by_paragraphs(new, history[0], same_text)
    if not old.hashes and not now.hashes:
        return _without_text(new, history[0])
    if same_text:
        return Change(False, True, False)
    frame = host.boilerplate() if host else frozenset()
    evidence = Judge(old, now, frame, habits or learned(history)).judge()
    return _verdict(evidence, old, now, frame, settings.threshold)


def learned(history: Sequence[State]) -> PageHabits:
    """The habits that a series of states (newest first, one a visit) shows."""
    habits = PageHabits()
    states = [_numbers(state) for state in reversed(history)]
    for old, new in pairwise(states):
        habits.observe(old, new)
    return habits


def score(evidence: Evidence, old: Fingerprint, new: Fingerprint, frame: frozenset[int]) -> float:
    """0 for nothing, 1 for everything.

    The share of the page that differs, or, if that is more, what the
    changed text says by itself: one sentence is a change on a page of any
    length. Text alone never counts more than a half.
    """
    strong = evidence.strong
    return max(share(evidence, old, new, frame), 0.5 * strong / (strong + _HALF_WAY))


def _numbers(state: State) -> Fingerprint:
    return state if isinstance(state, Fingerprint) else fingerprint(state)


def _verdict(evidence: Evidence, old: Fingerprint, new: Fingerprint, frame: frozenset[int], threshold: float) -> Change:
    value = score(evidence, old, new, frame)
    return Change(False, False, value > 1.0 - threshold, round(value, 4), tuple(_named(evidence, old, new)))


def _named(evidence: Evidence, old: Fingerprint, new: Fingerprint) -> Iterable[BlockChange]:
    """The blocks that count, removed before added, cut to what a record can hold."""
    for weighed in sorted(evidence.removed)[:_MOST_BLOCKS]:
        yield BlockChange("removed", old.kinds[weighed.at], old.text(weighed.at)[:_MOST_TEXT])
    for weighed in sorted(evidence.added)[:_MOST_BLOCKS]:
        yield BlockChange("added", new.kinds[weighed.at], new.text(weighed.at)[:_MOST_TEXT])


def _without_text(new: State, old: State) -> Change:
    """No readable text on either side: the bytes decide, for a page of links its targets."""
    if isinstance(new, Page) and isinstance(old, Page) and (new.links or old.links):
        same = {link.target for link in new.links} == {link.target for link in old.links}
        return Change(False, same, not same, 0.0 if same else 1.0)
    return Change(False, False, True, 1.0)


def _by_paragraphs(new: State, old: State, same_text: bool) -> Change:
    if same_text:
        return Change(False, True, False)
    known = known_share_of(new, old) if isinstance(new, Page) and isinstance(old, Page) else None
    if known is None:
        return Change(False, False, True, 1.0)
    return Change(False, False, known < KNOWN_FROM, round(1.0 - known, 4))
