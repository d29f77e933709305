"""Verbs that exchange archives with other tools and places: import, export, migrate."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from letopis.archive import Archive
from letopis.archive.cluster import PieceRunner, spread_over
from letopis.archive.migration import MoveReport, move_archive
from letopis.binary import atomic_file
from letopis.cli.cluster import CLUSTER_OPTION, use_cluster
from letopis.cli.context import CliContext, verb
from letopis.cli.output import ProgressLine
from letopis.config import Settings, load_settings
from letopis.errors import UsageError
from letopis.exchange.cdx import export_cdxj
from letopis.exchange.imports import import_sources, source_kind
from letopis.exchange.parquet_export import export_parquet
from letopis.exchange.selection import ExportSelection
from letopis.exchange.sources import ImportReport, SourceHints, SourceKind
from letopis.exchange.static_copy import export_static
from letopis.exchange.wacz_export import export_wacz
from letopis.exchange.warc_export import export_warc
from letopis.exchange.warc_records import WarcCompression
from letopis_migrate.readers import tool_watches


@verb(
    "import",
    "letopis import crawl.warc.gz collection.wacz",
    "letopis import index.cdxj --base https://example.org/warcs/",
    "letopis import saved-pages/ --url https://example.org/news",
    "letopis import site.git --url https://example.org/ --path public",
    "letopis import changedetection-data/ --watches",
    "letopis import *.warc.gz --json",
)
@click.argument("sources", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--kind", type=click.Choice([str(kind) for kind in SourceKind]), help="What the sources are, if not seen."
)
@click.option("--url", default="", metavar="URL", help="Page of dated files; with a slash at its end, their folder.")
@click.option("--urls", type=click.Path(path_type=Path), metavar="FILE", help="urls.tsv, or urls.yaml of urlwatch.")
@click.option("--path", "paths", multiple=True, metavar="PATH", help="Only these files or folders of a git history.")
@click.option("--base", default="", metavar="WHERE", help="Folder or address of the WARC files that a CDXJ names.")
@click.option("--watches", is_flag=True, help="Watch from now on what urlwatch or changedetection.io watched.")
def import_verb(given: CliContext, sources: tuple[str, ...], kind: str | None, watches: bool, **told: Any) -> None:
    """Take in WARC, ARC, WACZ, CDXJ, and what git, urlwatch, changedetection.io, wget, HTTrack or you have kept.

    Times, headers and contents stay as they were. What is already there is
    not taken twice, so a run that was stopped goes on when it is repeated.
    """
    asked = SourceHints(told["url"], told["urls"], told["paths"])
    chosen = SourceKind(kind) if kind else None
    with given.open() as archive, ProgressLine("records", quiet=given.quiet) as bar:
        report = import_sources(archive, sources, bar.show, base=told["base"], kind=chosen, asked=asked)
        watched = sum(_take_watches(archive, source, chosen, asked, report) for source in sources) if watches else None
    _print_import(given, report, watched)


def _take_watches(
    archive: Archive, source: str, kind: SourceKind | None, asked: SourceHints, report: ImportReport
) -> int:
    # Loaded late on purpose: filters of watches need every parser, and imports need none of them.
    from letopis.cli.verbs.watch_list import add_imported_watches  # noqa: PLC0415

    return add_imported_watches(archive, tool_watches(Path(source), kind or source_kind(source), asked), report)


def _print_import(given: CliContext, report: ImportReport, watched: int | None) -> None:
    for example in report.examples:
        given.output.remark(f"refused: {example}")
    refused = sum(report.refused.values())
    row: dict[str, Any] = {
        "records": report.records,
        "taken": report.checks,
        "checks": report.checks,
        "versions": report.versions,
        "same": report.same,
        "refused": dict(report.refused),
        "examples": report.examples,
    }
    shown = f"{report.records} records: {report.versions} versions, {report.checks} checks"
    shown += f", {report.same} already there, {refused} refused"
    if watched is not None:
        row["watches"] = watched
        shown += f", {watched} watches"
    given.output.row(row, shown)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What one export was asked for."""

    archive: Archive
    target: Path | None
    selected: ExportSelection
    compression: WarcCompression
    progress: Callable[[int], None]
    spread: PieceRunner | None

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Standard output, or the file that was named, which appears when it is complete."""
        if self.target is None:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        with atomic_file(self.target) as out:
            yield out

    def place(self, kind: str, name: str) -> Path:
        """The file or folder that was named; kinds that are no stream need one."""
        if self.target is None:
            raise UsageError(f"export {kind} cannot go to standard output; name a place with -o {name}")
        return self.target


def _warc(wanted: ExportRequest) -> dict[str, int]:
    with wanted.stream() as out:
        count = export_warc(wanted.archive, out, wanted.selected, wanted.compression, wanted.progress, wanted.spread)
    return {"records": count}


def _cdxj(wanted: ExportRequest) -> dict[str, int]:
    with wanted.stream() as out:
        return {"captures": export_cdxj(wanted.archive, out, wanted.selected, wanted.progress, wanted.spread)}


def _wacz(wanted: ExportRequest) -> dict[str, int]:
    place = wanted.place("wacz", "FILE.wacz")
    return {"records": export_wacz(wanted.archive, place, wanted.selected, wanted.progress, wanted.spread)}


def _static(wanted: ExportRequest) -> dict[str, int]:
    return asdict(export_static(wanted.archive, wanted.place("static", "DIR"), wanted.selected, wanted.progress))


def _parquet(wanted: ExportRequest) -> dict[str, int]:
    return export_parquet(
        wanted.archive, wanted.place("parquet", "DIR"), wanted.selected, wanted.progress, wanted.spread
    )


EXPORTERS: dict[str, Callable[[ExportRequest], dict[str, int]]] = {
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
@click.argument("kind", type=click.Choice(list(EXPORTERS)))
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
@CLUSTER_OPTION
def export_verb(
    given: CliContext, kind: str, target: Path | None, site: str, project: str, start: str | None, end: str | None,
    latest: bool, compression: str, cluster: str | None,
) -> None:  # fmt: skip
    """Write the archive, or a part of it, in a format that other tools read.

    A cluster reads and compresses pages for all formats but static, whose files are written here.
    """
    use_cluster(given, cluster)
    selected = ExportSelection(site, given.moment(start), given.moment(end), latest, project)
    with (
        given.open(create=False) as archive,
        spread_over(archive.settings, where_shared=True) as spread,
        ProgressLine("records", quiet=given.quiet) as bar,
    ):
        done = EXPORTERS[kind](
            ExportRequest(archive, target, selected, cast(WarcCompression, compression), bar.show, spread)
        )
    sentence = ", ".join(f"{count} {name}" for name, count in done.items())
    if given.as_json and target is not None:
        given.output.row(done, sentence)
    else:
        given.output.remark(sentence)


@verb(
    "migrate",
    "letopis migrate scaled.toml",
    "letopis --config scaled.toml migrate embedded.toml",
)
@click.argument("target", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--no-verify", is_flag=True, help="Compare the tables only; do not read every content again.")
def migrate_verb(given: CliContext, target: Path, no_verify: bool) -> None:
    """Copy the archive to the place that the settings in FILE name, and compare. Run it again after an interruption."""
    if not target.is_file():
        raise UsageError(f"there is no settings file {target}; write one that names the new place")
    there = load_settings(target, {}, {})
    if _location(there) == _location(given.settings()):
        raise UsageError(f"{target} names the archive itself; name another place")
    done: list[str] = []

    def progress(what: str) -> None:
        done.append(what)
        bar.show(len(done), what)

    with (
        given.open(create=False) as source,
        Archive.open(there) as copy,
        ProgressLine("parts", quiet=given.quiet) as bar,
    ):
        report = move_archive(source, copy, progress, verify=not no_verify)
    given.output.row(asdict(report), _move_sentence(report))


def _move_sentence(report: MoveReport) -> str:
    again = ", resumed" if report.resumed else ""
    return f"{report.packs} packs ({report.pack_bytes} bytes) and {report.rows} rows copied{again}; all equal"


def _location(settings: Settings) -> tuple[str, str]:
    """Where catalogue and packs are."""
    folder = str(Path(settings.archive.path).resolve())
    return settings.database.url or folder, settings.store.url or folder
