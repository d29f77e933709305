"""What people call the actions of the audit log and what they were done to; what is not named here has its own name."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

from letopis.archive.jobs import JobQueue
from letopis.archive.watches import saved_searches_of
from letopis.errors import NotFound
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context
from letopis.operations.job_rows import requester_of
from letopis.tuples import NamedTuple
from letopis.web.languages import translatable, translate
from letopis.web.pages import bare_url, url_in_path
from letopis.web.run_steps import called_run

AUDIT_NAMES = {
    "compacted": translatable("compacted"),
    "crawl added": translatable("crawl added"),
    "first owner": translatable("first owner"),
    "group set": translatable("group changed"),
    "imported": translatable("imported"),
    "invitation accepted": translatable("invitation accepted"),
    "invitation revoked": translatable("invitation revoked"),
    "job cancelled": translatable("run stopped"),
    "job deleted": translatable("run deleted"),
    "job paused": translatable("run paused"),
    "job resumed": translatable("run resumed"),
    "login": translatable("signed in"),
    "login failed": translatable("sign-in failed"),
    "logout": translatable("signed out"),
    "password set": translatable("password changed"),
    "project added to": translatable("project added to"),
    "project removed": translatable("project removed"),
    "role set": translatable("role changed"),
    "run started": translatable("run started"),
    "saved search changed": translatable("saved search changed"),
    "saved search removed": translatable("saved search removed"),
    "search saved": translatable("search saved"),
    "second factor begun": translatable("second factor set up"),
    "second factor off": translatable("second factor off"),
    "second factor on": translatable("second factor on"),
    "setting changed": translatable("setting changed"),
    "setting reset": translatable("setting reset"),
    "site dropped": translatable("site dropped"),
    "token created": translatable("token created"),
    "token revoked": translatable("token revoked"),
    "user added": translatable("user added"),
    "user invited": translatable("user invited"),
    "user removed": translatable("user removed"),
    "version put": translatable("version stored"),
    "watch added": translatable("watch added"),
    "watch changed": translatable("watch changed"),
    "watch checked": translatable("watch checked"),
    "watch cloned": translatable("watch copied"),
    "watch paused": translatable("watch paused"),
    "watch removed": translatable("watch removed"),
    "watch resumed": translatable("watch resumed"),
    "watch snoozed": translatable("watch snoozed"),
    "watch tag forgotten": translatable("watch tag removed"),
    "watch tagged": translatable("watch tagged"),
    "words locked": translatable("words locked"),
    "words released": translatable("words released"),
}
SIGN_INS = ("login", "login failed", "logout")
"""Actions that change nothing, and are most of the log."""


class AuditedThing(NamedTuple):
    """What an action was done to: its name, and the address of its page, empty where it has none any more."""

    name: str
    page: str = ""


def audited_things(context: Context, action: str, subject: str) -> list[AuditedThing]:
    """What a line of the log is about, by name: watches, saved searches and runs are logged by their numbers."""
    words = subject.replace(",", " ").split()
    kind = next((one for one in _NUMBERED if action.startswith(one)), "")
    if kind and words and all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
        return [_numbered(context, kind, int(word)) for word in words]
    if words and all(word.startswith(("http://", "https://")) for word in words):
        return [AuditedThing(bare_url(word), f"/url/{url_in_path(word)}") for word in words]
    if action == "run started" and words:
        wish, _, number = subject.rpartition(" #") if _MADE.search(subject) else (subject, "", "")
        kind, _, place = wish.partition(" ")
        what = place.partition("://")[2].partition("/")[0] or place
        return [AuditedThing(called_run(f"{kind} of {what}" if what else kind), _run_page(context, number))]
    if action == "compacted":
        return [AuditedThing(translate(_COMPACTED.get(subject, subject)))]
    if action.startswith("setting ") and words:
        return [AuditedThing(subject, f"/settings?q={quote(words[0])}")]
    if action.startswith("project ") and len(words) == 1 and not action.endswith("removed"):
        return [AuditedThing(subject, f"/projects/{quote(subject)}")]
    return [AuditedThing(subject)] if subject else []


_MADE = re.compile(r" #\d{1,18}$", re.ASCII)
_COMPACTED = {"full": translatable("the whole archive"), "quick": translatable("new versions")}


def _run_page(context: Context, number: str) -> str:
    """The page of a run that is still there; entries of the first releases do not say which it is."""
    try:
        return f"/jobs/{JobQueue(context.archive).show(int(number), requester_of(context)).id}" if number else ""
    except NotFound:
        return ""


def _numbered(context: Context, kind: str, number: int) -> AuditedThing:
    place, gone, name = _NUMBERED[kind]
    try:
        return AuditedThing(name(context, number) or translate(gone, number=number), f"{place}{number}")
    except NotFound:
        return AuditedThing(translate("{thing}, no longer there", thing=translate(gone, number=number)))


def _watch_name(context: Context, number: int) -> str:
    watch = WatchList(context.archive).by_id(number).watch
    return bare_url(watch.url) + (f" · {watch.name}" if watch.name else "")


def _search_name(context: Context, number: int) -> str:
    return saved_searches_of(context.archive).by_id(number).name


def _run_name(context: Context, number: int) -> str:
    return called_run(JobQueue(context.archive).show(number, requester_of(context)).name)


_SAID_HERE = translatable("{thing}, removed")
_RUN = ("/jobs/", translatable("run {number}"), _run_name)
_NUMBERED: dict[str, tuple[str, str, Callable[[Context, int], str]]] = {
    "watch ": ("/watches/", translatable("watch {number}"), _watch_name),
    "saved search ": ("/saved/", translatable("saved search {number}"), _search_name),
    "run ": _RUN,
    "job ": _RUN,
}
"""Where the pages of what is logged by its number lie, what it is called without a name, and where that is found."""
