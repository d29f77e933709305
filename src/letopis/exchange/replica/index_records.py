"""Records of the published index: values to lines and back, and what differs between two indexes.

docs/internals/replica-format.md is the specification. Lines come from elsewhere: whatever is not as it should be
is `Damaged`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from letopis.archive.details import CheckDetails
from letopis.archive.replica import ABSENT, PUBLISHED_KINDS, BesideRecord, CheckRecord, ContentRecord
from letopis.archive.requests import PageReference, RequestReference, parted_extra
from letopis.errors import Damaged
from letopis.exchange.replica.release import pack_file
from letopis.model import Headers, from_millis, to_millis
from letopis.tuples import NamedTuple
from letopis.urls import surt
from letopis.zrec import ZrecReader

HEAD_MARK, PACK_MARK = b"!h ", b"!p "
NAME_RULE = r"^\S+ \S+"
"""Key and time, or sort and number: lines and names have one order."""
_MOST = 1 << 62
_MOST_TITLE = 1 << 16
_MOST_PACK = 10**8
_MOST_DATA = 1 << 20
_METHOD = re.compile(r"[a-z0-9][a-z0-9+_.-]{0,31}")
"""Names of codecs; which of them this release has is seen when a content is read."""


class SegmentRecord(NamedTuple):
    """One published pack file: `size` bytes of a pack from `start` on.

    `texts` are the packs without which its contents cannot be read; None in
    an index of an earlier release, which did not tell.
    """

    pack: int
    start: int
    file: str
    size: int
    sha256: str
    texts: tuple[int, ...] | None = ()

    @property
    def end(self) -> int:
        """Offset after its last byte."""
        return self.start + self.size


def head_line(number: int, headers: Headers) -> bytes:
    """The line of a header list."""
    return HEAD_MARK + b"%010d " % number + _json(headers)


def segment_line(record: SegmentRecord) -> bytes:
    """The line of a pack file."""
    fields: dict[str, Any] = {"digest": record.sha256, "file": record.file, "size": record.size}
    if record.file.endswith(".pack"):
        fields["texts"] = record.texts
    return PACK_MARK + b"%08d %013d " % (record.pack, record.start) + _json(fields)


def surt_key(url: str) -> str:
    """The SURT key of an address, without anything that would end it early."""
    return surt(url).replace(" ", "%20").replace("\n", "%0A")


def check_line(key: str, record: CheckRecord) -> bytes:
    """The line of a check under its SURT key."""
    fields: dict[str, Any] = {"url": record.url, "s": record.status}
    optional = {"h": record.head, "o": record.outcome, "n": record.number, "m": record.meaningful, "t": record.title}
    fields |= {name: value for name, value in optional.items() if value is not None}
    if record.extra is not None:
        fields["x"] = _object(record.extra)
    if record.content is not None:
        fields["c"] = _content(record.content)
    if record.beside:
        fields["b"] = [[one.kind, _content(one.content), one.head, one.data.hex()] for one in record.beside]
    if record.request is not None:
        fields["r"] = record.request.values()
    if record.page is not None:
        fields["p"] = record.page
    return f"{key} {_stamp(record.time)} ".encode("utf-8", "surrogatepass") + _json(fields)


def key_of_line(line: bytes) -> bytes:
    """The SURT key of a check's line."""
    return line.partition(b" ")[0]


def parse_head(line: bytes) -> tuple[int, Headers]:
    """A header list and its number."""
    try:
        _, number, text = line.split(b" ", 2)
        return int(number), tuple((str(name), str(value)) for name, value in _loads(text))
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise _bad(line) from None


def parse_segment(line: bytes) -> SegmentRecord:
    """A pack file; its name must be the one that its numbers give."""
    try:
        _, pack, start, text = line.split(b" ", 3)
        fields = _loads(text)
        name, size, digest = str(fields["file"]), _whole(fields["size"]), str(fields["digest"])
        found = SegmentRecord(int(pack), int(start), name, size, digest, _texts(name, fields))
        if pack_file(found.file) != (found.pack, found.start) or len(bytes.fromhex(found.sha256)) != 32:
            raise ValueError("names another file")
        if not found.pack:
            raise ValueError("not a pack number")
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        raise _bad(line) from None
    return found


def _texts(name: str, fields: dict[str, Any]) -> tuple[int, ...] | None:
    """Only finished packs lean on others."""
    if not name.endswith(".pack"):
        return ()
    listed = fields.get("texts")
    return None if listed is None else tuple(_whole(pack) for pack in listed)


def parse_check(line: bytes) -> CheckRecord:
    """A check; its key must be that of its address, so that nothing hides under another site."""
    try:
        key, stamp, text = line.split(b" ", 2)
        fields = _loads(text)
        url = str(fields["url"])
        if surt_key(url).encode("utf-8", "surrogatepass") != key:
            raise ValueError("is stored under another key")
        return _check(url, _time(stamp.decode("ascii")), fields)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError):
        raise _bad(line) from None


