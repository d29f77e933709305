"""The release file: which bytes are the right ones, beside the file they are of."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from letopis.errors import Damaged, NewerFormat, NotFound, Refused
from letopis.zrec import header as heads
from letopis.zrec.durable import write_durably
from letopis.zrec.limits import MAX_RELEASE, MiB

SUFFIX = ".release"
_FORMAT = "zrec-release"
_VERSION = 1
_ROWS = 16


@dataclass(frozen=True, slots=True)
class Release:
    """Digests of one state of a file."""

    name: str
    time: str
    size: int
    sha256: str
    index_sha256: str
    history: tuple[tuple[str, int], ...] = ()
    """Old indexes (16 bytes as digits) and the end of the journals that lead on from them."""
    hmac_sha256: str | None = None

    def signed(self, key: bytes) -> Release:
        """The release with a signature by this key."""
        return replace(self, hmac_sha256=_signature(self, key))

    def check_signature(self, key: bytes) -> None:
        """`Refused` unless whoever made the release holds this key."""
        if self.hmac_sha256 is None or not hmac.compare_digest(self.hmac_sha256, _signature(self, key)):
            raise Refused("The release is not signed with this key; ask the publisher for the right one.")

    def journals_end(self, index_digest: bytes) -> int | None:
        """Where the journals end that lead from this old index to the new one."""
        return dict(self.history).get(index_digest[:16].hex())


def path_of(path: Path) -> Path:
    """Where the release of a file lies."""
    return path.with_name(path.name + SUFFIX)


def describe(path: Path, *, time: datetime, key: bytes | None = None, name: str | None = None) -> Release:
    """The release of a file as it is now."""
    header = _header_of(path)
    rows: list[tuple[str, int]] = []
    end = header.size
    for old, length in header.history[:_ROWS]:
        end += length
        rows.append((old.hex(), end))
    moment = time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    digests = (file_digest(path), header.index_digest.hex())
    made = Release(name or path.name, moment, path.stat().st_size, *digests, history=tuple(rows))
    return made.signed(key) if key else made


def release(path: Path, *, time: datetime, key: bytes | None = None) -> Release:
    """Writes the release of a file beside it."""
    made = describe(path, time=time, key=key)
    write_durably(path_of(path), encode(made))
    return made


def file_digest(path: Path) -> str:
    """SHA-256 of a file, as digits."""
    state = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(MiB):
            state.update(part)
    return state.hexdigest()


def encode(made: Release) -> bytes:
    """The release as JSON."""
    return _canonical(_fields(made)) + b"\n"


def parse(data: bytes) -> Release:
    """Reads a release; fields it does not know are passed over, unless the version is another."""
    if len(data) > MAX_RELEASE:
        raise Damaged(f"The release is over {MAX_RELEASE} bytes; publish it again.")
    try:
        fields = json.loads(data)
        if fields["format"] != _FORMAT:
            raise ValueError("another format")
        if fields["version"] != _VERSION:
            raise NewerFormat(f"The release has version {fields['version']}, not {_VERSION}; update Letopis.")
        return _checked(fields)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as wrong:
        raise Damaged(f"The release cannot be read ({wrong}); publish it again.") from None


def _checked(fields: dict[str, Any]) -> Release:
    made = Release(
        name=str(fields["name"]),
        time=str(fields["time"]),
        size=int(fields["size"]),
        sha256=_digits(fields["sha256"], 32),
        index_sha256=_digits(fields["index_sha256"], 32),
        history=tuple((_digits(old, 16), int(end)) for old, end in fields.get("history", [])),
        hmac_sha256=_digits(fields["hmac_sha256"], 32) if "hmac_sha256" in fields else None,
    )
    if made.size < 0 or len(made.history) > _ROWS or any(end < 0 for _, end in made.history):
        raise ValueError("impossible sizes")
    return made


def _digits(value: Any, size: int) -> str:
    if len(bytes.fromhex(value)) != size:
        raise ValueError("a digest of the wrong length")
    return str(value).lower()


def _fields(made: Release) -> dict[str, Any]:
    fields: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, "name": made.name, "time": made.time}
    fields |= {"size": made.size, "sha256": made.sha256, "index_sha256": made.index_sha256}
    if made.history:
        fields["history"] = made.history
    if made.hmac_sha256 is not None:
        fields["hmac_sha256"] = made.hmac_sha256
    return fields


def _canonical(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _signature(made: Release, key: bytes) -> str:
    return hmac.new(key, _canonical(_fields(replace(made, hmac_sha256=None))), "sha256").hexdigest()


def _header_of(path: Path) -> heads.Header:
    try:
        with path.open("rb") as file:
            prefix = file.read(heads.PREFIX)
            return heads.parse(prefix + file.read(heads.size_of(prefix) - heads.PREFIX))
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}; give the path of a zrec file.") from None
