"""What differs between two indexes: the SURT keys whose addresses have to be looked at again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import groupby

from letopis.exchange.replica.records import HEAD, CheckRecord, key_of, parse_check
from letopis.zrec import Reader

_NUMBER = slice(0, len(HEAD) + 10)


def changed_keys(old: Reader | None, new: Reader) -> set[bytes] | None:
    """Keys under which something came, went or changed; None when all have to be looked at."""
    if old is None or old.stored_dictionary != new.stored_dictionary:
        return None
    before, after = _chunks(old), _chunks(new)
    gone = [line for mark in before.keys() - after.keys() for line in old.chunk(before[mark])]
    come = [line for mark in after.keys() - before.keys() for line in new.chunk(after[mark])]
    numbers = {line[_NUMBER] for line in gone if line.startswith(HEAD)}
    if any(line[_NUMBER] in numbers for line in come if line.startswith(HEAD)):
        # A number that means other headers changes checks whose own lines are the same.
        return None
    return {key_of(line) for line in gone + come if not line.startswith(b"!")}


def _chunks(reader: Reader) -> dict[bytes, int]:
    """Chunks by a digest of their stored bytes: equal ones hold equal records under one dictionary."""
    return {hashlib.sha256(reader.stored_chunk(number)).digest()[:16]: number for number in range(len(reader.index))}


def check_groups(new: Reader, keys: set[bytes] | None) -> Iterator[tuple[bytes, list[CheckRecord]]]:
    """The checks of each key, oldest first; of all keys when none are named. Keys without checks come empty."""
    if keys is None:
        lines = (line for line in new.records() if not line.startswith(b"!"))
        for key, group in groupby(lines, key_of):
            yield key, [parse_check(line) for line in group]
        return
    for key in sorted(keys):
        yield key, [parse_check(line) for line in new.starting(key + b" ")]


def by_address(checks: list[CheckRecord]) -> dict[str, list[CheckRecord]]:
    """The checks of one key, address by address."""
    found: dict[str, list[CheckRecord]] = {}
    for check in checks:
        found.setdefault(check.url, []).append(check)
    return found
