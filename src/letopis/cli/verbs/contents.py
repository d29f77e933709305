"""Verbs that take contents out: get, diff, patch, extract."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from letopis import extract
from letopis.archive import DIFF_FORMATS, Archive
from letopis.change import apply_binary_delta
from letopis.cli.context import CliContext, read_file, verb, write_output
from letopis.errors import NotFound, Unavailable, UnknownUrl
from letopis.model import Page, Version
from letopis.monitor import Monitor, requested_version, requested_versions


@verb(
    "get",
    "letopis get https://example.org/ > page.html",
    "letopis get https://example.org/ --at 2024-01-31 --offline",
    "letopis get https://example.org/ --version 0 -o first.html",
    "letopis get https://example.org/ --browser",
)
@click.argument("url")
@click.option("--at", metavar="TIME", help="The version valid at this time.")
@click.option("--version", type=int, metavar="N", help="Version number, from 0; -1 is the newest.")
@click.option("--last-available", is_flag=True, help="The newest version, even if the page is gone now.")
@click.option("--as-is", is_flag=True, help="As the server sent it, also where a browser rendered the page.")
@click.option("--browser", is_flag=True, help="Check first as a browser shows the page.")
@click.option("--offline", is_flag=True, help="Never check first.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")
def get_verb(
    given: CliContext, url: str, at: str | None, version: int | None, last_available: bool, as_is: bool, browser: bool,
    offline: bool, target: Path | None,
) -> None:  # fmt: skip
    """Print a page: the current one, one of a past day, a numbered version, or the last there was."""
    with given.open(create=not offline and at is None and version is None) as archive:
        known_only = offline or archive.is_clone
        found = _found(archive, url, given.moment(at), version, last_available, known_only, browser)
        body = archive.as_sent(found).body if as_is else found.body
    write_output(given, body, target)


def _found(
    archive: Archive, url: str, at: datetime | None, number: int | None, last_available: bool, offline: bool,
    browser: bool,
) -> Version:  # fmt: skip
    if number is not None:
        return archive.get(url, version=number)
    if last_available and at is None and not offline:
        with Monitor(archive) as monitor:
            if browser:
                monitor.use_browser()
            return monitor.get(url).last_available()
    try:
        return requested_version(archive, url, at, offline=offline, browser=browser)
    except Unavailable as error:
        if archive.versions(url):
            raise Unavailable(f"{error}; '--last-available' prints the last version that was there") from error
        raise


@verb(
    "diff",
    "letopis diff https://example.org/ --from yesterday",
    "letopis diff https://example.org/ --from 2024-01-01 --to 2024-02-01 --format words",
    "letopis diff https://example.org/ --as anna",
    "letopis diff https://example.org/ --format html > changes.html",
)
@click.argument("url")
@click.option("--from", "start", metavar="TIME", help="Older side; default: the version before the newest.")
@click.option("--to", "end", metavar="TIME", help="Newer side; default: the newest version.")
@click.option("--as", "uid", metavar="UID", help="What changed since this observer's last look.")
@click.option(
    "--format", "form", type=click.Choice(DIFF_FORMATS), default="unified", show_default=True, help="How to show it."
)
@click.option("--offline", is_flag=True, help="Never check first.")
def diff_verb(
    given: CliContext, url: str, start: str | None, end: str | None, uid: str | None, form: str, offline: bool
) -> None:
    """Show what changed on a page, between two times or since your last look."""
    with given.open(create=uid is not None) as archive:
        if uid is not None:
            with Monitor(archive, uid) as monitor:
                shown = monitor.get(url).changes(form)
        else:
            known_only = offline or archive.is_clone
            sides = requested_versions(archive, url, given.moment(start), given.moment(end), offline=known_only)
            shown = archive.difference(*sides, form)
    given.output.bytes(shown if isinstance(shown, bytes) else shown.encode("utf-8", "replace"))


@verb("patch", "letopis diff URL --format binary > delta", "letopis patch old.pdf delta -o new.pdf")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("delta", type=click.Path(path_type=Path))
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")
def patch_verb(given: CliContext, old: Path, delta: Path, target: Path | None) -> None:
    """Apply a binary difference to OLD; the result is checked against its digest."""
    write_output(given, apply_binary_delta(read_file(old), read_file(delta)), target)


@verb("extract", "letopis extract page.html", "letopis extract https://example.org/ --format xml")
@click.argument("what", metavar="FILE|URL")
@click.option(
    "--format", "form", type=click.Choice(["json", "xml"]), default="json", show_default=True, help="How to show it."
)
@click.option("--content-type", default="", help="Type of a file, where its bytes do not tell.")
def extract_verb(given: CliContext, what: str, form: str, content_type: str) -> None:
    """Show the common form of a document: metadata, blocks, links."""
    page = _page(given, what, content_type)
    text = extract.page_to_json(page) if form == "json" else extract.page_to_xml(page)
    given.output.bytes(text.rstrip().encode() + b"\n")


def _page(given: CliContext, what: str, content_type: str) -> Page:
    file = Path(what)
    if "://" not in what and file.is_file():
        headers = (("Content-Type", content_type),) if content_type else ()
        return extract.read_page(read_file(file), file.absolute().as_uri(), headers)
    if what.startswith(("/", "./", "../", "~")):
        raise NotFound(f"there is no file '{what}'; name a file, or an address such as https://example.org/")
    with given.open() as archive:
        try:
            version = archive.get(what)
        except UnknownUrl:
            with Monitor(archive) as monitor:
                version = monitor.get(what).get_last_version()
    return extract.read_page(version.body, version.url, version.headers)
