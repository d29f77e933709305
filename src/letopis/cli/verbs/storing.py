"""Verbs that put versions in and take them out: init, put, get, versions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from letopis.cli.context import Given, verb
from letopis.errors import UsageError
from letopis.model import Version


@verb("init", "letopis init", "letopis init --archive /srv/web")
def init_verb(given: Given) -> None:
    """Make an archive, or check that one is there."""
    with given.open() as archive:
        given.output.row({"archive": str(archive.folder)}, f"archive ready in {archive.folder}")


@verb("put", "letopis put https://example.org/ page.html", "letopis put https://example.org/ old.html --at 2019-05-01")
@click.argument("url")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--at", metavar="TIME", help="When this version was seen.")
@click.option("--content-type", default="text/html", show_default=True, help="Its type.")
def put_verb(given: Given, url: str, file: Path, at: str | None, content_type: str) -> None:
    """Store FILE as a version of URL; says 'stored', or 'same' when it equals the newest."""
    body = _read(file)
    with given.open() as archive:
        done = archive.put(url, body, given.moment(at), content_type)
    row = {
        "url": done.url,
        "result": "stored" if done.stored else "same",
        "number": done.number,
        "time": done.time,
        "digest": done.digest,
    }
    given.output.row(row, f"{row['result']}: version {done.number} of {done.url}")


def _read(file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror}; give a readable file or - for standard input"
        ) from None


@verb("versions", "letopis versions https://example.org/", "letopis versions https://example.org/ --json")
@click.argument("url")
def versions_verb(given: Given, url: str) -> None:
    """List the versions of URL: number, time, valid until, digest, sizes, method."""
    columns = ("number", "time", "valid_until", "digest", "raw_bytes", "stored_bytes", "method", "content_type")
    with given.open(create=False) as archive:
        rows = [{name: getattr(version, name) for name in columns} for version in archive.versions(url)]
    given.output.rows(rows, columns)


def deliver(given: Given, version: Version, target: Path | None) -> None:
    """The bytes of a version to a file or to standard output."""
    if target is None:
        given.output.bytes(version.body)
    else:
        target.write_bytes(version.body)
        given.output.remark(f"version {version.number} of {version.url} is in {target}")


@verb(
    "get",
    "letopis get https://example.org/ > page.html",
    "letopis get https://example.org/ --at 2024-01-31 --offline",
    "letopis get https://example.org/ --version 0 -o first.html",
)
@click.argument("url")
@click.option("--at", metavar="TIME", help="The version valid at this time.")
@click.option("--version", type=int, metavar="N", help="Version number, from 0; -1 is the newest.")
@click.option("--offline", is_flag=True, help="Never check first.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")
def get_verb(given: Given, url: str, at: str | None, version: int | None, offline: bool, target: Path | None) -> None:
    """Print a page: the current one, one of a past day, or a numbered version."""
    with given.open(create=False) as archive:
        deliver(given, archive.get(url, version=version, at=given.moment(at)), target)
