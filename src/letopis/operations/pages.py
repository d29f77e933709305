"""Contents of pages: print a version, show what changed between two, extract what a page says, store a version by
hand.
"""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from letopis.archive import OWN, READ, WRITE
from letopis.archive.observers import ObserverMarks
from letopis.archive.reader import DiffFormat
from letopis.errors import DocumentTooLarge, Refused, Unavailable, UnknownUrl, UnknownVersion, UsageError, shell_words
from letopis.lazy import lazy
from letopis.model import Headers, Page, Version, rfc3339
from letopis.model.times import AHEAD
from letopis.operations.context import Context
from letopis.operations.operation import Document, Value, operation
from letopis.operations.parameters import CLI_ONLY, NOT_HTTP, Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

if TYPE_CHECKING:
    from letopis import extract
    from letopis.archive import verdicts
    from letopis.extract import main_content
    from letopis.extract.main_content import ContentForm
    from letopis.monitor import checker
    from letopis.monitor import monitor as monitors
    from letopis.operations import checks
else:  # who takes a page out of the record needs none of these
    extract, verdicts = lazy("letopis.extract"), lazy("letopis.archive.verdicts")
    checker, monitors = lazy("letopis.monitor.checker"), lazy("letopis.monitor.monitor")
    checks, main_content = lazy("letopis.operations.checks"), lazy("letopis.extract.main_content")

_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "visual": "text/html; charset=utf-8",
    "json": "application/json",
    "binary": "application/octet-stream",
}
_FORMAT_TYPES = {
    "json": "application/json",
    "xml": "application/xml",
    "markdown": "text/markdown; charset=utf-8",
    "text": "text/plain; charset=utf-8",
}
_OFFLINE = "Never check first."
_MAX_VERSION = 2**31


def _may_check(context: Context, offline: bool) -> bool:
    return context.may(WRITE) and not (
        offline or context.offline or context.archive.is_clone or context.archive.is_read_only
    )


def _require_available(context: Context, url: str, *, uid: str = "default", browser: bool = False) -> None:
    """Checks a page; raises what went wrong with that."""
    options = checker.CheckOptions(uid=uid, private_ok=context.private_ok, browser=browser)
    error = monitors.error_of_check(checks.check_pages(context, [url], options)[0])
    if error is not None:
        raise error


def version_at(
    context: Context, url: str, at: datetime | None, *, offline: bool = False, browser: bool = False
) -> Version:
    """The version valid at a time, the newest where none is given.

    Both check first where they may: the newest always, another one when the
    time is later than the last check. A page that was never checked is not
    known at any time.
    """
    if _may_check(context, offline):
        last = context.archive.answers.last_check(url)
        if at is not None and last is None:
            context.archive.answers.resource(url)
        if at is None or last is None or at > last.checked_at:
            with context.reading_on(lambda: last):
                _require_available(context, url, browser=browser)
    return context.archive.get(url, at=at)


class GetQuery(Parameters):
    """Which version of which page."""

    url: str = parameter("Address of the page.", argument=True)
    at: datetime | None = parameter("The version valid at this time.", default=None, ends_day=True)
    version: int | None = parameter(
        "Version number, from 0; -1 is the newest.", default=None, at_least=-_MAX_VERSION, at_most=_MAX_VERSION
    )
    last_available: bool = parameter("The last version that was available.", default=False, doors=CLI_ONLY)
    format: Literal["raw", "markdown", "text"] = parameter(
        "As stored, or its main content without menus.", default="raw"
    )
    as_is: bool = parameter("As the server sent it, even if a browser rendered the page.", default=False)
    browser: bool = parameter("First check the page in a browser.", default=False, doors=CLI_ONLY)
    offline: bool = parameter(_OFFLINE, default=False, doors=CLI_ONLY)

    def require_sense(self) -> None:
        """UsageError for parameters that exclude each other."""
        if sum((self.at is not None, self.version is not None, self.last_available)) > 1:
            raise UsageError("these name different versions; give only one of at, version and last-available")
        if self.browser and (self.offline or self.version is not None):
            raise UsageError("'browser' needs a check; leave it out, or leave out 'offline' and 'version'")


@operation(
    "get", right=READ, verb="get", route=("GET", "/content"), errors=(404,),
    creates=lambda asked: not asked.offline and asked.at is None and asked.version is None,
    examples=(
        "letopis get https://example.org/ > page.html",
        "letopis get https://example.org/ --at 2024-01-31 --offline",
        "letopis get https://example.org/ --version 0 -o first.html",
        "letopis get https://example.org/ --browser",
        "letopis get https://example.org/ --at 2024-01-31 --format markdown",
    ),
    tool=True,
)  # fmt: skip
def get(context: Context, asked: GetQuery) -> Document:
    """Print a page: as it is now, as of a date, a numbered version, or the last one available.

    Over HTTP nothing is checked first: the current one is the newest that is stored.
    """
    asked.require_sense()
    found = _requested_version(context, asked)
    if asked.at is not None and found.time > asked.at:
        context.progress.remark(
            f"no version is as old as {rfc3339(asked.at)}; this is the first, of {rfc3339(found.time)}"
        )
    found = context.archive.as_sent(found) if asked.as_is else found
    body, kind, mark = found.body, found.content_type, ""
    if asked.format != "raw":
        page = extract.read_page(found.body, found.url, found.headers)
        body = page_text(page, asked.format, found).encode("utf-8", "replace")
        kind, mark = _FORMAT_TYPES[asked.format], f"-{asked.format}"
    headers = {"content-type": kind, "etag": f'"{found.digest}{mark}"', "x-letopis-version": str(found.number)}
    return Document([body], kind, headers, row=_content_row(found, body) if context.wants_row else None)


