"""Did it change? Three separate answers: same bytes, same text, changed meaningfully."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from letopis.change.cell_moves import in_row
from letopis.change.evidence import ChangeJudge, Evidence, Experience, WeightedBlock, changed_share
from letopis.change.fingerprints import Fingerprint, fingerprint, known_share_of
from letopis.change.noise import MuteRules
from letopis.change.profiles import HostProfile, PageHabits
from letopis.change.values import resigned_blocks
from letopis.config import ChangeSettings
from letopis.model import BlockChange, Change, MutedBlock, Page
from letopis.model.page import SAME_LINKS, SAME_TEXT, TEXT_CUT

PageState = Page | Fingerprint
"""A state of a page: read just now, or kept as numbers."""

_HALF_WAY = 15.0
_MOST_BLOCKS = 100
_MOST_TEXT = 500
_DEFAULTS = ChangeSettings()
_NO_RULES = MuteRules()


def compare(
    new: PageState,
    history: Sequence[PageState],
    host: HostProfile | None = None,
    settings: ChangeSettings = _DEFAULTS,
    *,
    habits: PageHabits | None = None,
    rules: MuteRules = _NO_RULES,
    same_bytes: bool = False,
) -> Change:
    """How `new` differs from the newest of `history` (newest first).

    Older states and `habits` (whichever the caller keeps) teach what on this page never stays; `host` what all pages of
    the host share; `rules` are what people said. An empty history is not judged. With the rule "paragraphs-50" the
    answer needs pages, not fingerprints; without them the digest of the text decides.
    """
    if not history:
        return Change(same_bytes, same_bytes, None, reason="nothing to compare with")
    if same_bytes:
        return Change(True, True, False, reason="same bytes")
    old, now = _as_fingerprint(history[0]), _as_fingerprint(new)
    same_text = have_same_text(old, now)
    if not old.hashes and not now.hashes:
        return _without_text(new, history[0])
    if same_text and _says_more_than_text(new, history[0]):
        return Change(False, False, True, 1.0, reason="other bytes beside the text that is read")
    if same_text and _differ_in_plain_text(new, history[0]):
        return Change(False, False, True, 1.0, reason="other signs or capitals in plain text")
    if settings.count == "paragraphs-50":
        return _by_paragraphs(new, history[0], same_text, settings.known)
    if same_text:
        return Change(False, True, False, reason=SAME_TEXT)
    frame = host.boilerplate() if host else frozenset()
    judge = ChangeJudge(old, now, Experience(frame, habits or learn_habits(history), rules))
    judge.judge()
    return _verdict(judge, settings.threshold)


def have_same_text(old: Fingerprint, new: Fingerprint) -> bool:
    """Whether two states say the same: the same letters and digits, and the same signs where these mean something."""
    return old.text_hash == new.text_hash and not any(resigned_blocks(old, new))


def learn_habits(history: Sequence[PageState]) -> PageHabits:
    """The habits that a series of states (newest first, one a visit) shows."""
    habits = PageHabits()
    states = [_as_fingerprint(state) for state in reversed(history)]
    for old, new in pairwise(states):
        habits.observe(old, new)
    return habits


def change_score(evidence: Evidence, old: Fingerprint, new: Fingerprint, frame: frozenset[int]) -> float:
    """0 for nothing, 1 for everything.

    The share of the page that differs, or, if that is more, what the changed text says by itself: one sentence is a
    change on a page of any length. Text alone never counts more than a half.
    """
    strong = evidence.strong
    return max(changed_share(evidence, old, new, frame), 0.5 * strong / (strong + _HALF_WAY))


def _as_fingerprint(state: PageState) -> Fingerprint:
    return state if isinstance(state, Fingerprint) else fingerprint(state)


def _verdict(judge: ChangeJudge, threshold: float) -> Change:
    evidence, old, new = judge.evidence, judge.old, judge.new
    value = change_score(evidence, old, new, judge.frame)
    meaningful = value > 1.0 - threshold
    return Change(
        False,
        False,
        meaningful,
        round(value, 4),
        tuple(_changed_blocks(evidence, old, new)),
        _reason(judge, meaningful),
        tuple(_muted_blocks(judge)),
    )


def _reason(judge: ChangeJudge, meaningful: bool) -> str:
    """Why, in a few words: how much text came and went, or what alone differs."""
    added, removed = len(judge.evidence.added), len(judge.evidence.removed)
    if added or removed:
        counted = [f"{n} {action}" for n, action in ((added, "added"), (removed, "removed")) if n]
        return f"text: {', '.join(counted)}" if meaningful else f"too little text: {', '.join(counted)}"
    return f"only {', '.join(judge.noise)}" if judge.noise else "only marks and blanks"


def _muted_blocks(judge: ChangeJudge) -> Iterator[MutedBlock]:
    for (is_new, at), why in sorted(judge.muted.items())[:_MOST_BLOCKS]:
        state = judge.new if is_new else judge.old
        yield MutedBlock(why, "added" if is_new else "removed", state.kinds[at], state.text(at)[:_MOST_TEXT])


def _changed_blocks(evidence: Evidence, old: Fingerprint, new: Fingerprint) -> Iterable[BlockChange]:
    """The blocks that count, removed before added, cut to what a record can hold; moved cells by their place."""
    gone = {old.text(weighed.at) for weighed in evidence.removed}
    moved = gone.intersection(new.text(weighed.at) for weighed in evidence.added)
    sides: tuple[tuple[Literal["removed", "added"], Fingerprint, list[WeightedBlock]], ...]
    sides = ("removed", old, evidence.removed), ("added", new, evidence.added)
    for action, state, found in sides:
        for at, _, _ in sorted(found)[:_MOST_BLOCKS]:
            text = in_row(state, at) if state.text(at) in moved else state.text(at)
            yield BlockChange(action, state.kinds[at], text[:_MOST_TEXT])


def _without_text(new: PageState, old: PageState) -> Change:
    """No readable text on either side: the bytes decide, for a page of links its targets."""
    if isinstance(new, Page) and isinstance(old, Page) and (new.links or old.links):
        same = {link.target for link in new.links} == {link.target for link in old.links}
        return Change(False, same, not same, 0.0 if same else 1.0, reason=SAME_LINKS if same else "other links")
    return Change(False, False, True, 1.0, reason="other bytes without text")


_PICTURED = ("image/", "audio/", "video/")


def _says_more_than_text(*states: PageState) -> bool:
    """Whether the text is not what a document is, as with pictures, or the end of it was left unread."""
    return any(
        isinstance(state, Page) and (state.content_type.startswith(_PICTURED) or TEXT_CUT in state.warnings)
        for state in states
    )


def _differ_in_plain_text(*states: PageState) -> bool:
    """Whether two plain texts differ in more than blanks: in one that programs read, each sign and capital counts."""
    texts = [
        " ".join(" ".join(block.text for block in state.blocks).split())
        for state in states
        if isinstance(state, Page) and state.content_type.startswith(("text/plain", "text/csv"))
    ]
    return len(texts) == len(states) and len(set(texts)) > 1


def _by_paragraphs(new: PageState, old: PageState, same_text: bool, known_from: float) -> Change:
    if same_text:
        return Change(False, True, False, reason=SAME_TEXT)
    known = known_share_of(new, old) if isinstance(new, Page) and isinstance(old, Page) else None
    if known is None:
        return Change(False, False, True, 1.0, reason="no long paragraphs to compare")
    share = f"{known:.0%} of the text in long paragraphs is known"
    return Change(False, False, known < known_from, round(1.0 - known, 4), reason=share)
