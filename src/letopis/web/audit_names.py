"""What people call the actions of the audit log; one that is not named here has its own name."""

from __future__ import annotations

from letopis.web.languages import translatable

AUDIT_NAMES = {
    "compacted": translatable("compacted"),
    "crawl added": translatable("crawl added"),
    "first owner": translatable("first owner"),
    "group set": translatable("group set"),
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
    "password set": translatable("password set"),
    "project added to": translatable("project added to"),
    "project removed": translatable("project removed"),
    "role set": translatable("role set"),
    "run started": translatable("run started"),
    "saved search changed": translatable("saved search changed"),
    "saved search removed": translatable("saved search removed"),
    "search saved": translatable("search saved"),
    "second factor begun": translatable("second factor begun"),
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
    "version put": translatable("version put"),
    "watch added": translatable("watch added"),
    "watch changed": translatable("watch changed"),
    "watch checked": translatable("watch checked"),
    "watch cloned": translatable("watch copied"),
    "watch paused": translatable("watch paused"),
    "watch removed": translatable("watch removed"),
    "watch resumed": translatable("watch resumed"),
    "watch snoozed": translatable("watch snoozed"),
    "watch tag forgotten": translatable("watch tag forgotten"),
    "watch tagged": translatable("watch tagged"),
    "words locked": translatable("words locked"),
    "words released": translatable("words released"),
}
_PLACES = {"watch": "/watches/", "saved search": "/saved/", "run": "/jobs/", "job": "/jobs/"}
"""Where the pages of what an action was done to lie, by the first words of the action."""


def audit_page(action: str, subject: str) -> str:
    """The address of the page of what an action was done to: a watch, a run, a page; empty where it has none."""
    if subject.startswith(("http://", "https://")) and " " not in subject:
        return f"/url/{subject}"
    if not (subject.isascii() and subject.isdigit()) or action.endswith(("removed", "deleted")):
        return ""
    return next((f"{place}{subject}" for words, place in _PLACES.items() if action.startswith(words)), "")
