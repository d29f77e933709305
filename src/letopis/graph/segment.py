"""What one stretch of the log of versions says about links, in columns. Several stretches join into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from letopis.errors import Damaged
from letopis.graph.columns import Array, Ints, Texts, pack, texts, unpack

Int32 = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

SAME = -1
"""A count of links that stands for "those of the version of this page that was recorded before"."""
DOCUMENT, LIST, REQUISITE = range(3)
"""In `roles`: a page for people, a list of addresses for programs (sitemap, feed), a part of pages (picture, style)."""
NOT_JUDGED = 2
"""In `judged`: nobody said whether the version is a meaningful change."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Columns of hosts, of addresses, of versions and of links; each refers to the ones before by position.

    `names`: hosts. `urls`, `keys` (64-bit keys), `hosts`: addresses. `ids` to
    `languages`: versions in the order of recording; `finals` is the address
    a check ended at after redirects, -1 when it stayed. `targets`, `kinds`:
    the links of all versions, in document order. `text_frames`, `text_links`:
    where the texts of the links lie, and of how many links.
    """

    names: Texts
    urls: Texts
    keys: Ints
    hosts: Int32
    ids: Ints
    pages: Int32
    times: Ints
    statuses: npt.NDArray[np.int16]
    sizes: Ints
    digests: Ints
    link_keys: Ints
    judged: Bytes
    roles: Bytes
    finals: Int32
    counts: Int32
    types: Texts
    titles: Texts
    languages: Texts
    targets: Int32
    kinds: Bytes
    text_frames: Ints
    text_links: Ints

    def pack(self) -> bytes:
        """The columns as bytes."""
        return pack([getattr(self, field.name) for field in fields(self)])

    @property
    def nbytes(self) -> int:
        """Memory that the columns take."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))


_KINDS = {
    "Ints": np.dtype("<i8"),
    "Int32": np.dtype("<i4"),
    "Bytes": np.dtype("<u1"),
    "npt.NDArray[np.int16]": np.dtype("<i2"),
}


def unpack_segment(data: bytes) -> Segment:
    """The inverse of `Segment.pack`; Damaged when the columns are others."""
    arrays = iter(unpack(data))
    try:
        columns: list[Any] = [_column(str(field.type), arrays) for field in fields(Segment)]
        return Segment(*columns)
    except StopIteration:
        raise Damaged("a frame of the index of links lacks columns; delete its folder, it is built again") from None


def _column(kind: str, arrays: Iterator[Array]) -> Array | Texts:
    first = next(arrays)
    if kind == "Texts":
        return texts(first, next(arrays))
    if first.dtype != _KINDS[kind]:
        raise Damaged("a frame of the index of links has a wrong column; delete its folder, it is built again")
    return first


def empty_segment() -> Segment:
    """No hosts, no addresses, no versions."""
    columns: list[Any] = [
        Texts.of([]) if str(field.type) == "Texts" else np.zeros(0, _KINDS[str(field.type)])
        for field in fields(Segment)
    ]
    return Segment(*columns)


def join_segments(parts: Sequence[Segment]) -> Segment:
    """One segment that says what all parts say in order."""
    if len(parts) == 1:
        return parts[0]
    columns: list[Any] = []
    for field in fields(Segment):
        column = [getattr(part, field.name) for part in parts]
        columns.append(Texts.join(column) if str(field.type) == "Texts" else np.concatenate(column))
    return Segment(*columns)
