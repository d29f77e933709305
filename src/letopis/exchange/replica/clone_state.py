"""The state of a clone: its origin, which part it selects, and which release its catalogue shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from letopis.archive.replica import CheckRecord
from letopis.binary import make_private_folder, write_parts_durably
from letopis.errors import Damaged, NotFound, Refused, Remedy, UsageError
from letopis.exchange.replica import release as releases
from letopis.exchange.replica.release import ArchiveRelease, CloneFolder
from letopis.urls import host, site

_FOREVER = 1 << 62

_GO_BACK = Remedy(
    "pull DIR --allow-older", "letopis.exchange.replica.PullOptions(allow_older=True)", "or take an older one with"
)
"""Advice for users who trust the publisher."""


@dataclass(frozen=True, slots=True)
class CloneSelection:
    """Empty values select everything.

    `site` says which URLs the clone knows. Times (milliseconds) and `lazy` say which contents are fetched in advance:
    histories are always complete, and missing contents are fetched when they are read.
    """

    site: str = ""
    since: int | None = None
    until: int | None = None
    lazy: bool = False

    @property
    def has_all_addresses(self) -> bool:
        """Whether the clone counts what the release counts."""
        return not self.site

    def knows(self, url: str) -> bool:
        """Whether the URL belongs to the clone."""
        return not self.site or host(url) == site(self.site)

    def wanted(self, checks: Sequence[CheckRecord]) -> Iterator[CheckRecord]:
        """The checks of one URL, oldest first, whose contents are fetched in advance."""
        if self.lazy:
            return
        low, high = self.since or -_FOREVER, self.until if self.until is not None else _FOREVER
        versions = [check for check in checks if check.is_version]
        ends = {one.time: two.time for one, two in pairwise(versions)}
        for check in checks:
            # A version counts for as long as it was what the page showed.
            last = ends.get(check.time, _FOREVER) if check.is_version else check.time + 1
            if check.contents and check.time <= high and last > low:
                yield check


@dataclass(frozen=True, slots=True)
class CloneState:
    """The marker of a clone. `signed` asks for a signature at each pull."""

    origin: str
    selection: CloneSelection
    signed: bool = False


def read_state(folder: CloneFolder) -> CloneState:
    """The marker; `NotFound` when the folder is not a clone."""
    try:
        fields = json.loads(folder.marker.read_bytes())
        return CloneState(str(fields["origin"]), CloneSelection(**fields["selection"]), bool(fields["signed"]))
    except FileNotFoundError:
        raise NotFound(
            f"{folder.archive} is not a clone",
            Remedy(f"clone URL {folder.archive}", "letopis.exchange.replica.clone()", "make one with"),
        ) from None
    except (ValueError, KeyError, TypeError, OverflowError):
        raise Damaged(f"{folder.marker} cannot be read; clone again into an empty folder") from None


def write_state(folder: CloneFolder, state: CloneState) -> None:
    """Makes a folder a clone, durably."""
    write_parts_durably(folder.marker, [json.dumps(asdict(state), indent=1).encode() + b"\n"])


def begin_clone(folder: CloneFolder, state: CloneState) -> None:
    """Makes an empty folder a clone, or continues the same one."""
    if folder.marker.exists():
        known = read_state(folder)
        if (known.origin, known.selection) != (state.origin, state.selection):
            raise UsageError(f"{folder.archive} is a clone of another origin or selection; give another folder")
    elif folder.archive.exists() and any(path.name != "replica" for path in folder.archive.iterdir()):
        raise UsageError(f"{folder.archive} is not empty; give another folder")
    # The marker comes first: anything that a kill leaves from here on is the beginning of a clone.
    write_state(folder, state)
    make_private_folder(folder.packs)
    make_private_folder(folder.parts)


def applied_release(folder: CloneFolder) -> ArchiveRelease | None:
    """The release that the catalogue shows; None before the first one is complete."""
    try:
        return releases.parse_archive_release(folder.release.read_bytes())
    except FileNotFoundError:
        return None


def require_next_release(found: ArchiveRelease, known: ArchiveRelease | None, *, allow_older: bool) -> None:
    """Refuses a release that is not the next of the same archive."""
    if known is None:
        return
    if found.archive != known.archive:
        raise Refused("another archive is published there now; clone it into another folder")
    if allow_older or found == known or found.serial > known.serial:
        return
    if found.serial < known.serial:
        raise Refused(
            f"the origin offers release {found.serial}, older than release {known.serial} that is here", _GO_BACK
        )
    raise Damaged(f"two different releases carry the number {found.serial}; ask the publisher, or allow an older one")


def clone_folder(path: Path) -> CloneFolder:
    """The clone in a folder; `NotFound` when there is none."""
    folder = CloneFolder(path)
    read_state(folder)
    return folder
