"""The packs of a store: their numbers, names and flags, and single records read by place."""

from __future__ import annotations

from collections.abc import Callable

from letopis.errors import Damaged
from letopis.store.backend import Backend
from letopis.store.layout import (
    HEADER_BYTES,
    Extent,
    Record,
    checked_record,
    extent,
    known,
    parse_pack_header,
)
from letopis.store.values import Moved

LOG, PACK = ".log", ".pack"
_START_READ = 1024
_FIRST_READ = 32 * 1024
"""One read of this size holds nearly every record; a longer one takes a second."""
_LARGEST_GUESS = 1 << 20


class Packs:
    """Finds packs by number. Numbers only rise, so a number never means two different packs."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._names: dict[int, str] = {}
        self._flags: dict[int, int] = {}
        self._last = 0
        self.floor: Callable[[], int] = lambda: 0
        """The highest number that was ever given out, as far as somebody else remembers it."""
        self.refresh()

    def refresh(self) -> dict[int, int]:
        """Looks again; numbers and sizes of all packs, in order. Removed packs are let go, so that space comes back."""
        sizes = {name: size for name, size in self.backend.list().items() if _number(name) > 0}
        gone = set(self._names.values()).difference(sizes)
        self._names = {_number(name): name for name in sorted(sizes)}
        for name in gone:
            self.backend.forget(name)
        self._last = max(self._last, *self._names, 0)
        return {pack: sizes[name] for pack, name in sorted(self._names.items())}

    def allocate(self, suffix: str) -> tuple[int, str]:
        """A number that was never used, and the name that belongs to it."""
        self._last = self.backend.number(max(self._last, self.floor()))
        return self._last, f"{self._last:08d}{suffix}"

    def add(self, pack: int, name: str) -> None:
        """Makes a new pack known."""
        self._names[pack] = name

    def drop(self, pack: int) -> None:
        """Removes a pack for good."""
        self.backend.remove(self._names.pop(pack))
        self._flags.pop(pack, None)

    def name(self, pack: int) -> str:
        """The pack's name; Moved when there is no such pack any more."""
        if pack not in self._names:
            self.refresh()
        try:
            return self._names[pack]
        except KeyError:
            raise Moved(
                f"pack {pack} is not in {self.backend.where}; look the content up again, or restore it"
            ) from None

    def is_log(self, pack: int) -> bool:
        """Whether the pack waits for compaction."""
        return self.name(pack).endswith(LOG)

    def flags(self, pack: int) -> int:
        """The flags of the header, 0 when it is damaged: no record needs it. A later format is refused."""
        flags = self._flags.get(pack)
        if flags is None:
            try:
                flags = parse_pack_header(self.span(pack, 0, HEADER_BYTES), pack, self.name(pack))
            except Moved:
                raise
            except Damaged as error:
                if type(error) is not Damaged:
                    raise
                flags = 0
            self._flags[pack] = flags
        return flags

    def span(self, pack: int, offset: int, length: int) -> bytes:
        """A range of a pack; Moved when the pack is gone."""
        name = self.name(pack)
        try:
            return self.backend.read(name, offset, length)
        except FileNotFoundError:
            self._names.pop(pack, None)
            raise self._gone(name) from None

    def record(self, pack: int, offset: int, guess: int = 0) -> Record:
        """The record at a place, checked. `guess` is its length where the caller knows it."""
        if pack not in self._flags:
            self.flags(pack)
        length = min(max(guess + _START_READ, _FIRST_READ), _LARGEST_GUESS)
        data = self.span(pack, offset, length)
        found = extent(data)
        if found is not None and found.end > len(data) == length:
            data += self.span(pack, offset + length, found.end - length)
        record = found and checked_record(data, 0, found, pack=pack, offset=offset)
        if record is None or not known(record, self.name(pack)):
            raise damaged(self.name(pack), offset, "what is stored there is not what was written")
        return record

    def start(self, pack: int, offset: int) -> tuple[Extent, bytes] | None:
        """What the record at an offset claims to be, and its head where that is short; nothing is checked."""
        data = self.span(pack, offset, _START_READ)
        found = extent(data)
        return found and (found, data[found.head_at : found.body_at])

    def _gone(self, name: str) -> Moved:
        return Moved(f"{name} is not in {self.backend.where}; look the content up again, or restore it from a copy")


def damaged(name: str, offset: int, problem: str) -> Damaged:
    """The error that names a spot."""
    return Damaged(f"{name}, offset {offset}: {problem}; run verify to see what is affected")


def _number(name: str) -> int:
    stem, dot, suffix = name.partition(".")
    return int(stem) if dot + suffix in (LOG, PACK) and stem.isdecimal() else 0
