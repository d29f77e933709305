"""What an open for writing does before anything else: cut the torn end that a killed writer left."""

from __future__ import annotations

from typing import NamedTuple

from xxhash import xxh3_64_hexdigest

from letopis.errors import Damaged
from letopis.store.layout import HEADER_BYTES, Record, parse_pack_header
from letopis.store.packs import Packs
from letopis.store.values import Place
from letopis.store.walk import Walker

CHECKPOINT = "checkpoint"


class Tail(NamedTuple):
    """The log that may be appended to, and its sound length."""

    pack: int
    name: str
    length: int


def checkpoint(pack: int, length: int) -> bytes:
    """The small object that says how far a log was synced."""
    line = f"{pack} {length} "
    return (line + xxh3_64_hexdigest(line.encode()) + "\n").encode()


def parse_checkpoint(data: bytes) -> tuple[int, int]:
    """Pack and length of a checkpoint; zeros when it is missing or not sound."""
    parts = data.split()
    if len(parts) != 3 or not (parts[0].isdigit() and parts[1].isdigit()):
        return 0, 0
    pack, length = int(parts[0]), int(parts[1])
    return (pack, length) if checkpoint(pack, length) == data else (0, 0)


def recover(packs: Packs, last: Place | None = None) -> Tail | None:
    """Makes the newest log end with a whole record; None when there is no log to go on with.

    Only bytes behind the last whole record are cut, so damage in the middle
    costs no version that follows it. Where writers share a place, the logs
    of others are theirs: a new one is begun. So it is when `last`, a place
    that was durable, lies beyond the newest log: bytes are missing then, and
    what came instead of them would be read as them.
    """
    packs.backend.sweep()
    if packs.backend.shared:
        return None
    logs = {pack: size for pack, size in packs.refresh().items() if packs.is_log(pack)}
    while logs and logs[max(logs)] < HEADER_BYTES:
        empty = max(logs)
        packs.drop(empty)
        del logs[empty]
    if not logs:
        return None
    pack, size = max(logs.items())
    marked, length = parse_checkpoint(packs.backend.recall(CHECKPOINT))
    sure = length if marked == pack and HEADER_BYTES <= length <= size else 0
    sound = _sound_length(packs, pack, size, sure or HEADER_BYTES)
    if sound < size or not sure:
        # Without a checkpoint even the name of the log may not have reached the disk yet.
        packs.backend.cut(packs.name(pack), sound)
    # A log behind a finished pack was closed by a compaction; it waits only to be emptied and released.
    closed = pack < max(packs.refresh())
    short = last is not None and last[:2] >= (pack, sound)
    return None if closed or short or not _can_go_on(packs, pack) else Tail(pack, packs.name(pack), sound)


def _sound_length(packs: Packs, pack: int, size: int, start: int) -> int:
    if not packs.backend.torn_appends:
        return size
    walker = Walker(lambda offset, count: packs.span(pack, offset, count), pack, size)
    return max((found.end for found in walker.walk(start) if isinstance(found, Record)), default=start)


def _can_go_on(packs: Packs, pack: int) -> bool:
    """A log whose header is damaged is left as it is; one of a later release is refused."""
    name = packs.name(pack)
    try:
        parse_pack_header(packs.span(pack, 0, HEADER_BYTES), pack, name)
    except Damaged as error:
        if type(error) is not Damaged:
            raise
        return False
    return True
