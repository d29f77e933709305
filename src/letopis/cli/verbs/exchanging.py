"""Verbs that exchange archives with other tools: import, export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import click

from letopis.cli.context import Given, verb
from letopis.cli.progress import Progress
from letopis.exchange import Selected, export_warc, import_files
from letopis.exchange.warc_out import Compression


@verb("import", "letopis import crawl.warc.gz", "letopis import *.warc.gz --json")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
def import_verb(given: Given, files: tuple[Path, ...]) -> None:
    """Take WARC (.warc, .gz, .zst) and ARC files in: versions, checks, headers and times are kept."""
    with given.open() as archive, Progress("records", quiet=given.quiet) as bar:
        report = import_files(archive, files, bar.show)
    for example in report.examples:
        given.output.remark(f"refused: {example}")
    row = {
        "records": report.records,
        "checks": report.checks,
        "versions": report.versions,
        "refused": dict(report.refused),
    }
    refused = sum(report.refused.values())
    given.output.row(
        row, f"{report.records} records: {report.versions} versions, {report.checks} checks, {refused} refused"
    )


@verb(
    "export",
    "letopis export warc -o all.warc.gz",
    "letopis export warc --site example.org --from 2024-01-01 > part.warc.gz",
)
@click.argument("kind", type=click.Choice(["warc"]))
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")
@click.option("--site", default="", help="Only this host or the host of this URL.")
@click.option("--from", "start", metavar="TIME", help="Only checks from this time on.")
@click.option("--to", "end", metavar="TIME", help="Only checks up to this time.")
@click.option("--latest", is_flag=True, help="Only the newest version of each page.")
@click.option(
    "--compression",
    type=click.Choice(["gzip", "zstd", "none"]),
    default="gzip",
    show_default=True,
    help="Of each record.",
)
def export_verb(
    given: Given, kind: str, target: Path | None, site: str, start: str | None, end: str | None, latest: bool,
    compression: str,
) -> None:  # fmt: skip
    """Write the archive, or a part of it, in a format that other tools read."""
    selected = Selected(site, given.moment(start), given.moment(end), latest)
    with given.open(create=False) as archive, Progress("records", quiet=given.quiet) as bar:
        out = target.open("wb") if target else sys.stdout.buffer
        try:
            count = export_warc(archive, out, selected, cast(Compression, compression), bar.show)
        finally:
            out.flush()
            if target:
                out.close()
    given.output.remark(f"{count} records")
