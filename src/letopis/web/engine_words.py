"""What the engine says, in the words of the pages and the reader's language: alerts, and what went wrong.

Its sentences are English, as notifications and programs get them, and speak of jobs and commands; a page says the same
of runs and buttons. A sentence that is not known here stays as it is.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from letopis.web.languages import ENGLISH, current_language, translatable, translate

_SENTENCES = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"is unavailable: (?P<why>.*)", translatable("is unavailable: {why}")),
        (r"is unavailable now: (?P<why>.*)", translatable("is unavailable now: {why}")),
        (
            r"is unavailable (?P<times>\d+) times in a row: (?P<why>.*)",
            translatable("has been unavailable {times} times in a row: {why}"),
        ),
        (
            r"is available again after (?P<times>\d+) failed checks",
            translatable("is available again (failed checks: {times})"),
        ),
        (
            r"answers with status (?P<now>\d+), before it was (?P<before>\d+)",
            translatable("now answers with status {now}, previously {before}"),
        ),
        (
            r"now leads to (?P<now>\S*), before to (?P<before>\S*)",
            translatable("now redirects to {now}, previously to {before}"),
        ),
        (
            r"has changed; it is too large to be stored, its header says: (?P<why>.*)",
            translatable("has changed, but is too large to be stored; its header: {why}"),
        ),
        (
            r"has changed: (?P<came>\d+) lines? added, (?P<gone>\d+) removed(?P<rest>.*)",
            translatable("has changed: lines added {came}, removed {gone}{rest}"),
        ),
        (
            r"has appeared; before, it answered with status (?P<before>\d+)",
            translatable("has appeared; before, it answered with status {before}"),
        ),
        (r"has appeared; before, it did not answer", translatable("has appeared; before, it did not answer")),
        (
            r"has appeared; before, it was too large to be stored",
            translatable("has appeared; before, it was too large to be stored"),
        ),
        (r"has changed: other bytes, the same lines of text", translatable("has changed: other bytes, the same text")),
        (r"has changed: (?P<why>.*)", translatable("has changed: {why}")),
        (
            r"shows nothing that the filters of the watch select; change them",
            translatable("shows nothing that the filters of the watch select; change the filters"),
        ),
        (r"has not changed since (?P<time>.*)", translatable("has not changed since {time}")),
    )
]
_STATUS = re.compile(r"status (?P<status>\d+)")


def alert_words(sentence: str) -> str:
    """The sentence of an alert without the address, translated where it is one of ours."""
    for pattern, text in _SENTENCES:
        if found := pattern.fullmatch(sentence):
            return translate(text, **{name: _part(value) for name, value in found.groupdict().items()})
    return sentence


REWORDED = {
    "cancelled while it ran; what it had recorded is kept": translatable(
        "It was cancelled while running; what it had recorded is kept."
    ),
    "there is no job {number}; see the list of jobs": translatable("There is no run {number}."),
    "there is no job '{number}'; see the list of runs": translatable("There is no run {number}."),
    "job {number} is gone; submit it again": translatable("Run {number} no longer exists; start it again."),
    "job {number} has written no file '{name}'; see the list of its files": translatable(
        "Run {number} has written no file {name}."
    ),
    "job {number} belongs to '{owner}'; only they or an owner may {what} it": translatable(
        "Run {number} was started by {owner}; only they or an owner may do this."
    ),
    "job {number} is already {state}; there is nothing to {what}": translatable("Run {number} has ended: {state}."),
    "job {number} is done; refresh it to run it again": translatable(
        "Run {number} is done; press Run again to repeat it."
    ),
    "job {number} is {state} and has no result yet; wait until it has ended": translatable(
        "Run {number} has no result yet: {state}."
    ),
    "job {number} is {state}; cancel it first": translatable("Run {number} has not ended; stop it first."),
    "job {number} was started again meanwhile; cancel it first": translatable(
        "Run {number} was started again meanwhile; stop it first."
    ),
    "'{name}' has {most} jobs in the queue; wait, or cancel some (jobs.queued)": translatable(
        "{name} has {most} queued runs, which is the maximum; wait for some to end, or stop some."
    ),
    "unknown action '{what}' for a run; its page shows the actions": translatable("Runs have no such action."),
    "a run of the kind '{kind}' needs a site; give a host or an address": translatable(
        "Enter a site: its host or any address on it."
    ),
    "the job was stopped; what it had recorded stays": translatable("It was stopped; what it had recorded is kept."),
    "there is no watch {number}; see the list of watches": translatable("There is no watch {number}."),
    "the watch {number} of {url} belongs to '{owner}'; make one of your own under a name": translatable(
        "This watch belongs to {owner}; watch the page yourself to have one of your own."
    ),
    "the watch {number} of {url} belongs to the owners; make one of your own under a name": translatable(
        "This watch belongs to the owners of the archive; watch the page yourself to have one of your own."
    ),
    "{url} has a watch named '{name}' already; choose another name": translatable(
        "This page already has a watch named {name}; choose another name."
    ),
    "choose at least one watch first": translatable("Select at least one watch first."),
    "these watches have no notification target; add one with 'letopis watch edit ID --notify TARGET'": translatable(
        "They have no notification target: add one under Notify, and save."
    ),
    "it has no notification target; add one with 'letopis saved edit ID --notify TARGET'": translatable(
        "It has no notification target: add one under Notify, and save."
    ),
    "only owners may watch private addresses; ask an owner": translatable(
        "Only owners can allow a watch on a private network; ask one of them."
    ),
    "there is no saved search {number}; the list of saved searches shows all": translatable(
        "There is no saved search {number}."
    ),
    "the saved search {number} belongs to '{owner}'; save one of your own": translatable(
        "This search was saved by {owner}. Save one of your own."
    ),
    "a search is saved as '{name}' already; choose another name, or change that one": translatable(
        "A saved search named {name} already exists; choose another name, or edit that one."
    ),
    "name is empty: a name of your own for it": translatable("Give it a name."),
    "unknown operation '{name}'; see the list of operations": translatable(
        "The HTTP interface has no operation {name}."
    ),
    "this invitation was used, was revoked or has expired; ask for another one": translatable(
        "Ask whoever invited you for another one; each link creates one account."
    ),
    "there is no project '{name}'; see the list of projects": translatable("There is no project {name}."),
    "there is no user '{name}'; see the list of users": translatable("There is no account {name}."),
    "there is already a user '{name}'; choose another name": translatable(
        "An account named {name} already exists; choose another name."
    ),
    "there is already a token '{name}'; revoke it or choose another name": translatable(
        "A token named {name} already exists; revoke it, or choose another name."
    ),
    "'{name}' is not a name; use 1 to 64 letters, digits and . @ + - _": translatable(
        "A name has 1 to 64 letters, digits and . @ + - _"
    ),
    "'{name}' is the only owner; make another one first": translatable(
        "{name} is the only owner; add another one first."
    ),
    "a password has {least} to {most} characters": translatable("A password has {least} to {most} characters."),
    "the old password is wrong; try again": translatable("The current password is wrong."),
    "the code is wrong; type the one that the app shows now, and compare the clocks": translatable(
        "The code is wrong. Enter the one that the app shows now, and check that both clocks are right."
    ),
    "the host's name is not known to the name servers ({detail})": translatable(
        "The host's name is not known to the name servers ({detail})."
    ),
    "no connection could be made ({detail})": translatable("No connection could be made ({detail})."),
    "no connection could be made in time ({detail})": translatable("No connection could be made in time ({detail})."),
    "the server closed the connection before the answer was complete ({detail})": translatable(
        "The server closed the connection before the answer was complete ({detail})."
    ),
    "no secure connection could be made ({detail})": translatable("No secure connection could be made ({detail})."),
    "the answer is not valid HTTP ({detail})": translatable("The answer is not valid HTTP ({detail})."),
    "the request failed ({detail})": translatable("The request failed ({detail})."),
    "the redirects form a loop, back to {url}": translatable("The redirects form a loop, back to {url}."),
    "more than {most} redirects follow one another": translatable("More than {most} redirects follow one another."),
    "robots.txt of this host does not allow it; a check of this page alone requests it anyway": translatable(
        "The robots.txt of this host does not allow it; a check of this page alone requests it anyway."
    ),
    "the host gets no requests for now; its page was not requested": translatable(
        "The host gets no requests for now; its page was not requested."
    ),
    "the address belongs to a private network, which this request may not reach; fetch.private can allow it": (
        translatable("It is on a private network; the setting fetch.private can allow that.")
    ),
    "'{text}' is not a time; {hint}": translatable("{text} is not a time: write 2026-03-01 or 2026-03-01T12:00."),
    "'{text}' is not a timestamp; {hint}": translatable("{text} is not a time: write 2026-03-01 or 2026-03-01T12:00."),
    "'{text}' is too early; {hint}": translatable("{text} is too early: write 2026-03-01 or 2026-03-01T12:00."),
    "'{text}' is not a duration; write 500ms, 90s, 10m, 1h, 7d or 2 weeks": translatable(
        "{text} is not a duration: write 10m, 1h or 7d."
    ),
    "'{text}' is too long; write at most a thousand years, such as 1h or 7d": translatable(
        "{text} is too long: write at most a thousand years, such as 7d."
    ),
    "choose a date such as 2026-03-01": translatable("Choose a date such as 2026-03-01."),
    "{name} must be between {least} and {most}": translatable("{name} must be between {least} and {most}."),
    "{name} = '{value}' does not fit: '{text}' is not a duration; {hint}": translatable(
        "{text} is not a duration: write 10m, 1h or 7d."
    ),
    "{name} is set in the {place}; change it there": translatable("{name} is set in the {place}; change it there."),
    "{url} is a private address; the owner can allow them with fetch.private": translatable(
        "{url} is on a private network. It can only be allowed where the service runs, with the setting fetch.private."
    ),
    "no page of {site} is in the archive; crawl it first": translatable(
        "No page of {site} is in the archive; crawl it first."
    ),
    "none of the pages could be fetched ({kinds}); the log says what became of each": translatable(
        "None of the pages could be fetched."
    ),
    "nothing was imported from {source}; give a file that contains captures, or name its kind": translatable(
        "Nothing was imported from {source}: choose a file that contains captures, such as WARC, WACZ or HAR."
    ),
    "this archive is a clone of {origin} and accepts only what a pull transfers": translatable(
        "This archive is a clone of {origin} and records nothing of its own."
    ),
}
"""What the engine says of what went wrong, and what a page says of the same."""
HEALTH = {
    "archive": translatable("archive"),
    "privacy": translatable("privacy"),
    "disk": translatable("disk"),
    "catalogue": translatable("catalogue"),
    "browser": translatable("browser"),
    "installed": translatable("installed"),
    "{size} GB free": translatable("{size} GB free"),
    "{count} versions": translatable("versions: {count}"),
    "nobody else on this machine can read its secrets": translatable(
        "Nobody else on this machine can read its secrets."
    ),
    "{folder} is read-only": translatable("{folder} is read-only"),
    "{place} cannot be written; choose another --archive": translatable("{place} cannot be written to"),
    "{curl}, without https": translatable("{curl}, without https"),
    "{file} is used": translatable("{file} is used"),
    "{file} is missing": translatable("{file} is missing"),
    'installed, not used; add "{affix}" to search.affixes': translatable(
        "Installed and not used: add {affix} to search.affixes."
    ),
    "pip install {package}": translatable("To install it: pip install {package}"),
    "other users of this machine can read {names}; run 'chmod -R go= {folder}'": translatable(
        "Other users of this machine can read {names}: run chmod -R go= {folder}"
    ),
}
"""What the checks of an installation say, and what a page says of the same."""
_OWN_WORDS = ("file", "environment", "command line", "queued", "running", "paused", "done", "failed", "cancelled")
_SAID_HERE = (translatable("file"), translatable("environment"), translatable("command line"))
_SETTING = re.compile(r"[a-z]+\.[a-z_]+")
_JOB = re.compile(r"(?<![\w.<'/-])job(s?)(?![\w.>'/-])")


def _as_pattern(sentence: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", sentence)
    return re.compile(
        "".join(f"(?P<{part}>.+?)" if at % 2 else re.escape(part) for at, part in enumerate(parts)), re.DOTALL
    )


_KNOWN = [(_as_pattern(sentence), text) for sentence, text in REWORDED.items()]
_KNOWN_HEALTH = [(_as_pattern(sentence), text) for sentence, text in HEALTH.items()]


def finding_words(text: str) -> Markup:
    """The name or the detail of a check of the installation; names of programs and files stay as they are."""
    for pattern, known in _KNOWN_HEALTH:
        if found := pattern.fullmatch(text):
            return translate(known, **found.groupdict())
    return escape(text)


def full_sentence(message: str) -> str:
    """A message with a capital at its start, unless that is an address or a setting, and a full stop at its end."""
    first = message.partition(" ")[0]
    named = "://" in first or _SETTING.fullmatch(first)
    return f"{message if named else message[:1].upper() + message[1:]}."


def error_words(sentence: str) -> Markup:
    """What a page says of what went wrong: a sentence with a capital and a full stop, marked where it stays English."""
    for pattern, text in _KNOWN:
        if found := pattern.fullmatch(sentence):
            return translate(text, **{name: _part(value) for name, value in found.groupdict().items()})
    plain = full_sentence(_JOB.sub(lambda job: f"run{job[1]}", sentence))
    return escape(plain) if current_language() is ENGLISH else Markup('<span lang="en">{}</span>').format(plain)


def _part(value: str) -> str:
    if value in _OWN_WORDS:
        return translate(value)
    found = _STATUS.fullmatch(value)
    return translate(translatable("status {status}"), status=found["status"]) if found else value
