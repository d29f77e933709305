"""The release of a published archive, from which all digests follow, and the names of files in a published folder and
in a clone: the only place they are spelled.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from letopis.archive import CLONE_MARKER
from letopis.archive.replica import RecordCounts
from letopis.errors import Damaged, NewerFormat
from letopis.zrec import ZrecRelease, encode_release, parse_release
from letopis.zrec.published_file import canonical_json, check_release_signature, release_signature

RELEASE = "release.json"
PACKS = "packs"

_PACK_FILE = re.compile(r"(\d{8})\.(?:pack|log\.(\d{1,15}))")
_INDEX_FILE = re.compile(r"index-(\d{8,12})\.zrec")


def index_name(serial: int) -> str:
    """The index of a release."""
    return f"index-{serial:08d}.zrec"


def is_index_name(name: str) -> bool:
    """Whether a release may name this file as its index: never a path that leads elsewhere."""
    return _INDEX_FILE.fullmatch(name) is not None


def segment_name(log: str, start: int) -> str:
    """The part of a log that begins at an offset."""
    return f"{log}.{start}"


def pack_file(name: str) -> tuple[int, int] | None:
    """Number of the pack and offset of the first byte of a published name; None for other names."""
    found = _PACK_FILE.fullmatch(name)
    return (int(found[1]), int(found[2] or 0)) if found else None


def local_name(published: str) -> str:
    """The name of the pack in an archive: segments of a log are joined again."""
    return ".".join(published.split(".")[:2])


class CloneFolder:
    """Where a clone keeps what it knows of its origin."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.packs = archive / PACKS
        self.marker = archive / CLONE_MARKER
        self.folder = self.marker.parent
        self.release = self.folder / RELEASE
        self.index = self.folder / "index.zrec"
        self.unsettled = self.folder / "unsettled"
        self.incoming = self.folder / "incoming.zrec"
        self.parts = self.folder / "parts"
        self.lock = self.folder / "lock"


MOST_RELEASE_BYTES = 64 * 1024
_FORMAT = "letopis-release"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ArchiveRelease:
    """One state of a published archive."""

    archive: str
    serial: int
    time: str
    index: str
    zrec: ZrecRelease
    counts: RecordCounts
    hmac_sha256: str | None = None

    def signed(self, key: bytes) -> ArchiveRelease:
        """The release with a signature by this key."""
        return replace(self, hmac_sha256=release_signature(_fields(self), key))

    def check_signature(self, key: bytes) -> None:
        """`Refused` unless the release was signed with this key."""
        check_release_signature(_fields(self), key)


def encode_archive_release(made: ArchiveRelease) -> bytes:
    """The release as it is published."""
    return canonical_json(_fields(made)) + b"\n"


def parse_archive_release(data: bytes) -> ArchiveRelease:
    """Reads a release. `Damaged` when it is none, `NewerFormat` when a later Letopis wrote it."""
    if len(data) > MOST_RELEASE_BYTES:
        raise Damaged(f"the release is over {MOST_RELEASE_BYTES} bytes; check the address or publish again")
    try:
        return _parsed(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise Damaged("this is not a release of an archive; check the address or publish again") from None


def _parsed(fields: dict[str, Any]) -> ArchiveRelease:
    if fields["format"] != _FORMAT:
        raise ValueError("another format")
    if fields["version"] != _VERSION:
        raise NewerFormat("a later release of Letopis published this archive; update Letopis")
    index, serial, archive = str(fields["index"]), _count(fields["serial"]), str(fields["archive"])
    if not is_index_name(index) or not serial or len(bytes.fromhex(archive)) != 16:
        raise ValueError("an invalid name")
    counts = RecordCounts(**{name: _count(fields["counts"][name]) for name in RecordCounts.__dataclass_fields__})
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
        "counts": {name: getattr(made.counts, name) for name in RecordCounts.__dataclass_fields__},
    }
    return fields if made.hmac_sha256 is None else fields | {"hmac_sha256": made.hmac_sha256}