def _content_row(found: Version, body: bytes) -> dict[str, Any]:
    """A version as one object: its text, or its bytes in base64 where they are no UTF-8."""
    facts = {
        "url": found.url, "version": found.number, "time": found.time, "valid_until": found.valid_until,
        "digest": found.digest, "content_type": found.content_type, "raw_bytes": found.raw_bytes,
    }  # fmt: skip
    try:
        return facts | {"text": body.decode()}
    except UnicodeDecodeError:
        return facts | {"base64": b64encode(body).decode()}


def _requested_version(context: Context, asked: GetQuery) -> Version:
    url, archive = parse_user_url(asked.url), context.archive
    if asked.version is not None:
        return archive.get(url, version=asked.version)
    if asked.last_available:
        if _may_check(context, asked.offline):
            options = checker.CheckOptions(private_ok=context.private_ok, browser=asked.browser)
            with context.reading_on(lambda: archive.answers.last_check(url)):
                checks.check_pages(context, [url], options)
        return archive.get(url)
    try:
        return version_at(context, url, asked.at, offline=asked.offline, browser=asked.browser)
    except Unavailable as error:
        if archive.versions(url):
            raise Unavailable(
                f"{shell_words(error)}; '--last-available' prints the last version that was there"
            ) from error
        raise


class DiffQuery(Parameters):
    """Which two versions of which page, and the form of the difference."""

    url: str = parameter("Address of the page.", argument=True)
    start: datetime | None = parameter(
        "Older side; default: the version before the newer side.", default=None, named="from"
    )
    to: datetime | None = parameter("Newer side; default: the newest version.", default=None, ends_day=True)
    uid: str | None = parameter(
        "Changes since the last check of this observer.", default=None, named="as", metavar="UID", longest=200,
        doors=NOT_HTTP,
    )  # fmt: skip
    format: DiffFormat = parameter("Output format.", default="unified")
    offline: bool = parameter(_OFFLINE, default=False, doors=NOT_HTTP)


@operation(
    "diff", right=READ, verb="diff", route=("GET", "/diff"), step="diff", errors=(404,),
    creates=lambda asked: asked.uid is not None,
    examples=(
        "letopis diff https://example.org/ --from yesterday",
        "letopis diff https://example.org/ --from 2024-01-01 --to 2024-02-01 --format words",
        "letopis diff https://example.org/ --as anna",
        "letopis diff https://example.org/ --format html > changes.html",
    ),
    tool=True,
)  # fmt: skip
def diff(context: Context, asked: DiffQuery) -> Document:
    """Show what changed on a page: between the last two versions, between two times, or since your last look.

    A time after the last check has the page checked first, but not over HTTP.
    """
    old, new = diff_sides(context, asked)
    media_type = _MEDIA_TYPES.get(asked.format, "text/plain; charset=utf-8")
    shown = context.archive.difference(old, new, asked.format)
    if not shown and old.number != new.number:
        context.progress.remark(f"versions {old.number} and {new.number} differ in nothing that '{asked.format}' shows")
    elif not shown:
        context.progress.remark(f"nothing to compare: both sides are version {new.number}, of {rfc3339(new.time)}")
    return Document([shown], media_type, row=_diff_row(context, asked, old, new) if context.wants_row else None)


def _diff_row(context: Context, asked: DiffQuery, old: Version, new: Version) -> dict[str, Any]:
    """A difference as one object; one that was asked for in another format is a text in it."""
    if asked.format in ("unified", "json"):
        row: dict[str, Any] = json.loads(context.archive.difference(old, new, "json"))
        return row
    shown = context.archive.difference(old, new, asked.format)
    text = shown if isinstance(shown, str) else b64encode(shown).decode()
    sides = {"url": new.url, "from": old.time, "to": new.time, "from_version": old.number, "to_version": new.number}
    return sides | {"format": asked.format, "difference": text}


def diff_sides(context: Context, asked: DiffQuery) -> tuple[Version, Version]:
    """The older and the newer version of a difference."""
    url, archive = parse_user_url(asked.url), context.archive
    if asked.uid is not None:
        if asked.start is not None or asked.to is not None:
            raise UsageError("'as' excludes 'from' and 'to'; leave one of them out")
        return _since_last_look(context, url, asked.uid)
    archive.answers.resource(url)
    new = archive.get(url) if asked.to is None else version_at(context, url, asked.to, offline=asked.offline)
    if asked.start is not None:
        return version_at(context, url, asked.start, offline=asked.offline), new
    return archive.get(url, version=max(0, new.number - 1)), new


