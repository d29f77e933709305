"""What a clone remembers: where it came from, what it wants, and which release its catalogue shows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from letopis.errors import Damaged, NotFound, Refused, UsageError
from letopis.exchange.replica import release as releases
from letopis.exchange.replica.durable import settled
from letopis.exchange.replica.layout import FIRST_OWN_PACK, CloneFolder
from letopis.exchange.replica.release import ArchiveRelease
from letopis.exchange.replica.selection import Selection
from letopis.store.layout import pack_header


@dataclass(frozen=True, slots=True)
class CloneState:
    """The marker of a clone. `signed` asks for a signature at each pull."""

    origin: str
    selection: Selection
    signed: bool = False


def read_state(folder: CloneFolder) -> CloneState:
    """The marker; `NotFound` when the folder is no clone."""
    try:
        fields = json.loads(folder.marker.read_bytes())
        return CloneState(str(fields["origin"]), Selection(**fields["selection"]), bool(fields["signed"]))
    except FileNotFoundError:
        raise NotFound(f"{folder.archive} is no clone; make one with 'letopis clone URL {folder.archive}'") from None
    except (ValueError, KeyError, TypeError, OverflowError):
        raise Damaged(f"{folder.marker} cannot be read; clone again into an empty folder") from None


def write_state(folder: CloneFolder, state: CloneState) -> None:
    """Makes a folder a clone, durably."""
    settled(folder.marker, [json.dumps(asdict(state), indent=1).encode() + b"\n"])


def begin(folder: CloneFolder, state: CloneState) -> None:
    """Makes an empty folder a clone, or goes on with the same one."""
    if folder.marker.exists():
        known = read_state(folder)
        if (known.origin, known.selection) != (state.origin, state.selection):
            raise UsageError(f"{folder.archive} is a clone of another origin or selection; give another folder")
    elif folder.archive.exists() and any(path.name != "replica" for path in folder.archive.iterdir()):
        raise UsageError(f"{folder.archive} is not empty; give another folder")
    # The marker comes first: whatever a kill leaves from here on is the beginning of a clone.
    write_state(folder, state)
    folder.packs.mkdir(parents=True, exist_ok=True)
    folder.parts.mkdir(parents=True, exist_ok=True)
    own = folder.packs / f"{FIRST_OWN_PACK:08d}.log"
    if not own.exists():
        # The clone's own contents go here, and its numbers never meet those of the origin.
        settled(own, [pack_header(0, FIRST_OWN_PACK)])


def applied(folder: CloneFolder) -> ArchiveRelease | None:
    """The release that the catalogue shows; None before the first one is complete."""
    try:
        return releases.parse(folder.release.read_bytes())
    except FileNotFoundError:
        return None


def judge(found: ArchiveRelease, known: ArchiveRelease | None, *, allow_older: bool) -> None:
    """Refuses a release that is not the next of the same archive."""
    if known is None:
        return
    if found.archive != known.archive:
        raise Refused("another archive is published there now; clone it into a folder of its own")
    if allow_older or found == known or found.serial > known.serial:
        return
    if found.serial < known.serial:
        raise Refused(
            f"the origin offers release {found.serial}, older than release {known.serial} that is here; "
            "--allow-older goes back to it"
        )
    raise Damaged(
        f"two different releases carry the number {found.serial}; ask the publisher, or take it with --allow-older"
    )


def clone_folder(path: Path) -> CloneFolder:
    """The clone in a folder; `NotFound` when there is none."""
    folder = CloneFolder(path)
    read_state(folder)
    return folder
