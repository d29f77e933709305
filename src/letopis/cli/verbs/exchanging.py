"""The verb that takes archives of other tools in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from letopis.archive import Archive
from letopis.cli.context import Given, verb
from letopis.cli.progress import Progress
from letopis.exchange.importing import import_sources, kind_of
from letopis.exchange.migrate import Asked, Kind, standing_checks
from letopis.exchange.report import ImportReport


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
@click.option("--kind", type=click.Choice([str(kind) for kind in Kind]), help="What the sources are, if not seen.")
@click.option("--url", default="", metavar="URL", help="Page of dated files; with a slash at its end, their folder.")
@click.option("--urls", type=click.Path(path_type=Path), metavar="FILE", help="urls.tsv, or urls.yaml of urlwatch.")
@click.option("--path", "paths", multiple=True, metavar="PATH", help="Only these files or folders of a git history.")
@click.option("--base", default="", metavar="WHERE", help="Folder or address of the WARC files that a CDXJ names.")
@click.option("--watches", is_flag=True, help="Watch from now on what urlwatch or changedetection.io watched.")
def import_verb(given: Given, sources: tuple[str, ...], kind: str | None, watches: bool, **told: Any) -> None:
    """Take in WARC, ARC, WACZ, CDXJ, and what git, urlwatch, changedetection.io, wget, HTTrack or you have kept.

    Times, headers and contents stay as they were. What is already there is
    not taken twice, so a run that was stopped goes on when it is repeated.
    """
    asked = Asked(told["url"], told["urls"], told["paths"])
    chosen = Kind(kind) if kind else None
    with given.open() as archive, Progress("records", quiet=given.quiet) as bar:
        report = import_sources(archive, sources, bar.show, base=told["base"], kind=chosen, asked=asked)
        watched = sum(_watch(archive, source, chosen, asked, report) for source in sources) if watches else None
    _tell(given, report, watched)


def _watch(archive: Archive, source: str, kind: Kind | None, asked: Asked, report: ImportReport) -> int:
    # Loaded late on purpose: filters of watches need every parser, and imports need none of them.
    from letopis.cli.verbs.kept_watches import watch_all  # noqa: PLC0415

    return watch_all(archive, standing_checks(Path(source), kind or kind_of(source), asked), report)


def _tell(given: Given, report: ImportReport, watched: int | None) -> None:
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
