"""What an operation may use: the archive, who asks, the clock, how to tell progress and when to stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from letopis.archive import Archive
from letopis.errors import LetopisError


class Cancelled(LetopisError):
    """Nobody wants the answer any more; what was recorded stays."""


class Progress(Protocol):
    """Told by long work how far it is; asked by it whether to go on."""

    def show(self, done: int, what: str = "") -> None:
        """So many items are done."""

    def cancelled(self) -> bool:
        """Whether to stop; asked between units of work, and cheap to ask."""


class Silent:
    """Progress that nobody looks at, of work that nobody stops."""

    def show(self, done: int, what: str = "") -> None:
        """Nothing is shown."""

    def cancelled(self) -> bool:
        """Never."""
        return False


@dataclass(frozen=True, slots=True)
class Context:
    """Handed to every operation by its door.

    `user` and `rights` are whoever asks; the doors have already compared
    `rights` with what the operation needs. `private_ok` lets checks go to
    private addresses: the command line may, requests through HTTP may not
    unless the owner allowed it. `form` is how this door shows a document for
    which no format was asked.
    """

    archive: Archive
    user: str = ""
    rights: int = 0
    private_ok: bool = False
    form: Literal["text", "json", "xml"] = "text"
    progress: Progress = field(default_factory=Silent)

    def moment(self, at: datetime | None = None) -> datetime:
        """A time that was asked for; now where none was."""
        return at or self.archive.clock()

    def raise_if_cancelled(self) -> None:
        """Raises Cancelled when nobody wants the answer any more."""
        if self.progress.cancelled():
            raise Cancelled("stopped; what was recorded stays")
