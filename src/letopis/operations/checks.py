"""Checks and versions of pages: check a page now, list its earlier checks, list its versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from letopis.archive import READ, WRITE, Archive
from letopis.errors import BadUrl, PageChanged, UsageError
from letopis.fetch.page_steps import MOST_STEPS, STEP_HELP, parse_steps
from letopis.lazy import lazy
from letopis.model import Check, Outcome, to_millis
from letopis.model.page import NOT_JUDGED
from letopis.model.printing import counted
from letopis.operations.context import Context
from letopis.operations.operation import Rows, operation
from letopis.operations.parameters import CLI_ONLY, NOT_CLI, Parameters, parameter, require_span
from letopis.tuples import NamedTuple
from letopis.urls import join, parse_user_url

if TYPE_CHECKING:
    from letopis.archive import verdicts
    from letopis.fetch import browser
    from letopis.monitor import checker
    from letopis.monitor import monitor as monitors
    from letopis.monitor.checker import CheckOptions
    from letopis.monitor.monitor import Monitor
else:
    browser, verdicts = lazy("letopis.fetch.browser"), lazy("letopis.archive.verdicts")
    checker, monitors = lazy("letopis.monitor.checker"), lazy("letopis.monitor.monitor")  # help asks no server

MAX_URLS = 10_000
MAX_ROWS = 10_000
DEFAULT_ROWS = 1000
"""Rows of a list where nobody says how many; the command line shows all."""
_CHECK_ERRORS = (413, 429, 501, 503)


class CheckCommand(Parameters):
    """What to check, for whom, and how."""

    url: tuple[str, ...] = parameter("Addresses of pages.", argument=True, metavar="URL...", at_most=MAX_URLS)
    uid: str = parameter(
        "Observer whose last check counts; empty: none.", default="default", named="as", metavar="UID", longest=200
    )
    now: bool = parameter("Check even if the last check is recent.", default=False)
    force: bool = parameter("Accept no 304 (ask without conditions); store documents of any size.", default=False)
    head: bool = parameter("Ask for the header first; download only what it says has changed.", default=False)
    browser: bool = parameter(
        "Open the page in a browser and capture it, with everything it loads, after its scripts have run.",
        default=False,
    )
    requisites: bool = parameter("Fetch images, styles and scripts of the page too.", default=False)
    step: tuple[str, ...] = parameter(STEP_HELP, default=(), metavar="STEP", at_most=MOST_STEPS)
    fail_if_changed: bool = parameter(
        "Exit with status 8 if a page has something new since the last check.", default=False, doors=CLI_ONLY
    )


class FollowedRedirect(NamedTuple):
    """One redirect on the way to a page."""

    url: str
    status: int
    location: str


class HeaderField(NamedTuple):
    """A header field of a response."""

    name: str
    value: str


_SECRET_FIELDS = frozenset(("set-cookie", "set-cookie2"))


class CheckResult(NamedTuple):
    """One check, with stable field names for scripts.

    `available` is null if no request was sent. `failure` is the kind of failure (dns, connect, tls, timeout, http,
    robots, setting, forbidden-address and others), `error` its description.
    """

    url: str
    final_url: str
    checked_at: datetime
    available: bool | None
    status: int
    outcome: Outcome
    version: int | None
    digest: str
    length: int
    content_type: str
    redirects: tuple[FollowedRedirect, ...]
    error: str
    warnings: tuple[str, ...]
    meaningful: bool | None
    score: float | None
    blocks: tuple[str, ...]
    cached: bool
    changed_for_you: bool | None
    failure: str
    headers: tuple[HeaderField, ...]
    verdict: str
    reason: str
    muted: tuple[str, ...]


def check_result(check: Check) -> CheckResult:
    """A check as it is shown."""
    (
        url, final_url, checked_at, available, status, outcome, version, digest, length, content_type, _, error,
        warnings, _, meaningful, score, blocks, cached, news, failure, reason, muted,
    ) = check  # fmt: skip
    return CheckResult(
        url, final_url, checked_at, available, status, outcome, version, digest, length, content_type,
        _followed(check), error, warnings, meaningful, score, blocks, cached, news, failure, shown_headers(check),
        check.verdict, reason, muted,
    )  # fmt: skip


def _followed(check: Check) -> tuple[FollowedRedirect, ...]:
    return tuple([FollowedRedirect(hop.url, hop.status, hop.location) for hop in check.redirects])


_REDIRECTS = frozenset((301, 302, 303, 307, 308))


def redirected_to(check: Check | CheckResult) -> str:
    """Where an address leads: what answered in its place, or for a crawl, which looks there apart, what it names."""
    if check.final_url not in ("", check.url):
        return check.final_url
    target = next((value for name, value in check.headers if name.lower() == "location"), "")
    return (join(check.url, target) or target) if check.status in _REDIRECTS else ""


def shown_headers(check: Check) -> tuple[HeaderField, ...]:
    """The header of the answer as it came, but for cookies, which are secrets of whoever asked."""
    return tuple([HeaderField(*field) for field in check.headers if field[0].lower() not in _SECRET_FIELDS])


def _sentence(check: CheckResult) -> str:
    text = f"{'not asked' if check.available is None else check.outcome}: {check.url}"
    if check.version is not None:
        text += f" version {check.version}"
    if elsewhere := redirected_to(check):
        text += f", redirected to {elsewhere}"
    if check.verdict == "noise":
        text += f", noise ({check.reason})"
    if check.muted:
        text += f", {counted(len(check.muted), 'frequent change')} muted"
    if check.changed_for_you is not None:
        text += ", changed for you" if check.changed_for_you else ", nothing new for you"
    return text + (" (from the record)" if check.cached else "")


@operation(
    "check", right=WRITE, verb="check", route=("POST", "/check"), step="check", listed="checks", element="page",
    single="url", about={"as": str}, errors=_CHECK_ERRORS, sentence=_sentence,
    examples=(
        "letopis check https://example.org/",
        "letopis check https://example.org/ https://example.com/ --as anna --json",
        "letopis check https://example.org/big.iso --head",
        "letopis check https://example.org/ --browser",
        "letopis check https://example.org/news --step 'click #more' --step 'wait 2'",
        "letopis check https://example.org/ --requisites",
        "letopis check https://example.org/terms --as ci --fail-if-changed",
    ),
    tool=True,
)  # fmt: skip
def check(context: Context, asked: CheckCommand) -> Rows[CheckResult]:
    """Check pages now: is it there, did it change, also since your last look.

    Within the minimum interval the record answers. A page that is not available is no error of the check, which is
    recorded and shown; private and loopback addresses are refused over HTTP unless the owner allowed them.
    """
    browser = asked.browser or bool(asked.step)
    if browser and asked.head:
        raise UsageError("'head' excludes 'browser'; leave one of them out")
    options = checker.CheckOptions(
        uid=asked.uid, now=asked.now, force=asked.force, head=asked.head, private_ok=context.private_ok,
        browser=browser, requisites=asked.requisites, steps=parse_steps(asked.step),
    )  # fmt: skip
    checks = _check_each(context, asked.url, options)
    faults = [error for error in map(monitors.error_of_check, checks) if error is not None]
    if asked.fail_if_changed:
        faults += [
            PageChanged(f"{one.url} has changed: {one.reason or 'new to you'}") for one in checks if _is_news(one)
        ]
    return Rows(list(map(check_result, checks)), {"as": asked.uid}, faults)


def _is_news(check: Check) -> bool:
    """Whether whoever asked has looked before, and finds something new that is no noise."""
    return bool(check.changed_for_you) and check.verdict != "noise"


def _check_each(context: Context, urls: Sequence[str], options: CheckOptions) -> list[Check]:
    """One answer a text, in the order of asking; texts that are no addresses keep nobody from the others."""
    addresses, found = monitors.usable_addresses(urls, context.archive.clock())
    if not addresses:
        raise BadUrl(next(iter(found.values())).error)
    options = options._replace(logins=monitors.logins_of(addresses))
    found |= zip(addresses, check_pages(context, list(addresses.values()), options), strict=True)
    return [found[text] for text in urls]


def check_pages(context: Context, urls: Sequence[str], options: CheckOptions) -> list[Check]:
    """Checks on behalf of whoever asks, counted against their quota; one answer a URL, in the order of asking.

    Addresses are in their normal form.
    """
    if options.browser:
        browser.require_browser(context.archive.settings.fetch.chromium)
    context.charge("checks", len(urls))
    monitor, done, shown = context.archive.attached(_open_monitor), list[Check](), 0

    def show(more: int) -> None:
        nonlocal shown
        shown += more
        context.progress.show(shown, "pages", len(urls))

    options = options._replace(waiting=context.progress.remark, recorded=show)
    for start in range(0, len(urls), checker.BATCH):
        context.raise_if_cancelled()
        done += monitor.look(list(urls[start : start + checker.BATCH]), options)
        show(len(done) - shown)  # the record answered for the others
    unjudged = any(one.reason == NOT_JUDGED for one in done)  # only what the record answers may be
    return list(verdicts.judged(context.archive, done)) if unjudged else done


def _open_monitor(archive: Archive) -> Monitor:
    """One for all who ask in this process: they share connections, cookies and pauses. It ends with the archive."""
    monitor = monitors.Monitor(archive)
    archive.closers.append(monitor.close)
    return monitor


class PageListQuery(Parameters):
    """Which page, and which part of the list."""

    url: str = parameter("Address of the page.", argument=True)
    start: datetime | None = parameter("Only from this time on.", default=None, named="from")
    to: datetime | None = parameter("Only up to this time.", default=None, ends_day=True)
    limit: int | None = parameter(
        f"Maximum number of rows; default: all, over HTTP {DEFAULT_ROWS}.", default=None, at_least=1, at_most=MAX_ROWS
    )
    cursor: str | None = parameter("Cursor from the previous page of results.", default=None, longest=40, doors=NOT_CLI)

    def span(self) -> tuple[int, int]:
        """The times between which the list is cut, in milliseconds."""
        require_span(self.start, self.to)
        return (
            -(2**62) if self.start is None else to_millis(self.start), 2**62 if self.to is None else to_millis(self.to),
        )  # fmt: skip

    def position(self) -> int:
        """The number inside the cursor; 0 at the start."""
        text = self.cursor or "0"
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise UsageError("unknown cursor; start without one")
        return int(text)

    def most(self, context: Context) -> int | None:
        """Rows that one answer may have."""
        return self.limit or (None if context.origin == "cli" else DEFAULT_ROWS)


class RecordedCheck(NamedTuple):
    """One check of a page in its history; `available` is null if no request was sent.

    `redirected_to` is the address that answered instead, empty where the page itself did.
    """

    time: datetime
    status: int
    available: bool | None
    outcome: Outcome
    version: int | None
    meaningful: bool | None
    score: float | None
    error: str
    failure: str
    headers: tuple[HeaderField, ...]
    verdict: str
    reason: str
    muted: tuple[str, ...]
    redirected_to: str
    redirects: tuple[FollowedRedirect, ...]
    warnings: tuple[str, ...]


@operation(
    "history", right=READ, verb="history", route=("GET", "/history"), about={"url": str, "cursor": str | None},
    columns=("time", "status", "available", "verdict", "version", "score", "reason", "error", "redirected_to"),
    errors=(404,),
    examples=(
        "letopis history https://example.org/",
        "letopis history https://example.org/ --from 2024-01-01 --to 2024-01-31 --json",
    ),
    tool=True,
)  # fmt: skip
def history(context: Context, asked: PageListQuery) -> Rows[RecordedCheck]:
    """List every check of a page, oldest first: time, status, whether it was available, the verdict and its reason.

    The verdict is the outcome, but `noise` for a new version that says nothing new.
    """
    url, (since, until) = parse_user_url(asked.url), asked.span()
    most = asked.most(context)
    checks = context.archive.answers.checks(url, max(since, asked.position() or since), until)
    found = list(islice(checks, None if most is None else most + 1))
    rows = list(map(_recorded_check, verdicts.judged(context.archive, found[:most])))
    following = None if most is None or len(found) <= most else str(to_millis(found[most].checked_at))
    return Rows(rows, {"url": url, "cursor": following})


def _recorded_check(check: Check) -> RecordedCheck:
    return RecordedCheck(
        check.checked_at, check.status, check.available, check.outcome, check.version, check.meaningful, check.score,
        check.error, check.failure, shown_headers(check), check.verdict, check.reason, check.muted,
        redirected_to(check), _followed(check), check.warnings,
    )  # fmt: skip


class RecordedVersion(NamedTuple):
    """One version of a page; valid from `time` until `valid_until`, which is None for the newest."""

    number: int
    time: datetime
    valid_until: datetime | None
    digest: str
    raw_bytes: int
    stored_bytes: int
    method: str
    content_type: str
    last_modified: str


@operation(
    "versions", right=READ, verb="versions", route=("GET", "/versions"), about={"url": str, "cursor": str | None},
    columns=(
        "number",
        "time",
        "valid_until",
        "last_modified",
        "digest",
        "raw_bytes",
        "stored_bytes",
        "method",
        "content_type",
    ),
    errors=(404,),
    examples=(
        "letopis versions https://example.org/",
        "letopis versions https://example.org/ --from 2024-01-01 --json",
    ),
    tool=True,
)  # fmt: skip
def versions(context: Context, asked: PageListQuery) -> Rows[RecordedVersion]:
    """List the versions of a page, oldest first: number, time, valid until, digest, sizes, method."""
    url, (since, until), first = parse_user_url(asked.url), asked.span(), asked.position()
    most = asked.most(context)
    versions = context.archive.answers.versions_since(url, since, first)
    inside = takewhile(lambda version: to_millis(version.time) <= until, versions)
    found = list(islice(inside, None if most is None else most + 1))
    rows = [RecordedVersion(*(getattr(version, name) for name in RecordedVersion._fields)) for version in found[:most]]
    following = None if most is None or len(found) <= most else str(found[most].number)
    return Rows(rows, {"url": url, "cursor": following})
