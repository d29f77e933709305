"""Verbs that put versions in and list them: init, put, versions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from letopis.catalog.partitions import partition
from letopis.cli.context import Given, verb
from letopis.errors import UsageError


@verb("init", "letopis init", "letopis init --archive /srv/web")
def init_verb(given: Given) -> None:
    """Make an archive, or check that one is there; brings its tables to `database.partitions`."""
    with given.open() as archive:
        wanted = archive.settings.database.partitions
        if wanted != 1 or archive.catalog.database.dialect.name == "postgresql":
            for table in partition(archive.catalog.database, wanted):
                given.output.remark(f"table {table} lies in {wanted} partitions now")
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
