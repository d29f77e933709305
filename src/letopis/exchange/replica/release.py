"""The release of an archive: the one file that is replaced, and from which all digests follow."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass, replace
from typing import Any

from letopis.errors import Damaged, NewerFormat, Refused
from letopis.exchange.replica.layout import is_index_name
from letopis.zrec import Release, encode_release, parse_release

MOST_BYTES = 64 * 1024
_FORMAT = "letopis-release"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Counts:
    """What a complete clone counts."""

    documents: int
    versions: int
    checks: int
    contents: int
    raw_bytes: int


@dataclass(frozen=True, slots=True)
class ArchiveRelease:
    """One state of a published archive."""

    archive: str
    serial: int
    time: str
    index: str
    zrec: Release
    counts: Counts
    hmac_sha256: str | None = None

    def signed(self, key: bytes) -> ArchiveRelease:
        """The release with a signature by this key."""
        return replace(self, hmac_sha256=_signature(self, key))

    def check_signature(self, key: bytes) -> None:
        """`Refused` unless whoever made the release holds this key."""
        if self.hmac_sha256 is None or not hmac.compare_digest(self.hmac_sha256, _signature(self, key)):
            raise Refused("the release is not signed with this key; ask the publisher for the right one")


def encode(made: ArchiveRelease) -> bytes:
    """The release as it is published."""
    return _canonical(_fields(made)) + b"\n"


def parse(data: bytes) -> ArchiveRelease:
    """Reads a release. `Damaged` when it is none, `NewerFormat` when a later Letopis wrote it."""
    if len(data) > MOST_BYTES:
        raise Damaged(f"the release is over {MOST_BYTES} bytes; check the address or publish again")
    try:
        return _parsed(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise Damaged("this is no release of an archive; check the address or publish again") from None


def _parsed(fields: dict[str, Any]) -> ArchiveRelease:
    if fields["format"] != _FORMAT:
        raise ValueError("another format")
    if fields["version"] != _VERSION:
        raise NewerFormat("a later release of Letopis published this archive; update Letopis")
    index, serial, archive = str(fields["index"]), _count(fields["serial"]), str(fields["archive"])
    if not is_index_name(index) or not serial or len(bytes.fromhex(archive)) != 16:
        raise ValueError("a name that cannot be")
    counts = Counts(**{name: _count(fields["counts"][name]) for name in Counts.__dataclass_fields__})
    signature = fields.get("hmac_sha256")
    zrec = parse_release(json.dumps(fields["zrec"]).encode())
    return ArchiveRelease(
        archive, serial, str(fields["time"]), index, zrec, counts, None if signature is None else str(signature)
    )


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError("not a count")
    return value


def _fields(made: ArchiveRelease) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "archive": made.archive,
        "serial": made.serial,
        "time": made.time,
        "index": made.index,
        "zrec": json.loads(encode_release(made.zrec)),
        "counts": {name: getattr(made.counts, name) for name in Counts.__dataclass_fields__},
    }
    return fields if made.hmac_sha256 is None else fields | {"hmac_sha256": made.hmac_sha256}


def _canonical(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _signature(made: ArchiveRelease, key: bytes) -> str:
    return hmac.new(key, _canonical(_fields(replace(made, hmac_sha256=None))), "sha256").hexdigest()
