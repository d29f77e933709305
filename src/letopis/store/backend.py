"""What the store asks of the place where packs lie. One conformance suite holds every backend to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Draft(Protocol):
    """An object in the making; nobody sees it before `commit`."""

    def write(self, data: bytes) -> None:
        """Adds bytes at the end."""

    def commit(self) -> None:
        """Makes the object durable and visible, whole; fails when the name is taken."""

    def discard(self) -> None:
        """Forgets it; harmless after commit."""


class Lease(Protocol):
    """The right to write, held until it is given back or the process ends."""

    def release(self) -> None:
        """Gives the right back."""


class Backend(Protocol):
    """A flat set of named objects.

    Objects are of two sorts: finished ones, which appear whole by
    `create(...).commit()` and never change, and logs, which one writer
    extends by `append`. An object store keeps a log as a series of
    create-only segments named by their offset; whoever reads does not see
    the difference.

    Failures of the machine are NotReady, a second writer is Busy, and a
    name that does not exist is FileNotFoundError.
    """

    @property
    def where(self) -> str:
        """The place as people name it, for messages."""

    @property
    def torn_appends(self) -> bool:
        """Whether a crash during `append` may leave a part of the data."""

    @property
    def shared(self) -> bool:
        """Whether several writers are at work at once, each with logs of its own that nobody else extends."""

    def lease(self) -> Lease:
        """Takes the right to write; Busy when somebody else has it."""

    def number(self, last: int) -> int:
        """A pack number above `last` that no pack ever had."""

    def list(self) -> Mapping[str, int]:
        """Names and sizes of all finished objects and logs."""

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer only at the end of the object."""

    def append(self, name: str, offset: int, data: bytes) -> None:
        """Adds bytes to a log whose size is `offset`; creates it at 0. Durable only after `sync`."""

    def sync(self, name: str) -> None:
        """Returns when everything appended to the log, and its name, would survive a power cut."""

    def cut(self, name: str, length: int) -> None:
        """Makes a log end here, durably and its name too; used only to take back what was never acknowledged."""

    def create(self, name: str) -> Draft:
        """Begins a finished object."""

    def remove(self, name: str) -> None:
        """Removes an object for good before it returns; one that is not there is no error."""

    def remark(self, name: str, data: bytes) -> None:
        """Replaces a small object that is not listed. A crash may lose or tear it: it carries its own check."""

    def recall(self, name: str) -> bytes:
        """The bytes of `remark`, empty when there are none."""

    def sweep(self) -> None:
        """Removes what killed drafts left behind; only the holder of the lease calls it."""

    def forget(self, name: str) -> None:
        """Drops whatever is cached about an object."""

    def close(self) -> None:
        """Gives back files and connections."""
