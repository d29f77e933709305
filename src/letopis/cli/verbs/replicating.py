"""Verbs that replicate archives by plain files: publish, clone, pull."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from letopis.cli.context import Given, verb
from letopis.cli.progress import Progress
from letopis.errors import UsageError
from letopis.exchange.replica import CloneReport, PullOptions, Selection, clone, detach, publish, pull
from letopis.model import parse_duration, to_millis

_FOLDER = click.Path(path_type=Path, file_okay=False)
_KEY = click.option(
    "--key", "key_file", type=click.Path(path_type=Path), help="File with the secret that signs releases."
)


@verb("publish", "letopis publish /var/www/archive", "letopis publish /var/www/archive --key secret --json")
@click.argument("folder", type=_FOLDER, metavar="DIR")
@_KEY
@click.option("--grace", default="1h", show_default=True, help="How long files of older releases stay.")
def publish_verb(given: Given, folder: Path, key_file: Path | None, grace: str) -> None:
    """Write the archive to DIR as files that any static server can hand out; only what is new is written."""
    with given.open(create=False) as archive, Progress("documents", quiet=given.quiet) as bar:
        seconds = parse_duration(grace)
        report = publish(archive, folder, key=_key(key_file), grace=seconds, progress=bar.show)
    told = f"release {report.serial}: {report.versions} versions of {report.documents} documents"
    added = f"{report.packs_added} files, {report.bytes_added} bytes of packs added" if report.new else "nothing new"
    given.output.row(asdict(report), f"{told}; {added}")


@verb(
    "clone",
    "letopis clone https://example.org/archive/ copy",
    "letopis clone https://example.org/archive/ news --site news.example.org --from 2026-01-01",
    "letopis clone /mnt/disk/archive copy --lazy",
)
@click.argument("url")
@click.argument("folder", type=_FOLDER, metavar="DIR")
@click.option("--site", default="", metavar="SITE", help="Only this host.")
@click.option("--from", "start", metavar="TIME", help="Fetch contents valid from this time on; others when read.")
@click.option("--to", "end", metavar="TIME", help="Fetch contents up to this time; others when read.")
@click.option("--lazy", is_flag=True, help="Fetch no contents now, each one when it is read.")
@_KEY
def clone_verb(
    given: Given, url: str, folder: Path, site: str, start: str | None, end: str | None, lazy: bool,
    key_file: Path | None,
) -> None:  # fmt: skip
    """Make DIR a copy of the archive published at URL (http, https, file: or a folder). Run again to resume."""
    since, until = given.moment(start), given.moment(end)
    wanted = Selection(site, to_millis(since) if since else None, to_millis(until) if until else None, lazy)
    with Progress("bytes", quiet=given.quiet) as bar:
        report = clone(url, folder, wanted, given.settings(), key=_key(key_file), progress=bar.show)
    _tell(given, folder, report)


@verb("pull", "letopis pull copy", "letopis pull copy --fill", "letopis pull copy --json")
@click.argument("folder", type=_FOLDER, metavar="DIR")
@click.option("--allow-older", is_flag=True, help="Go back to an older release than the one that is here.")
@click.option("--fill", is_flag=True, help="Fetch all contents that are still missing.")
@click.option("--repack", is_flag=True, help="Fetch packs that the origin has compacted, to give space back.")
@click.option("--detach", "leave", is_flag=True, help="Follow the origin no more: DIR becomes an archive of its own.")
@_KEY
def pull_verb(
    given: Given, folder: Path, allow_older: bool, fill: bool, repack: bool, leave: bool, key_file: Path | None
) -> None:
    """Bring the clone DIR up to date; only differences are transferred."""
    if leave:
        detach(folder, given.settings())
        given.output.row({"archive": str(folder), "detached": True}, f"{folder} is an archive of its own now")
        return
    options = PullOptions(allow_older, fill, repack, _key(key_file))
    with Progress("bytes", quiet=given.quiet) as bar:
        report = pull(folder, options, given.settings(), progress=bar.show)
    _tell(given, folder, report)


def _tell(given: Given, folder: Path, report: CloneReport) -> None:
    wire = report.bytes_downloaded + report.bytes_sent
    state = "was up to date" if report.up_to_date else f"holds release {report.serial}"
    rest = f", {report.absent} contents to be fetched when read" if report.absent else ""
    given.output.row(
        asdict(report),
        f"{folder} {state}: {report.versions} versions of {report.documents} documents{rest}; "
        f"{wire} bytes on the wire, {report.requests} requests",
    )


def _key(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        secret = file.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; give a readable --key") from None
    if not secret:
        raise UsageError(f"{file} is empty; put a secret into it")
    return secret