def _since_last_look(context: Context, url: str, uid: str) -> tuple[Version, Version]:
    if not context.may(WRITE):
        raise Refused("'as' moves the last check of the observer, which needs the right to write; give from and to")
    seen = ObserverMarks(context.archive, uid).last_seen(url)
    _require_available(context, url, uid=uid)
    new = context.archive.get(url)
    return (new if seen is None or seen.version is None else context.archive.answers.by_id(seen.version)), new


class ExtractQuery(Parameters):
    """Which version of which page, and in which form."""

    url: str = parameter("Address of the page.", argument=True)
    at: datetime | None = parameter("The version valid at this time.", default=None, ends_day=True)
    format: Literal["json", "xml", "markdown", "text"] = parameter("Output format.", default="json")
    offline: bool = parameter(_OFFLINE, default=False, doors=CLI_ONLY)


@operation("extract", right=READ, route=("GET", "/extract"), errors=(404,), tool=True)
def extract_page(context: Context, asked: ExtractQuery) -> Document:
    """Show the common form of a stored page: metadata, blocks, links; or its main content as Markdown or text.

    A page that was never there is checked first, but not over HTTP.
    """
    url, archive = parse_user_url(asked.url), context.archive
    try:
        found = archive.get(url, at=asked.at)
    except (UnknownUrl, UnknownVersion):
        if not _may_check(context, asked.offline):
            raise
        _require_available(context, url)
        found = archive.get(url, at=asked.at)
    page = extract.read_page(found.body, found.url, found.headers)
    return Document([page_text(page, asked.format, found)], _FORMAT_TYPES[asked.format])


class Readable(Protocol):
    """The source of an extracted page: a version, or a file."""

    @property
    def body(self) -> bytes:
        """Its bytes."""

    @property
    def headers(self) -> Headers:
        """How it was sent."""

    @property
    def time(self) -> datetime | None:
        """Since when it was so, where that is known."""


def page_text(page: Page, form: str, source: Readable) -> str:
    """The common form of a document as JSON or XML, or its main content as Markdown or text."""
    if form in ("markdown", "text"):
        return main_content.content_text(page, source.body, source.headers, cast("ContentForm", form), source.time)
    text = extract.page_to_json(page) if form == "json" else extract.page_to_xml(page)
    return text.rstrip() + "\n"


class PutCommand(Parameters):
    """A version, and where and when it was seen."""

    url: str = parameter("Address of the page.", argument=True)
    file: bytes = parameter("Its bytes; - for standard input.", argument=True)
    at: datetime | None = parameter("When this version was seen; default: now.", default=None)
    content_type: str = parameter("Media type.", default="text/html", longest=200)
    future: bool = parameter("Allow a time more than a day in the future.", default=False)


class StoredPut(NamedTuple):
    """The result of a put: it `stored` a version, or found the `same` as the newest one."""

    url: str
    result: Literal["stored", "same"]
    number: int
    time: datetime
    digest: str


@operation(
    "put", right=OWN, verb="put", route=("PUT", "/content"), errors=(413,), audited="version put",
    sentence=lambda done: f"{done.result}: version {done.number} of {done.url}",
    examples=(
        "letopis put https://example.org/ page.html",
        "letopis put https://example.org/ old.html --at 2019-05-01",
        "letopis put https://example.org/ next.html --at 2099-01-01 --future",
    ),
)  # fmt: skip
def put(context: Context, asked: PutCommand) -> Value[StoredPut]:
    """Store FILE as a version of URL; prints 'stored', or 'same' if it equals the newest.

    Over HTTP the body is the version, and its Content-Type the type; whoever
    may say what a page was is its owner, and `fetch.max_bytes` is the limit.
    A version of the future would stay the newest one for as long: it needs `future`.
    """
    archive, most = context.archive, context.settings.fetch.max_bytes
    if asked.at is not None and asked.at > context.moment() + AHEAD and not asked.future:
        raise UsageError(
            f"at: {rfc3339(asked.at)} is more than a day ahead of the clock, which says {rfc3339(context.moment())}; "
            "set the clock right, or use 'future' (--future) to store it anyway"
        )
    if context.origin == "http" and len(asked.file) > most:
        raise DocumentTooLarge(f"{asked.url}: {len(asked.file)} bytes are over fetch.max_bytes, which is {most}")
    done = archive.put(asked.url, asked.file, asked.at, asked.content_type)
    if done.stored and done.number:
        verdicts.verdict_between(
            archive, archive.get(done.url, version=done.number - 1), archive.get(done.url, version=done.number)
        )
    result: Literal["stored", "same"] = "stored" if done.stored else "same"
    return Value(StoredPut(done.url, result, done.number, done.time, done.digest))
