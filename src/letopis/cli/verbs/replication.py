"""Verbs that replicate by plain files: publish, clone, pull, and zrec for single files of records."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from letopis import zrec
from letopis.archive import utc_now
from letopis.cli.context import CliContext, VerbGroup, read_file, shared_options, verb, write_output
from letopis.cli.output import ProgressLine
from letopis.errors import UsageError
from letopis.exchange.remote_file import source_of
from letopis.exchange.replica import CloneReport, CloneSelection, PullOptions, clone, detach, publish, pull
from letopis.model import parse_duration, to_millis

_FOLDER = click.Path(path_type=Path, file_okay=False)
_KEY_OPTION = click.option(
    "--key", "key_file", type=click.Path(path_type=Path), help="File with the secret that signs releases."
)


@verb("publish", "letopis publish /var/www/archive", "letopis publish /var/www/archive --key secret --json")
@click.argument("folder", type=_FOLDER, metavar="DIR")
@_KEY_OPTION
@click.option("--grace", default="1h", show_default=True, help="How long files of older releases stay.")
def publish_verb(given: CliContext, folder: Path, key_file: Path | None, grace: str) -> None:
    """Write the archive to DIR as files that any static server can hand out; only what is new is written."""
    with given.open(create=False) as archive, ProgressLine("documents", quiet=given.quiet) as bar:
        seconds = parse_duration(grace)
        report = publish(archive, folder, key=_read_key(key_file), grace=seconds, progress=bar.show)
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
@_KEY_OPTION
def clone_verb(
    given: CliContext, url: str, folder: Path, site: str, start: str | None, end: str | None, lazy: bool,
    key_file: Path | None,
) -> None:  # fmt: skip
    """Make DIR a copy of the archive published at URL (http, https, file: or a folder). Run again to resume."""
    since, until = given.moment(start), given.moment(end)
    wanted = CloneSelection(site, to_millis(since) if since else None, to_millis(until) if until else None, lazy)
    with ProgressLine("bytes", quiet=given.quiet) as bar:
        report = clone(url, folder, wanted, given.settings(), key=_read_key(key_file), progress=bar.show)
    _print_clone(given, folder, report)


@verb("pull", "letopis pull copy", "letopis pull copy --fill", "letopis pull copy --json")
@click.argument("folder", type=_FOLDER, metavar="DIR")
@click.option("--allow-older", is_flag=True, help="Go back to an older release than the one that is here.")
@click.option("--fill", is_flag=True, help="Fetch all contents that are still missing.")
@click.option("--repack", is_flag=True, help="Fetch packs that the origin has compacted, to give space back.")
@click.option("--detach", "leave", is_flag=True, help="Follow the origin no more: DIR becomes an archive of its own.")
@_KEY_OPTION
def pull_verb(
    given: CliContext, folder: Path, allow_older: bool, fill: bool, repack: bool, leave: bool, key_file: Path | None
) -> None:
    """Bring the clone DIR up to date; only differences are transferred."""
    if leave:
        detach(folder, given.settings())
        given.output.row({"archive": str(folder), "detached": True}, f"{folder} is an archive of its own now")
        return
    options = PullOptions(allow_older, fill, repack, _read_key(key_file))
    with ProgressLine("bytes", quiet=given.quiet) as bar:
        report = pull(folder, options, given.settings(), progress=bar.show)
    _print_clone(given, folder, report)


def _print_clone(given: CliContext, folder: Path, report: CloneReport) -> None:
    wire = report.bytes_downloaded + report.bytes_sent
    state = "was up to date" if report.up_to_date else f"holds release {report.serial}"
    rest = f", {report.absent} contents to be fetched when read" if report.absent else ""
    given.output.row(
        asdict(report),
        f"{folder} {state}: {report.versions} versions of {report.documents} documents{rest}; "
        f"{wire} bytes on the wire, {report.requests} requests",
    )


def _read_key(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        secret = file.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; give a readable --key") from None
    if not secret:
        raise UsageError(f"{file} is empty; put a secret into it")
    return secret


_CHUNK = ("offset", "length", "records", "hash")
_FILE = click.Path(path_type=Path)


@click.group("zrec", cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@shared_options
def zrec_verb() -> None:
    """Compressed sorted records with random access, brought up to date by downloading only what changed."""


@verb("pack", "letopis zrec pack Packages Packages.zrec", "letopis zrec pack index.cdxj index.zrec --separator '\\n'")
@click.argument("source", type=_FILE, metavar="IN")
@click.argument("out", type=_FILE, metavar="OUT.zrec")
@click.option("--group", type=click.Choice(["1", "2-4"]), default="1", show_default=True, help="Records a chunk.")
@click.option("--separator", default="\\n\\n", show_default=True, help="Between two records.")
@click.option(
    "--name", "name_regex", metavar="REGEX", help="What names a record; default: the value of its first line."
)
@click.option("--dict-from", type=_FILE, help="Keep the dictionary of this older file.")
@click.option("--new-dict", is_flag=True, help="Train the dictionary again.")
def _pack(
    given: CliContext, source: Path, out: Path, group: Literal["1", "2-4"], separator: str, name_regex: str | None,
    dict_from: Path | None, new_dict: bool,
) -> None:  # fmt: skip
    """Pack the sorted records of IN; over an existing OUT unchanged chunks stay as they are."""
    done = zrec.pack(
        read_file(source), out, group=group, separator=zrec.parse_separator(separator), name_regex=name_regex,
        dict_from=dict_from, new_dict=new_dict,
    )  # fmt: skip
    row = {"file": str(done.path), "bytes": done.size, "records": done.records, "chunks": done.chunks}
    given.output.row(
        row | {"chunks_kept": done.chunks_kept}, f"{done.records} records in {done.size} bytes: {done.path}"
    )


@verb("list", "letopis zrec list Packages.zrec --json")
@click.argument("file", type=_FILE)
def _list(given: CliContext, file: Path) -> None:
    """List the chunks of FILE: offset, length, names of records, hash."""
    with zrec.ZrecReader(file) as reader:
        rows = ({name: getattr(row, name) for name in _CHUNK} for row in reader.list())
        given.output.rows(rows, _CHUNK)


@verb("info", "letopis zrec info Packages.zrec")
@click.argument("file", type=_FILE)
def _info(given: CliContext, file: Path) -> None:
    """Show what FILE is made of."""
    with zrec.ZrecReader(file) as reader:
        row = asdict(reader.info())
    given.output.row(row, "\n".join(f"{name.replace('_', ' '):18} {value}" for name, value in row.items()))


@verb("verify", "letopis zrec verify Packages.zrec")
@click.argument("file", type=_FILE)
def _verify(given: CliContext, file: Path) -> None:
    """Check every byte of FILE, and its release; says nothing when all is well."""
    verdict = zrec.verify(file)
    for fault in verdict.faults:
        given.output.complain(fault)
    if given.as_json:
        given.output.json({"chunks": verdict.chunks, "readable": verdict.readable, "faults": verdict.faults})
    verdict.raise_if_damaged()


@verb("get", "letopis zrec get Packages.zrec bash")
@click.argument("file", type=_FILE)
@click.argument("name")
def _get(given: CliContext, file: Path, name: str) -> None:
    """Print the record NAME of FILE."""
    with zrec.ZrecReader(file) as reader:
        given.output.bytes(reader.get(name) + b"\n")


@verb("cat", "letopis zrec cat Packages.zrec > Packages")
@click.argument("file", type=_FILE)
@click.option("-o", "--output", "target", type=_FILE, help="Write to a file.")
def _cat(given: CliContext, file: Path, target: Path | None) -> None:
    """Print all records of FILE, byte for byte as they were packed."""
    with zrec.ZrecReader(file) as reader:
        if target is not None:
            write_output(given, b"".join(reader.cat()), target)
            return
        for part in reader.cat():
            given.output.bytes(part)


@verb("release", "letopis zrec release Packages.zrec")
@click.argument("file", type=_FILE)
def _release(given: CliContext, file: Path) -> None:
    """Write FILE.release: the digests by which a copy is checked."""
    made = zrec.write_release(file, time=utc_now())
    given.output.row(asdict(made), f"{file}.release is written")


@verb("sync", "letopis zrec sync https://example.org/Packages.zrec Packages.zrec --json")
@click.argument("url")
@click.argument("out", type=_FILE)
@click.option("--seed", type=_FILE, help="Older copy to take unchanged chunks from; default: OUT itself.")
def _sync(given: CliContext, url: str, out: Path, seed: Path | None) -> None:
    """Bring OUT up to date from URL (http, https or file:), downloading only what changed."""
    with ProgressLine("bytes", quiet=given.quiet) as bar:
        report = asyncio.run(_synced(given, url, out, seed, bar))
    spent = report.bytes_downloaded + report.bytes_sent
    given.output.row(asdict(report), f"{out} is up to date: {spent} bytes on the wire, {report.requests} requests")


async def _synced(given: CliContext, url: str, out: Path, seed: Path | None, bar: ProgressLine) -> zrec.SyncReport:
    async with source_of(url, given.settings().fetch, utc_now) as source:
        return await zrec.sync(source, out, seed=seed, progress=lambda done, total: bar.show(done))


zrec_verb.examples = (
    "letopis zrec pack Sources Sources.zrec",
    "letopis zrec sync https://example.org/Sources.zrec Sources.zrec",
)
for _command in (_pack, _list, _info, _verify, _get, _cat, _release, _sync):
    zrec_verb.add_command(_command)
