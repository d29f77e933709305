"""Verbs that look at pages now and list earlier looks: check, history."""

from __future__ import annotations

from dataclasses import replace

import click

from letopis.cli.context import CliContext, verb
from letopis.errors import UsageError
from letopis.model import Check
from letopis.monitor import Monitor, check_row
from letopis.monitor.monitor import error_of_check

_HISTORY = ("time", "status", "available", "outcome", "version", "meaningful", "score", "error")


def _sentence(check: Check) -> str:
    told = f"{check.outcome}: {check.url}"
    if check.version is not None:
        told += f" version {check.version}"
    if check.changed_for_you is not None:
        told += ", changed for you" if check.changed_for_you else ", nothing new for you"
    return told + (" (from the record)" if check.cached else "")


@verb(
    "check",
    "letopis check https://example.org/",
    "letopis check https://example.org/ https://example.com/ --as anna --json",
    "letopis check https://example.org/big.iso --head",
    "letopis check https://example.org/ --browser",
)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--as", "uid", default="default", show_default=True, metavar="UID", help="Whose last look counts.")
@click.option("--now", is_flag=True, help="Ask the server even if the last check was a moment ago.")
@click.option("--force", is_flag=True, help="Store the document even if it is over the size limit.")
@click.option("--head", is_flag=True, help="Ask for the header first; download only what it says has changed.")
@click.option("--browser", is_flag=True, help="Look at the page as a browser shows it, after its scripts have run.")
def check_verb(
    given: CliContext, urls: tuple[str, ...], uid: str, now: bool, force: bool, head: bool, browser: bool
) -> int:
    """Look at pages now: was it there, did it change, also since your last look."""
    if browser and head:
        raise UsageError("a browser asks for the whole page; leave out --head or --browser")
    with given.open() as archive, Monitor(archive, uid) as monitor:
        if browser:
            monitor.use_browser()
        options = replace(monitor.options, now=now, force=force, head=head)
        checks = monitor.look(list(urls), options)
    if given.as_json:
        given.output.rows(map(check_row, checks), ())
    else:
        given.output.sentences(map(_sentence, checks))
    errors = [error for error in map(error_of_check, checks) if error is not None]
    for error in errors:
        given.output.complain(str(error))
    return errors[0].exit_status if errors else 0


@verb("history", "letopis history https://example.org/", "letopis history https://example.org/ --json")
@click.argument("url")
def history_verb(given: CliContext, url: str) -> None:
    """List every check of URL: time, status, available, outcome."""
    with given.open(create=False) as archive:
        checks = archive.history(url)
    rows = [{"time": check.checked_at, **{name: getattr(check, name) for name in _HISTORY[1:]}} for check in checks]
    given.output.rows(rows, _HISTORY)
