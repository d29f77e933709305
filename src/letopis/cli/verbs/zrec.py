"""The verb zrec: single files of compressed sorted records."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from letopis import zrec
from letopis.archive import utc_now
from letopis.cli.context import CliContext, ProgressLine, VerbGroup, read_file, shared_options, verb, write_output
from letopis.errors import UsageError
from letopis.exchange.remote_file import open_zrec, sync_file
from letopis.model.printing import counted

_CHUNK = ("offset", "length", "records", "hash")
_FILE = click.Path(path_type=Path)
_KEY_OPTION = click.option("--key", type=_FILE, help="File with the secret that signs the release.")


def _secret(file: Path | None) -> bytes | None:
    key = None if file is None else read_file(file).strip()
    if key == b"":
        raise UsageError("the file with the key is empty; put a secret into it")
    return key


@click.group("zrec", cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@shared_options
def zrec_verb() -> None:
    """Compressed sorted records with random access, brought up to date by downloading only what changed."""


@verb("pack", "letopis zrec pack Packages Packages.zrec", "letopis zrec pack index.cdxj index.zrec --separator '\\n'")
@click.argument("source", type=_FILE, metavar="IN")
@click.argument("out", type=_FILE, metavar="OUT.zrec")
@click.option("--group", type=click.Choice(["1", "2-4"]), default="1", show_default=True, help="Records per chunk.")
@click.option("--separator", default="\\n\\n", show_default=True, help="Between two records.")
@click.option(
    "--name",
    "name_regex",
    metavar="REGEX",
    help="Pattern of the name of a record; default: the value of its first line.",
)
@click.option("--dict-from", type=_FILE, help="Keep the dictionary of this older file.")
@click.option("--new-dict", is_flag=True, help="Train the dictionary again.")
@click.option(
    "--dict-size",
    type=click.IntRange(1024, 16 << 20),
    metavar="BYTES",
    help="Size of a new dictionary; default: by IN.",
)
@_KEY_OPTION
def _pack(
    cli: CliContext, source: Path, out: Path, group: Literal["1", "2-4"], separator: str, name_regex: str | None,
    dict_from: Path | None, new_dict: bool, dict_size: int | None, key: Path | None,
) -> None:  # fmt: skip
    """Pack the sorted records of IN; over an existing OUT unchanged chunks stay as they are."""
    done = zrec.pack(
        read_file(source), out, group=group, separator=zrec.parse_separator(separator), name_regex=name_regex,
        dict_from=dict_from, new_dict=new_dict, dictionary_size=dict_size, key=_secret(key),
    )  # fmt: skip
    if done.dictionary_kept and dict_size is not None:
        cli.output.remark("the dictionary of the older file was kept; --new-dict trains one of that size")
    for remark in done.remarks:
        cli.output.remark(remark)
    row = {"file": str(done.path), "bytes": done.size, "records": done.records, "chunks": done.chunks}
    cli.output.row(row | {"chunks_kept": done.chunks_kept}, f"{done.records} records in {done.size} bytes: {done.path}")


@verb("list", "letopis zrec list Packages.zrec --json")
@click.argument("file", type=_FILE)
def _list(cli: CliContext, file: Path) -> None:
    """List the chunks of FILE: offset, length, names of records, hash."""
    with zrec.ZrecReader(file) as reader:
        rows = ({name: getattr(row, name) for name in _CHUNK} for row in reader.list())
        cli.output.rows(rows, _CHUNK)


@verb("info", "letopis zrec info Packages.zrec")
@click.argument("file", type=_FILE)
def _info(cli: CliContext, file: Path) -> None:
    """Show what FILE is made of."""
    with zrec.ZrecReader(file) as reader:
        row = reader.info()._asdict()
    cli.output.row(row, "\n".join(f"{name.replace('_', ' '):18} {value}" for name, value in row.items()))


@verb("verify", "letopis zrec verify Packages.zrec")
@click.argument("file", type=_FILE)
def _verify(cli: CliContext, file: Path) -> None:
    """Check every byte of FILE, and its release."""
    verdict = zrec.verify(file)
    for fault in verdict.faults:
        cli.output.complain(fault)
    if cli.as_json:
        cli.output.json({"chunks": verdict.chunks, "readable": verdict.readable, "faults": verdict.faults})
    verdict.raise_if_damaged()
    cli.output.remark(f"no problems found: {counted(verdict.chunks, 'chunk')}")


@verb("get", "letopis zrec get Packages.zrec bash", "letopis zrec get https://example.org/Packages.zrec bash")
@click.argument("file", metavar="FILE|URL")
@click.argument("name")
def _get(cli: CliContext, file: str, name: str) -> None:
    """Print the record NAME of FILE; of a file on a server only its index and a few chunks are fetched."""
    with open_zrec(file, cli.settings().fetch) as reader:
        cli.output.bytes([reader.get(name), b"\n"])


@verb("diff", "letopis zrec diff Packages.old.zrec Packages.zrec", "letopis zrec diff OLD.zrec NEW.zrec --json")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
def _diff(cli: CliContext, old: str, new: str) -> None:
    """List the names of records that were added, removed or changed between two files (paths or addresses)."""
    fetching = cli.settings().fetch
    with open_zrec(old, fetching) as before, open_zrec(new, fetching) as after:
        for change in zrec.diff(before, after):
            cli.output.row(change._asdict(), f"{change.change:8} {change.name}")


@verb("cat", "letopis zrec cat Packages.zrec > Packages")
@click.argument("file", type=_FILE)
@click.option("-o", "--output", "target", type=_FILE, help="Write to a file.")
def _cat(cli: CliContext, file: Path, target: Path | None) -> None:
    """Print all records of FILE, byte for byte as they were packed."""
    with zrec.ZrecReader(file) as reader:
        if target is not None:
            write_output(cli, reader.cat(), target)
            return
        for part in reader.cat():
            cli.output.bytes([part])


@verb("release", "letopis zrec release Packages.zrec", "letopis zrec release Packages.zrec --key secret")
@click.argument("file", type=_FILE)
@_KEY_OPTION
def _release(cli: CliContext, file: Path, key: Path | None) -> None:
    """Write FILE.release: the digests by which a copy is checked."""
    made = zrec.write_release(file, time=utc_now(), key=_secret(key))
    cli.output.row(asdict(made), f"{file}.release is written")


@verb("sync", "letopis zrec sync https://example.org/Packages.zrec Packages.zrec --json")
@click.argument("url")
@click.argument("out", type=_FILE)
@click.option("--seed", type=_FILE, help="Older copy to take unchanged chunks from; default: OUT itself.")
@click.option("--key", type=_FILE, help="Accept only a release signed with the secret in this file.")
def _sync(cli: CliContext, url: str, out: Path, seed: Path | None, key: Path | None) -> None:
    """Bring OUT up to date from URL (http, https or file:), downloading only what changed."""
    with ProgressLine("bytes", quiet=cli.is_unwatched) as bar:
        report = sync_file(
            url, out, seed=seed, key=_secret(key), settings=cli.settings().fetch,
            progress=lambda done, total: bar.show(done, total=total),
        )  # fmt: skip
    spent = report.bytes_downloaded + report.bytes_sent
    cli.output.row(report._asdict(), f"{out} is up to date: {spent} bytes on the wire, {report.requests} requests")


zrec_verb.examples = (
    "letopis zrec pack Sources Sources.zrec",
    "letopis zrec sync https://example.org/Sources.zrec Sources.zrec",
)
for _command in (_pack, _list, _info, _verify, _get, _diff, _cat, _release, _sync):
    zrec_verb.add_command(_command)
