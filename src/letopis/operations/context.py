"""What an operation may use: the archive, the requester, the clock, progress, and cancellation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Literal, Protocol

from letopis.archive import Archive
from letopis.archive.audit import seconds_to_next_day, usage_of
from letopis.config import Settings
from letopis.errors import LetopisError, NotReady, QuotaUsedUp, Refused, TooCostly
from letopis.fetch import Origin, is_private_url
from letopis.model import to_millis
from letopis.model.rights import OWN
from letopis.tuples import NamedTuple


class Cancelled(LetopisError):
    """The operation was cancelled; what was recorded is kept."""


class Progress(Protocol):
    """Long work reports its progress to it, and asks it whether to continue."""

    def show(self, done: int, what: str = "", of: int = 0) -> None:
        """So many items are done, of so many where that is known."""

    def remark(self, sentence: str) -> None:
        """Something that whoever waits should know meanwhile."""

    def cancelled(self) -> bool:
        """Whether to stop; asked between units of work, and cheap to ask."""


class Silent:
    """Progress that is not shown, for work that is not cancelled."""

    def show(self, done: int, what: str = "", of: int = 0) -> None:
        """Nothing is shown."""

    def remark(self, sentence: str) -> None:
        """Nobody listens."""

    def cancelled(self) -> bool:
        """Never."""
        return False


SILENT = Silent()


class BoundedWork(Silent):
    """Work that is stopped when its time is up, and what it remarks."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = monotonic() + seconds
        self.remarks: list[str] = []

    def remark(self, sentence: str) -> None:
        """Kept for the answer."""
        self.remarks.append(sentence)

    def cancelled(self) -> bool:
        """Whether the time is up."""
        return monotonic() > self._end


class Context(NamedTuple):
    """Passed to every operation by its door.

    `user` and `rights` are those of the requester; the doors have already compared `rights` with what the operation
    needs. `private_ok` allows checks of private addresses: the command line may, requests through HTTP may not unless
    the owner allowed it. `origin` is stored with what is created: the command line of the owner, or HTTP. `form` is
    how this door shows a document if no format was requested. `address` is the network address of a request, for the
    audit log. `offline` restricts operations to what is recorded: a request that only reads never sends requests to
    the web. `output` is the folder for files. Nothing is learned from an `unseen` answer, because it is not shown.
    """

    archive: Archive
    user: str = ""
    rights: int = 0
    private_ok: bool = False
    origin: Origin = "http"
    form: Literal["text", "json", "xml"] = "text"
    progress: Progress = SILENT
    address: str = ""
    offline: bool = False
    output: Path | None = None
    unseen: bool = False

    @property
    def settings(self) -> Settings:
        """The settings of the archive."""
        return self.archive.settings

    @property
    def wants_row(self) -> bool:
        """Whether a program on the command line asks: it gets a document as one object."""
        return self.origin == "cli" and self.form == "json"

    def open_archive(self) -> Archive:
        """The archive once more, for operations that open and close it themselves."""
        return Archive(settings=self.archive.settings, clock=self.archive.clock)

    @contextmanager
    def reading_on(self, still_here: Callable[[], object]) -> Iterator[None]:
        """What is asked of the machine only beside an answer: where a full disk forbids it, what is here answers.

        Where that is nothing, the error stands.
        """
        try:
            yield
        except NotReady as error:
            if not still_here():
                raise
            self.progress.remark(f"answered from what is here already: {error}")

    def moment(self, at: datetime | None = None) -> datetime:
        """A time that was asked for; now where none was."""
        return at or self.archive.clock()

    def may(self, right: int) -> bool:
        """Whether whoever asks has all of a right."""
        return self.rights & right == right

    def may_change(self, owner: str) -> bool:
        """Whether whoever asks may change what belongs to a user: who made it, and the owners of the archive."""
        return self.may(OWN) or bool(owner and owner == self.user)

    def charge(self, what: Literal["checks", "watches"], amount: int = 1) -> None:
        """Counts against the day's share of whoever asks; QuotaUsedUp when it is used up. Owners have no limit.

        Called once everything else is known to fit: what is refused costs nothing.
        """
        settings = self.archive.settings.serve
        most = settings.checks_a_day if what == "checks" else settings.watches_a_day
        now = to_millis(self.archive.clock())
        if not most or not amount or self.may(OWN) or usage_of(self.archive).take(self.user, what, most, now, amount):
            return
        sentence = f"'{self.user}' has used up the {most} {what} of today; go on tomorrow (UTC), or ask an owner"
        raise QuotaUsedUp(sentence, seconds_to_next_day(now))

    def refuse_private(self, urls: Iterable[str]) -> None:
        """Raises Refused for the first address that whoever asks may not have fetched."""
        for url in urls:
            if not self.private_ok and is_private_url(url):
                raise Refused(f"{url} is a private address; the owner can allow them with fetch.private")

    def counted_progress(self, done: int, of: int, what: str) -> None:
        """For work that says itself what it counts."""
        self.progress.show(done, what, of)

    def steps(self, what: str, of: int = 0) -> Callable[[int], None]:
        """To be called with how many items are done; raises Cancelled when nobody wants the answer any more."""

        def show(done: int) -> None:
            self.raise_if_cancelled()
            self.progress.show(done, what, of)

        return show

    def steps_of(self, what: str) -> Callable[[int, int], None]:
        """The same for work that finds out itself how many items there are."""
        return lambda done, of: self.steps(what, of)(done)

    def raise_if_cancelled(self) -> None:
        """Raises Cancelled when nobody wants the answer any more, TooCostly when its time is up."""
        if self.progress.cancelled():
            if isinstance(self.progress, BoundedWork):
                raise TooCostly(f"this takes more than {self.progress.seconds:g} s; ask for a part: a site, fewer rows")
            raise Cancelled("stopped; what was recorded stays")


class LocalContext(NamedTuple):
    """Passed by the command line to operations that start without an open archive, because they copy or repair one.

    `open_archive` opens the one that the settings name; NotFound if there is none. A Context can be used in its place.
    """

    settings: Settings
    open_archive: Callable[[], Archive]
    progress: Progress = SILENT

    def counted_progress(self, done: int, of: int, what: str) -> None:
        """For work that says itself what it counts."""
        self.progress.show(done, what, of)
