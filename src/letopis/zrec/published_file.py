"""A published zrec file: its release, the sources it is read from, and which ranges to ask for."""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from letopis.binary import file_sha256, write_file_durably
from letopis.errors import Damaged, NewerFormat, NotFound, Refused, Unavailable
from letopis.zrec import header as heads
from letopis.zrec.header import MAX_RELEASE, MiB

RELEASE_SUFFIX = ".release"
_RELEASE_FORMAT = "zrec-release"
_RELEASE_VERSION = 1
_SIGNATURE = "hmac_sha256"
_HISTORY_ROWS = 16


@dataclass(frozen=True, slots=True)
class ZrecRelease:
    """Digests of one state of a file."""

    name: str
    time: str
    size: int
    sha256: str
    index_sha256: str
    history: tuple[tuple[str, int], ...] = ()
    """Old indexes (16 bytes as digits) and the end of the journals that lead on from them."""
    hmac_sha256: str | None = None

    def signed(self, key: bytes) -> ZrecRelease:
        """The release with a signature by this key."""
        return replace(self, hmac_sha256=release_signature(_release_fields(self), key))

    def check_signature(self, key: bytes) -> None:
        """`Refused` unless whoever made the release holds this key."""
        check_release_signature(_release_fields(self), key)

    def journals_end(self, index_digest: bytes) -> int | None:
        """Where the journals end that lead from this old index to the new one."""
        return dict(self.history).get(index_digest[:16].hex())


def release_path(path: Path) -> Path:
    """Where the release of a file lies."""
    return path.with_name(path.name + RELEASE_SUFFIX)


def describe_release(path: Path, *, time: datetime, key: bytes | None = None) -> ZrecRelease:
    """The release of a file as it is now."""
    header = _header_of(path)
    rows: list[tuple[str, int]] = []
    end = header.size
    for old, length in header.history[:_HISTORY_ROWS]:
        end += length
        rows.append((old.hex(), end))
    moment = time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    digests = (file_sha256(path), header.index_digest.hex())
    made = ZrecRelease(path.name, moment, path.stat().st_size, *digests, history=tuple(rows))
    return made.signed(key) if key else made


def write_release(path: Path, *, time: datetime, key: bytes | None = None) -> ZrecRelease:
    """Writes the release of a file beside it."""
    made = describe_release(path, time=time, key=key)
    write_file_durably(release_path(path), encode_release(made))
    return made


def encode_release(made: ZrecRelease) -> bytes:
    """The release as JSON."""
    return canonical_json(_release_fields(made)) + b"\n"


def parse_release(data: bytes) -> ZrecRelease:
    """Reads a release; fields it does not know are passed over, unless the version is another."""
    if len(data) > MAX_RELEASE:
        raise Damaged(f"The release is over {MAX_RELEASE} bytes; publish it again.")
    try:
        fields = json.loads(data)
        if fields["format"] != _RELEASE_FORMAT:
            raise ValueError("another format")
        if fields["version"] != _RELEASE_VERSION:
            raise NewerFormat(f"The release has version {fields['version']}, not {_RELEASE_VERSION}; update Letopis.")
        return _checked_release(fields)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as wrong:
        raise Damaged(f"The release cannot be read ({wrong}); publish it again.") from None


def _checked_release(fields: dict[str, Any]) -> ZrecRelease:
    made = ZrecRelease(
        name=str(fields["name"]),
        time=str(fields["time"]),
        size=int(fields["size"]),
        sha256=_digits(fields["sha256"], 32),
        index_sha256=_digits(fields["index_sha256"], 32),
        history=tuple((_digits(old, 16), int(end)) for old, end in fields.get("history", [])),
        hmac_sha256=_digits(fields["hmac_sha256"], 32) if "hmac_sha256" in fields else None,
    )
    if made.size < 0 or len(made.history) > _HISTORY_ROWS or any(end < 0 for _, end in made.history):
        raise ValueError("impossible sizes")
    return made


def _digits(value: Any, size: int) -> str:
    if len(bytes.fromhex(value)) != size:
        raise ValueError("a digest of the wrong length")
    return str(value).lower()


def _release_fields(made: ZrecRelease) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "format": _RELEASE_FORMAT,
        "version": _RELEASE_VERSION,
        "name": made.name,
        "time": made.time,
    }
    fields |= {"size": made.size, "sha256": made.sha256, "index_sha256": made.index_sha256}
    if made.history:
        fields["history"] = made.history
    if made.hmac_sha256 is not None:
        fields["hmac_sha256"] = made.hmac_sha256
    return fields


