"""The tree of errors.

Each class has the exit status of the command line and the status of HTTP, and its text is one sentence that says what
to do. Every error that reaches a user is one of these. If a command can solve the problem, it is stored as a
`Remedy`: Python programs are told the call, and users of the command line and HTTP the verb.
"""

from __future__ import annotations

from letopis.tuples import NamedTuple


class Remedy(NamedTuple):
    """What can be done about an error: the verb of the command line and the call of Python that do the same."""

    verb: str
    call: str
    lead: str = "try"
    tail: str = ""

    def words(self, *, typed: bool) -> str:
        """In the terms of the command line, or of Python."""
        named = f"'letopis {self.verb}'" if typed else self.call
        return f"{self.lead} {named}{self.tail}"


REPAIR = Remedy("verify --repair", "letopis.Archive.repair(settings)", "run")
VERIFY = Remedy("verify", "letopis.Archive.verify()", "run")


def check_remedy(url: str) -> Remedy:
    """Check a page first."""
    return Remedy(f"check {url}", f"letopis.Monitor(archive).get({url!r}).check()")


def crawl_remedy(site: str) -> Remedy:
    """Crawl a site first."""
    return Remedy(f"crawl {site}", f"letopis.crawl.crawl(archive, CrawlOptions(({site!r},)))")


def pull_remedy(clone: object) -> Remedy:
    """Update a clone."""
    return Remedy(f"pull {clone}", "letopis.exchange.replica.pull()", "bring it up to date with")


def fill_remedy(clone: object) -> Remedy:
    """Fetch what a clone lacks."""
    options = "letopis.exchange.replica.PullOptions(fill=True)"
    return Remedy(f"pull {clone} --fill", f"letopis.exchange.replica.pull() with {options}", "fetch all with")


class LetopisError(Exception):
    """Any error that is reported to the user."""

    exit_status = 1
    http_status = 500

    def __init__(self, message: str, remedy: Remedy | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy

    @property
    def message(self) -> str:
        """The sentence without the remedy."""
        return str(self.args[0])

    def __str__(self) -> str:
        """The sentence for callers from Python."""
        return self._sentence(typed=False)

    def _sentence(self, *, typed: bool) -> str:
        return f"{self.message}; {self.remedy.words(typed=typed)}" if self.remedy is not None else self.message


def shell_words(error: BaseException) -> str:
    """The sentence for users of the command line and HTTP."""
    return error._sentence(typed=True) if isinstance(error, LetopisError) else str(error)


class UsageError(LetopisError):
    """The request is invalid: a bad parameter, time or address."""

    exit_status = 2
    http_status = 400


class SettingError(UsageError):
    """A setting is unknown or its value is invalid."""


class BadUrl(UsageError):
    """The text is not an address that can be fetched or stored."""


class NotFound(LetopisError):
    """No such URL, version, record, job or account."""

    exit_status = 3
    http_status = 404


class UnknownUrl(NotFound):
    """The URL was never checked or stored."""


class UnknownVersion(NotFound):
    """The URL is known, but the requested version is not."""


class Unavailable(LetopisError):
    """The server did not answer with a status below 400."""

    exit_status = 4
    http_status = 502


class RemoteChanged(Unavailable):
    """A file on a server changed while parts of it were being read."""


class DocumentTooLarge(LetopisError):
    """The document is over the size limit and `force` was not set."""

    exit_status = 5
    http_status = 413


class TooCostly(LetopisError):
    """A document or an expression needs more time or memory than allowed; `final` if another attempt would fail too."""

    exit_status = 5
    http_status = 413

    def __init__(self, message: str, *, final: bool = True) -> None:
        super().__init__(message)
        self.final = final


class Damaged(LetopisError):
    """Stored bytes differ from what was written."""

    exit_status = 6


class NewerFormat(Damaged):
    """The file was written by a later release of Letopis."""


class Refused(LetopisError):
    """No request is sent: robots.txt forbids it, or the address is not allowed."""

    exit_status = 7
    http_status = 403


class PageChanged(LetopisError):
    """A page has changed since the last check, and the caller asked for a failure in that case."""

    exit_status = 8
    http_status = 409


class CodecRefused(LetopisError):
    """A method cannot encode an input (not enough free symbols)."""


class Busy(LetopisError):
    """Another process is writing to this archive."""

    http_status = 503


class QuotaUsedUp(LetopisError):
    """A user has used up a daily quota; `seconds` until the next day begins."""

    http_status = 429

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class MissingExtra(LetopisError):
    """An optional dependency is needed; the message names the extra."""

    http_status = 501


class NotReady(LetopisError):
    """The machine cannot do it at the moment: disk full, folder read-only, port taken."""

    http_status = 503