def _check(url: str, time: int, fields: dict[str, Any]) -> CheckRecord:
    outcome, content = _small(fields.get("o"), 5), fields.get("c")
    found = CheckRecord(
        url=url, time=time, status=_small(fields["s"], 999) or 0, head=_small(fields.get("h"), _MOST), outcome=outcome,
        number=_small(fields.get("n"), _MOST), meaningful=_small(fields.get("m"), 1),
        extra=_extra(fields["x"]) if "x" in fields else None, title=_title(fields["t"]) if "t" in fields else None,
        content=None if content is None else _parsed_content(content),
        beside=tuple(_parsed_beside(row) for row in fields.get("b", ()) if row[0] in PUBLISHED_KINDS),
        request=RequestReference.of_values(fields["r"]) if "r" in fields else None,
        page=PageReference.of_values(fields["p"]) if "p" in fields else None,
    )  # fmt: skip
    if found.is_version and (found.content is None or found.head is None):
        raise ValueError("a version without a content")
    return found


def _content(record: ContentRecord) -> list[Any]:
    digests = record.sha1.hex() + record.identity.to_bytes(8, "big", signed=True).hex()
    return [digests, *record[2:]]


def _parsed_content(fields: list[Any]) -> ContentRecord:
    digests, raw, stored, method, pack, place, slot = fields
    data = bytes.fromhex(digests)
    if len(data) != 28 or not _METHOD.fullmatch(method) or method == ABSENT or not 0 < _whole(pack) < _MOST_PACK:
        raise ValueError("not a content")
    identity = int.from_bytes(data[20:], "big", signed=True)
    return ContentRecord(data[:20], identity, _whole(raw), _whole(stored), method, pack, _whole(place), _whole(slot))


def _parsed_beside(row: list[Any]) -> BesideRecord:
    """The contents beside a check; kinds of later releases are skipped."""
    kind, content, head, data = row
    if (kind == "sent") != (head is not None) or len(data) > _MOST_DATA:
        raise ValueError("not additional data of a check")
    return BesideRecord(kind, _parsed_content(content), _small(head, _MOST), bytes.fromhex(data))


def _stamp(time: int) -> str:
    moment = from_millis(time)
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{time % 1000:03d}"


def _time(stamp: str) -> int:
    if len(stamp) != 17 or not stamp.isdecimal():
        raise ValueError("not a time")
    parts = [int(stamp[:4]), *(int(stamp[at : at + 2]) for at in range(4, 14, 2))]
    year, month, day, hour, minute, second = parts
    return to_millis(datetime(year, month, day, hour, minute, second, int(stamp[14:]) * 1000, tzinfo=UTC))


def _object(extra: str) -> Any:
    """Details as JSON inside JSON if reading gives exactly the same text, otherwise as a text."""
    value = json.loads(extra)
    return value if isinstance(value, dict) and _text(value) == extra else extra


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _extra(value: Any) -> str:
    """Details of a check, none of which could make a later answer fail."""
    text = _text(value)
    CheckDetails.from_outside(json.loads(text))
    # A number there means a record of the catalogue of the origin, not of this one.
    return parted_extra(text).extra or "{}"


def _title(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MOST_TITLE:
        raise ValueError("not a title")
    return value


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _loads(text: bytes) -> Any:
    return json.loads(text.decode("utf-8", "surrogatepass"))


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError("not a number")
    return value


def _small(value: Any, most: int) -> int | None:
    if value is not None and _whole(value) > most:
        raise ValueError("over its bound")
    return value if value is None else _whole(value)


def _bad(line: bytes) -> Damaged:
    start = line[:60].decode(errors="replace")
    return Damaged(f"the published index has an invalid record ({start!r}); publish the archive again")


_NUMBER = slice(0, len(HEAD_MARK) + 10)


def changed_keys(old: ZrecReader | None, new: ZrecReader) -> set[bytes] | None:
    """Keys under which something was added, removed or changed; None if all have to be compared."""
    if old is None or old.stored_dictionary != new.stored_dictionary:
        return None
    before, after = _chunks(old), _chunks(new)
    gone = [line for mark in before.keys() - after.keys() for line in old.chunk(before[mark])]
    come = [line for mark in after.keys() - before.keys() for line in new.chunk(after[mark])]
    numbers = {line[_NUMBER] for line in gone if line.startswith(HEAD_MARK)}
    if any(line[_NUMBER] in numbers for line in come if line.startswith(HEAD_MARK)):
        # A number that means other headers changes checks whose own lines are the same.
        return None
    return {key_of_line(line) for line in gone + come if not line.startswith(b"!")}


def _chunks(reader: ZrecReader) -> dict[bytes, int]:
    """Chunks by a digest of their stored bytes: equal ones hold equal records under one dictionary."""
    return {hashlib.sha256(reader.stored_chunk(number)).digest()[:16]: number for number in range(len(reader.index))}


def check_groups(new: ZrecReader, keys: set[bytes] | None) -> Iterator[tuple[bytes, list[CheckRecord]]]:
    """The checks of each key, oldest first; of all keys when none are named. Keys without checks come empty."""
    if keys is None:
        lines = (line for line in new.records() if not line.startswith(b"!"))
        for key, group in groupby(lines, key_of_line):
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
