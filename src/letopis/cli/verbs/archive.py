"""Verbs about the archive and what is stored in it: init, put, versions, verify, compact, doctor."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click
import pycurl

from letopis.archive import Archive
from letopis.archive.cluster import spread_over
from letopis.catalog.schema import partition_tables
from letopis.cli.cluster import CLUSTER_OPTION, use_cluster
from letopis.cli.context import CliContext, verb
from letopis.cli.output import ProgressLine
from letopis.config import Settings
from letopis.errors import Damaged, LetopisError, NotReady, UsageError

if TYPE_CHECKING:
    from letopis.archive.compaction import CompactReport


@verb("init", "letopis init", "letopis init --archive /srv/web")
def init_verb(given: CliContext) -> None:
    """Make an archive, or check that one is there; brings its tables to `database.partitions`."""
    with given.open() as archive:
        wanted = archive.settings.database.partitions
        if wanted != 1 or archive.catalog.database.dialect.name == "postgresql":
            for table in partition_tables(archive.catalog.database, wanted):
                given.output.remark(f"table {table} lies in {wanted} partitions now")
        given.output.row({"archive": str(archive.folder)}, f"archive ready in {archive.folder}")


@verb("put", "letopis put https://example.org/ page.html", "letopis put https://example.org/ old.html --at 2019-05-01")
@click.argument("url")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--at", metavar="TIME", help="When this version was seen.")
@click.option("--content-type", default="text/html", show_default=True, help="Its type.")
def put_verb(given: CliContext, url: str, file: Path, at: str | None, content_type: str) -> None:
    """Store FILE as a version of URL; says 'stored', or 'same' when it equals the newest."""
    body = _read_body(file)
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


def _read_body(file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror}; give a readable file or - for standard input"
        ) from None


@verb("versions", "letopis versions https://example.org/", "letopis versions https://example.org/ --json")
@click.argument("url")
def versions_verb(given: CliContext, url: str) -> None:
    """List the versions of URL: number, time, valid until, digest, sizes, method."""
    columns = ("number", "time", "valid_until", "digest", "raw_bytes", "stored_bytes", "method", "content_type")
    with given.open(create=False) as archive:
        rows = [{name: getattr(version, name) for name in columns} for version in archive.versions(url)]
    given.output.rows(rows, columns)


@verb("verify", "letopis verify", "letopis verify --repair")
@click.option(
    "--repair", is_flag=True, help="Drop only what is truly lost; rebuild a damaged catalogue from the packs."
)
def verify_verb(given: CliContext, repair: bool) -> None:
    """Check every byte and every reference; says nothing when all is well."""
    if repair:
        report = Archive.repair(given.settings())
        row = {"rebuilt": report.rebuilt, "versions": report.versions, "lost": report.lost}
        for sentence in report.lost:
            given.output.remark(f"lost: {sentence}")
        given.output.row(row, f"{report.versions} versions are sound, {len(report.lost)} lost")
        return
    count = 0
    with given.open(create=False) as archive:
        for problem in archive.verify():
            count += 1
            given.output.row({"where": problem.where, "problem": problem.what}, str(problem))
    if count:
        raise Damaged(f"{count} problems found; 'letopis verify --repair' keeps what can be kept")


@verb("compact", "letopis compact", "letopis compact --quick", "letopis compact --cluster tcp://scheduler.example:8786")
@click.option("--quick", is_flag=True, help="Only what is new, at about the cost of storing it again.")
@CLUSTER_OPTION
def compact_verb(given: CliContext, quick: bool, cluster: str | None) -> None:
    """Re-compress old versions, carry out retention, give space back. Ctrl-C stops; the rest comes next time."""
    use_cluster(given, cluster)
    with given.open(create=False) as archive, ProgressLine("documents", quiet=given.quiet) as bar:
        report = _compacted(archive, "quick" if quick else "full", bar)
    saved = report.bytes_before - report.bytes_after
    given.output.row(
        asdict(report), f"{report.documents} documents, {report.bytes_after} bytes of packs, {saved} bytes given back"
    )


def _compacted(archive: Archive, effort: Literal["quick", "full"], bar: ProgressLine) -> CompactReport:
    """Here, or by the workers of a cluster under one lease."""
    with spread_over(archive.settings, where_shared=True) as spread:
        if spread is None:
            return archive.compact(effort=effort, progress=bar.show)
        # Loaded late on purpose: writing packs needs parts that most commands do without.
        from letopis.archive.cluster import compact_jointly  # noqa: PLC0415

        return compact_jointly(archive, spread, effort, bar.show)


_LEAST_FREE = 200 * 1024 * 1024
_EXTRAS = {
    "browser": "playwright", "notify": "apprise", "parquet": "pyarrow", "postgres": "psycopg",
    "docs-formats": "pypdfium2",
}  # fmt: skip


class DoctorFinding(NamedTuple):
    """One thing that was looked at. `well` None: not needed, worth knowing."""

    name: str
    well: bool | None
    said: str


@verb("doctor", "letopis doctor", "letopis doctor --json")
def doctor_verb(given: CliContext) -> None:
    """Say whether this installation is sound: Python, libraries, settings, archive, disk."""
    ill = 0
    for finding in _findings(given.settings()):
        ill += finding.well is False
        mark = {True: "ok", False: "WRONG", None: "-"}[finding.well]
        given.output.row(finding._asdict(), f"{mark:6} {finding.name:14} {finding.said}")
    if ill:
        raise NotReady(f"{ill} things are wrong; mend them and ask again")


def _findings(settings: Settings) -> Iterator[DoctorFinding]:
    folder = Path(settings.archive.path)
    for look in (
        _python,
        _sqlite,
        _libcurl,
        lambda: _folder(folder),
        lambda: _disk(folder),
        lambda: _catalogue(settings),
    ):
        yield look()
    for extra, module in _EXTRAS.items():
        found = find_spec(module) is not None
        yield DoctorFinding(extra, True if found else None, "installed" if found else f"pip install letopis[{extra}]")


def _python() -> DoctorFinding:
    return DoctorFinding("python", sys.version_info >= (3, 11), sys.version.split()[0])


def _sqlite() -> DoctorFinding:
    return DoctorFinding("sqlite", sqlite3.sqlite_version_info >= (3, 35), sqlite3.sqlite_version)


def _libcurl() -> DoctorFinding:
    told = pycurl.version.split()
    spoken = "https" in pycurl.version_info()[8]
    return DoctorFinding("libcurl", spoken, " ".join(told[:2]) + (", https" if spoken else ", without https"))


def _existing(folder: Path) -> Path:
    return next(path for path in [folder.absolute(), *folder.absolute().parents] if path.exists())


def _folder(folder: Path) -> DoctorFinding:
    place = _existing(folder)
    well = os.access(place, os.W_OK)
    return DoctorFinding(
        "archive", well, f"{folder}" if well else f"{place} cannot be written; choose another --archive"
    )


def _disk(folder: Path) -> DoctorFinding:
    free = shutil.disk_usage(_existing(folder)).free
    return DoctorFinding("disk", free > _LEAST_FREE, f"{free // 2**20} MiB free")


def _catalogue(settings: Settings) -> DoctorFinding:
    folder = Path(settings.archive.path)
    if not settings.database.url and not folder.is_dir():
        return DoctorFinding("catalogue", None, "no archive yet; 'letopis init' makes one")
    return _catalogue_finding(lambda: _versions_found(settings))


def _versions_found(settings: Settings) -> str:
    with Archive.open(settings) as archive:
        return f"{archive.catalog.totals().versions} versions"


def _catalogue_finding(look: Callable[[], str]) -> DoctorFinding:
    try:
        return DoctorFinding("catalogue", True, look())
    except LetopisError as error:
        return DoctorFinding("catalogue", False, str(error))
