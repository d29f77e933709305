"""Which pack files are fetched whole, and which contents by range. Pure decisions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from letopis.errors import Damaged
from letopis.exchange.replica.records import CheckRecord, ContentRecord, SegmentRecord

WORTH_WHOLE = 0.5
"""Share of a pack file from which it is fetched whole."""


class Need(NamedTuple):
    """A content that has to be fetched, and one check that tells of it."""

    content: ContentRecord
    check: CheckRecord


class PackFiles:
    """The pack files that an index names."""

    def __init__(self, segments: Iterable[SegmentRecord]) -> None:
        self.of_pack: dict[int, list[SegmentRecord]] = {}
        for segment in sorted(segments):
            known = self.of_pack.setdefault(segment.pack, [])
            if segment.start != (known[-1].end if known else 0):
                raise Damaged(f"the published pack {segment.pack} has a gap; publish the archive again")
            known.append(segment)

    def at(self, pack: int, place: int) -> SegmentRecord:
        """The file in which a record begins."""
        known = self.of_pack.get(pack, [])
        found = bisect_right(known, place, key=lambda segment: segment.start) - 1
        if found < 0 or place >= known[found].end:
            raise Damaged(f"the published index names pack {pack}, offset {place}, which no file has; publish again")
        return known[found]

    def all(self) -> list[SegmentRecord]:
        """Every file, pack by pack."""
        return [segment for known in self.of_pack.values() for segment in known]


@dataclass(slots=True)
class Demand:
    """How much of each pack file is needed."""

    files: PackFiles
    held: frozenset[SegmentRecord]
    bytes_of: dict[SegmentRecord, int] = field(default_factory=dict)
    _seen: set[tuple[bytes, int]] = field(default_factory=set)

    def add(self, content: ContentRecord) -> None:
        """Counts a content that the clone has not got; each one once."""
        segment = self.files.at(content.pack, content.place)
        mark = (content.sha1, content.identity)
        if segment not in self.held and mark not in self._seen:
            self._seen.add(mark)
            self.bytes_of[segment] = self.bytes_of.get(segment, 0) + content.stored_bytes

    def whole(self, lengths: Mapping[int, int]) -> list[SegmentRecord]:
        """Files to fetch whole. `lengths` says how far each pack is here already: logs have no holes."""
        chosen = []
        ends = dict(lengths)
        for segment in self.files.all():
            if self._is_worth(segment) and ends.get(segment.pack, 0) == segment.start:
                chosen.append(segment)
                ends[segment.pack] = segment.end
        return chosen

    def _is_worth(self, segment: SegmentRecord) -> bool:
        needed = self.bytes_of.get(segment, 0)
        return segment not in self.held and needed > 0 and needed >= WORTH_WHOLE * segment.size
