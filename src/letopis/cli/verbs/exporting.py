"""The verb that writes archives for other tools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, cast

import click

from letopis.archive import Archive
from letopis.archive.spreading import Spread
from letopis.cli.cluster import CLUSTER, spread_over, use_cluster
from letopis.cli.context import Given, verb
from letopis.cli.progress import Progress
from letopis.errors import UsageError
from letopis.exchange.cdxj_out import export_cdxj
from letopis.exchange.parquet_out import export_parquet
from letopis.exchange.selecting import Selected
from letopis.exchange.static import export_static
from letopis.exchange.wacz_out import export_wacz
from letopis.exchange.warc_out import export_warc
from letopis.exchange.warc_writer import Compression
from letopis.exchange.whole_file import whole_file


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one export was asked for."""

    archive: Archive
    target: Path | None
    selected: Selected
    compression: Compression
    progress: Callable[[int], None]
    spread: Spread | None

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Standard output, or the file that was named, which appears when it is complete."""
        if self.target is None:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        with whole_file(self.target) as out:
            yield out

    def place(self, kind: str, name: str) -> Path:
        """The file or folder that was named; kinds that are no stream need one."""
        if self.target is None:
            raise UsageError(f"export {kind} cannot go to standard output; name a place with -o {name}")
        return self.target


def _warc(wanted: Wanted) -> dict[str, int]:
    with wanted.stream() as out:
        count = export_warc(wanted.archive, out, wanted.selected, wanted.compression, wanted.progress, wanted.spread)
    return {"records": count}


def _cdxj(wanted: Wanted) -> dict[str, int]:
    with wanted.stream() as out:
        return {"captures": export_cdxj(wanted.archive, out, wanted.selected, wanted.progress, wanted.spread)}


def _wacz(wanted: Wanted) -> dict[str, int]:
    place = wanted.place("wacz", "FILE.wacz")
    return {"records": export_wacz(wanted.archive, place, wanted.selected, wanted.progress, wanted.spread)}


def _static(wanted: Wanted) -> dict[str, int]:
    return asdict(export_static(wanted.archive, wanted.place("static", "DIR"), wanted.selected, wanted.progress))


def _parquet(wanted: Wanted) -> dict[str, int]:
    return export_parquet(
        wanted.archive, wanted.place("parquet", "DIR"), wanted.selected, wanted.progress, wanted.spread
    )


KINDS: dict[str, Callable[[Wanted], dict[str, int]]] = {
    "warc": _warc,
    "wacz": _wacz,
    "cdxj": _cdxj,
    "static": _static,
    "parquet": _parquet,
}


@verb(
    "export",
    "letopis export warc -o all.warc.gz",
    "letopis export warc --site example.org --from 2024-01-01 > part.warc.gz",
    "letopis export wacz --project news -o news.wacz",
    "letopis export warc -o all.warc.gz --cluster tcp://scheduler.example:8786",
)
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to this file or folder.")
@click.option("--site", default="", help="Only this host or the host of this URL.")
@click.option("--project", default="", metavar="NAME", help="Only pages of this project.")
@click.option("--from", "start", metavar="TIME", help="Only checks from this time on.")
@click.option("--to", "end", metavar="TIME", help="Only checks up to this time.")
@click.option("--latest", is_flag=True, help="Only the newest version of each page.")
@click.option(
    "--compression",
    type=click.Choice(["gzip", "zstd", "none"]),
    default="gzip",
    show_default=True,
    help="Of each WARC record.",
)
@CLUSTER
def export_verb(
    given: Given, kind: str, target: Path | None, site: str, project: str, start: str | None, end: str | None,
    latest: bool, compression: str, cluster: str | None,
) -> None:  # fmt: skip
    """Write the archive, or a part of it, in a format that other tools read.

    A cluster reads and compresses pages for all formats but static, whose files are written here.
    """
    use_cluster(given, cluster)
    selected = Selected(site, given.moment(start), given.moment(end), latest, project)
    with (
        given.open(create=False) as archive,
        spread_over(archive.settings, where_shared=True) as spread,
        Progress("records", quiet=given.quiet) as bar,
    ):
        done = KINDS[kind](Wanted(archive, target, selected, cast(Compression, compression), bar.show, spread))
    sentence = ", ".join(f"{count} {name}" for name, count in done.items())
    if given.as_json and target is not None:
        given.output.row(done, sentence)
    else:
        given.output.remark(sentence)
