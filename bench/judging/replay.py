"""The visits of a real archive over again, up to each judged pair.

A corpus holds folders `open*/HOST/DOCUMENT` with the versions of a document
as numbered files. Each is read as a visit reads it; the memory of the page
learns from every version before the pair, the profile of the host from the
documents that stand beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.judging.pairs import Pair
from letopis import extract
from letopis.change.fingerprints import Fingerprint, fingerprint
from letopis.change.profiles import HostProfile, PageHabits
from letopis.change.verdict import compare
from letopis.model import BlockChange

_HEADERS = (("Content-Type", "text/html"),)


class Answer(NamedTuple):
    """What the detector said to a pair."""

    pair: Pair
    where: str
    seen: bool
    score: float
    blocks: tuple[BlockChange, ...]

    @property
    def right(self) -> bool:
        """Whether detector and reader agree."""
        return self.seen == self.pair.changed


def answers(corpus: Path, pairs: Sequence[Pair]) -> list[Answer]:
    """One answer a pair, in the order of the documents; pairs that the corpus lacks have none."""
    wanted = {(pair.old, pair.new): pair for pair in pairs}
    found: list[Answer] = []
    for document in sorted(corpus.glob("open*/*/*")):
        found += _Document(corpus, document).answers(wanted)
    return found


class _Document:
    """The versions of one document in their order."""

    def __init__(self, corpus: Path, folder: Path) -> None:
        self.name = str(folder.relative_to(corpus))
        self.files = sorted(folder.glob("*.html"))
        self.digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in self.files]
        self._beside = [other for other in sorted(corpus.glob(f"open*/{folder.parent.name}/*")) if other != folder]

    def answers(self, wanted: dict[tuple[str, str], Pair]) -> Iterator[Answer]:
        """Visits the versions up to the last judged pair; each pair is taken out of `wanted`."""
        places = self._places(wanted)
        last = max((old for old, _ in places), default=-1)
        host, habits = self._host() if places else HostProfile(), PageHabits()
        before: Fingerprint | None = None
        for at in range(last + 1):
            if before is not None and self.digests[at] == self.digests[at - 1]:
                habits.unchanged()
                now = before
            else:
                now = self._read(at)
                host.observe(now, before)
                if before is not None:
                    habits.observe(before, now)
            for new in (new for old, new in places if old == at):
                yield self._judged(wanted.pop((self.digests[at], self.digests[new])), (at, new), now, host, habits)
            before = now

    def _judged(
        self, pair: Pair, place: tuple[int, int], old: Fingerprint, host: HostProfile, habits: PageHabits
    ) -> Answer:
        change = compare(self._read(place[1]), [old], host, habits=habits)
        where = f"{self.name} {self.files[place[0]].stem}-{self.files[place[1]].stem}"
        return Answer(pair, where, bool(change.meaningful), change.score or 0.0, change.blocks)

    def _places(self, wanted: dict[tuple[str, str], Pair]) -> list[tuple[int, int]]:
        """Where the pairs occur: as neighbours if they ever are, else first and later."""
        first: dict[str, int] = {}
        for at, digest in enumerate(self.digests):
            first.setdefault(digest, at)
        steps = list(zip(self.digests, self.digests[1:], strict=False))
        found: list[tuple[int, int]] = []
        for old, new in wanted:
            if (old, new) in steps:
                at = steps.index((old, new))
                found.append((at, at + 1))
            elif old in first and new in first:
                found.append((first[old], first[new]))
        return found

    def _host(self) -> HostProfile:
        host = HostProfile()
        for folder in self._beside:
            host.observe(_read(min(folder.glob("*.html"))))
        return host

    def _read(self, at: int) -> Fingerprint:
        return _read(self.files[at])


def _read(file: Path) -> Fingerprint:
    """As `letopis.look` reads: everything but the language."""
    url = f"https://{file.parts[-3]}.test/{file.parts[-2]}"
    return fingerprint(extract.read_page(file.read_bytes(), url, _HEADERS, detect_language=False))
