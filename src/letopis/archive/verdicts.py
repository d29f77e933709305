"""One verdict per pair of versions: stored when the newer one is recorded, or else reached at the first query and
stored then.

Two consecutive versions have one verdict, with its score and reason, in the row of the newer one. A version that was
put or imported, or whose predecessor came late or was dropped, is judged at the first query. Pairs that are not
consecutive are judged at every query, by the same rules and with what is known about their host. While there is no
verdict, every list says so (`NOT_JUDGED`). A clone has the verdicts of its origin; its own are kept until a pull
updates the page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from time import thread_time
from typing import TYPE_CHECKING, Any, TypeVar

from letopis import extract
from letopis.archive.activity import LoggedChange
from letopis.archive.archive import Archive
from letopis.archive.details import BLOCK_LETTERS, NO_DETAILS, CheckDetails, with_verdict
from letopis.archive.mute_rules import mute_rules_of
from letopis.catalog import ABSENT
from letopis.catalog.version_log import RecentVersion
from letopis.change.fingerprints import fingerprint
from letopis.change.profiles import HostProfile
from letopis.change.verdict import compare, have_same_text
from letopis.errors import LetopisError
from letopis.model import Change, Check, Outcome, Page, Version
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of

if TYPE_CHECKING:
    from letopis.archive.watches import LatestChange

_Row = TypeVar("_Row", Check, LoggedChange, RecentVersion, "LatestChange")

_MOST_SECONDS = 20.0
"""CPU time that a query spends on missing verdicts; the next one continues from there."""


def verdict_between(archive: Archive, old: Version, new: Version, pages: tuple[Page, Page] | None = None) -> Change:
    """Whether two versions differ meaningfully; `pages` are what was read of them, where that is at hand."""
    recorded = archive.answers.verdict(old, new)
    if recorded is not None and (recorded.reason or recorded.same_bytes):
        return recorded
    before, after = pages or (_page(old), _page(new))
    if recorded is not None:  # written by an earlier release, which had no reasons
        same_text = have_same_text(fingerprint(before), fingerprint(after))
        return recorded._replace(same_text=same_text and not recorded.meaningful)
    change = _judged_now(archive, new.url, (before, after), same_bytes=old.digest == new.digest)
    if old.url == new.url and old.number + 1 == new.number:
        _keep(archive, new, change)
    return change


class ReplacedText(NamedTuple):
    """A removed and an added text; empty if there was none."""

    removed: str = ""
    added: str = ""

    @property
    def parts(self) -> TextParts:
        """The words that differ, between those that both texts begin and end with, unless these are few."""
        gone, came = self.removed.split(" "), self.added.split(" ")
        least = min(len(gone), len(came))
        first = next((at for at in range(least) if gone[at] != came[at]), least)
        last = next((at for at in range(least - first) if gone[-1 - at] != came[-1 - at]), least - first)
        if first + last < _NEAR * least:
            return TextParts("", self.removed, self.added, "")
        pieces = gone[:first], gone[first : len(gone) - last], came[first : len(came) - last], gone[len(gone) - last :]
        return TextParts(*map(" ".join, pieces))

    @property
    def is_number(self) -> bool:
        """Whether neither text has a word that says what it is."""
        return not any(letter.isalpha() for letter in self.removed + self.added)


class TextParts(NamedTuple):
    """Two texts as one: what both begin with, what went, what came, and what both end with."""

    before: str
    removed: str
    added: str
    after: str


def first_texts(found: Change | Check | None) -> ReplacedText:
    """The first removed and added text of a verdict, or of the check that it was recorded with."""
    if found is None:
        return ReplacedText()
    gone, came = _texts(found)
    return ReplacedText(next(iter(gone), ""), next(iter(came), ""))


def replaced_texts(found: Change | Check | LatestChange | None) -> list[ReplacedText]:
    """All removed and added texts, as far as they are recorded: each removed one with its replacement."""
    return pair_texts(*_texts(found)) if found is not None else []


def _texts(found: Change | Check | LatestChange) -> tuple[list[str], list[str]]:
    # A changed block is "added p: its text".
    blocks = with_verdict(NO_DETAILS, found).blocks if isinstance(found, Change) else found.blocks
    parted = [block.partition(": ") for block in blocks]
    gone, came = (
        [_whole_words(text) for head, _, text in parted if head.partition(" ")[0] == name]
        for name in ReplacedText._fields
    )
    return gone, came


def pair_texts(gone: Sequence[str], came: Sequence[str]) -> list[ReplacedText]:
    """By their order if their numbers are equal, otherwise by the words that both have; the others stay single."""
    if len(gone) == len(came):
        return list(map(ReplacedText, gone, came))
    left, pairs = list(came), []
    for text in gone:
        near = max(left, key=lambda one: _shared_words(text, one), default="")
        if near and _shared_words(text, near) >= _NEAR:
            left.remove(near)
        else:
            near = ""
        pairs.append(ReplacedText(text, near))
    return [*pairs, *(ReplacedText("", text) for text in left)]


_NEAR = 1 / 3
"""Share of words from which on a text counts as the replacement of another, and both are shown as one."""


def _shared_words(one: str, other: str) -> float:
    first, second = set(one.split()), set(other.split())
    return len(first & second) / max(len(first), len(second), 1)


def _whole_words(text: str) -> str:
    """A text as a check keeps it, which may be cut inside a word, up to its last whole word."""
    return text if len(text) < BLOCK_LETTERS else f"{text.rpartition(' ')[0] or text}\N{NO-BREAK SPACE}…"


def judged(archive: Archive, rows: Iterable[_Row], clock: Callable[[], float] = thread_time) -> Iterator[_Row]:
    """The same rows, with verdicts on imported versions that were not judged yet.

    Bounded: rows for which the time does not suffice stay without a verdict. So do those whose contents a clone lacks:
    a list fetches nothing.
    """
    lacks, spent = archive.is_clone and archive.catalog.contents.absent() > 0, 0.0
    for row in rows:
        number = row.number if not isinstance(row, Check) else row.version if row.outcome is Outcome.CHANGED else 0
        if not number or row.meaningful is not None or spent >= _MOST_SECONDS:
            yield row
            continue
        began = clock()
        change = _first_verdict(archive, row.url, number, lacks=lacks)
        spent += clock() - began
        yield row._replace(**_shown(change, row._fields)) if change else row


def _first_verdict(archive: Archive, url: str, number: int, *, lacks: bool) -> Change | None:
    """None if one of the two versions is not here or cannot be read: reading that one raises the reason."""
    try:
        if lacks and not _are_here(archive, url, number):
            return None
        old, new = (archive.answers.numbered(url, one) for one in (number - 1, number))
        return verdict_between(archive, old, new)
    except LetopisError:
        return None


def _are_here(archive: Archive, url: str, number: int) -> bool:
    """Whether a clone has the contents of a version and of the previous one."""
    rows = archive.catalog.versions.numbers(archive.answers.resource(url).id, number - 1, number + 1)
    found = [archive.catalog.contents.by_id(row.content) for row in rows]
    return all(content is not None and content.method != ABSENT for content in found)


def _shown(change: Change, fields: Collection[str]) -> dict[str, Any]:
    found = with_verdict(NO_DETAILS, change)._asdict() | {"meaningful": change.meaningful}
    return {name: found[name] for name in ("meaningful", "score", "reason", "blocks", "muted") if name in fields}


def _page(version: Version) -> Page:
    return extract.read_page(version.body, version.url, version.headers, detect_language=False)


def _judged_now(archive: Archive, url: str, pages: tuple[Page, Page], *, same_bytes: bool) -> Change:
    before, after = pages
    profile = archive.catalog.noise_profiles.profile(host_of(url))
    return compare(
        after,
        [before],
        HostProfile.from_bytes(profile) if profile else None,
        archive.settings.change,
        rules=mute_rules_of(archive, url),
        same_bytes=same_bytes,
    )


def _keep(archive: Archive, new: Version, change: Change) -> None:
    """Writes a verdict to the row of its version, unless it has one now or the record cannot be written."""
    if change.meaningful is None:
        return
    versions, resource = archive.catalog.versions, archive.answers.resource(new.url).id
    try:
        with archive.catalog.database.transaction() as cursor:
            row = versions.number(resource, new.number, cursor)
            if row is not None and row.meaningful is None:
                details = with_verdict(CheckDetails.unpack(row.extra), change)
                versions.set_verdict(cursor, row.id, bool(change.meaningful), details.pack())
    except LetopisError:
        return