def canonical_json(fields: dict[str, Any]) -> bytes:
    """The one form in which a release is published and signed."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def release_signature(fields: dict[str, Any], key: bytes) -> str:
    """The signature of a release by a key: over all of its fields but the signature."""
    signed = {name: value for name, value in fields.items() if name != _SIGNATURE}
    return hmac.new(key, canonical_json(signed), "sha256").hexdigest()


def check_release_signature(fields: dict[str, Any], key: bytes) -> None:
    """`Refused` unless a release was signed with this key."""
    given = str(fields.get(_SIGNATURE, "")).encode("utf-8", "surrogatepass")
    if not hmac.compare_digest(given, release_signature(fields, key).encode()):
        raise Refused("the release is not signed with this key; ask the publisher for the right one")


def _header_of(path: Path) -> heads.ZrecHeader:
    try:
        with path.open("rb") as file:
            prefix = file.read(heads.HEADER_PREFIX)
            return heads.parse_header(prefix + file.read(heads.header_size(prefix) - heads.HEADER_PREFIX))
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}; give the path of a zrec file.") from None


class NoRanges(Unavailable):
    """The server does not serve parts of a file."""


class RangeCut(Unavailable):
    """A source failed within a range; `data` is what came from the start of it on, and need not be asked for again."""

    def __init__(self, message: str, data: bytes) -> None:
        super().__init__(message)
        self.data = data


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes on the wire so far, headers included, and requests made."""

    received: int = 0
    sent: int = 0
    requests: int = 0

    def since(self, before: Traffic) -> Traffic:
        """What came on top of an earlier state."""
        return Traffic(self.received - before.received, self.sent - before.sent, self.requests - before.requests)


class RangeSource(Protocol):
    """One published file and its release. Calls may overlap.

    Every failure that may pass is `Unavailable`, within a range `RangeCut`; a server without ranges is `NoRanges`.
    """

    @property
    def traffic(self) -> Traffic:
        """Counted up to now."""

    async def size(self) -> int:
        """Length of the file."""

    async def read(self, start: int, end: int) -> bytes:
        """The bytes from start up to, not including, end: exactly that many."""

    async def read_release(self) -> bytes | None:
        """The release, None when there is none."""

    def stream(self) -> AsyncIterator[bytes]:
        """The whole file in parts."""


class FileSource:
    """A file on this machine, for `file:` addresses. Each read counts as a request without headers."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._received = 0
        self._requests = 0

    @property
    def traffic(self) -> Traffic:
        """Bytes read and number of reads."""
        return Traffic(self._received, 0, self._requests)

    async def size(self) -> int:
        """Length of the file."""
        try:
            return self._path.stat().st_size
        except OSError as wrong:
            raise self._unavailable(wrong) from None

    async def read(self, start: int, end: int) -> bytes:
        """The bytes asked for."""
        data = self._counted(self._at(self._path, start, end - start))
        if len(data) != end - start:
            raise Unavailable(f"{self._path} ended while it was read; try again.")
        return data

    async def read_release(self) -> bytes | None:
        """The release beside the file."""
        path = release_path(self._path)
        return self._counted(self._at(path, 0, MAX_RELEASE + 1)) if path.exists() else None

    async def stream(self) -> AsyncIterator[bytes]:
        """The whole file."""
        at = 0
        while data := self._counted(self._at(self._path, at, MiB)):
            yield data
            at += len(data)

    def _at(self, path: Path, start: int, count: int) -> bytes:
        try:
            with path.open("rb") as file:
                return os.pread(file.fileno(), count, start)
        except OSError as wrong:
            raise self._unavailable(wrong) from None

    def _unavailable(self, wrong: OSError) -> Unavailable:
        return Unavailable(f"{self._path} cannot be read ({wrong.strerror}); check the path.")

    def _counted(self, data: bytes) -> bytes:
        self._received += len(data)
        self._requests += 1
        return data


ByteRange = tuple[int, int]

MAX_RANGE_BYTES = MiB // 2
"""Longest single range: what is in flight stays small, and a transfer that is killed loses no more."""

_COST_UNKNOWN = 400


def merge_ranges(wanted: Iterable[ByteRange], gap: int) -> list[ByteRange]:
    """The ranges in ascending order, joined where no more than `gap` bytes lie between two."""
    joined: list[ByteRange] = []
    for start, end in sorted(wanted):
        if start == end:
            continue
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def limit_ranges(ranges: Iterable[ByteRange], most: int = MAX_RANGE_BYTES) -> list[ByteRange]:
    """The same bytes in ranges of at most `most`."""
    return [(at, min(at + most, end)) for start, end in ranges for at in range(start, end, most)]


def request_cost(traffic: Traffic, payload: int) -> int:
    """Bytes that one more request costs beyond what it fetches, as seen so far."""
    if not traffic.requests:
        return _COST_UNKNOWN
    return max(0, traffic.received + traffic.sent - payload) // traffic.requests
