"""Verbs that look after the archive: verify, compact."""

from __future__ import annotations

from dataclasses import asdict

import click

from letopis.archive import Archive
from letopis.cli.context import Given, verb
from letopis.cli.progress import Progress
from letopis.errors import Damaged


@verb("verify", "letopis verify", "letopis verify --repair")
@click.option(
    "--repair", is_flag=True, help="Drop only what is truly lost; rebuild a damaged catalogue from the packs."
)
def verify_verb(given: Given, repair: bool) -> None:
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


@verb("compact", "letopis compact", "letopis compact --quick")
@click.option("--quick", is_flag=True, help="Only what is new, at about the cost of storing it again.")
def compact_verb(given: Given, quick: bool) -> None:
    """Re-compress old versions, carry out retention, give space back. Ctrl-C stops; the rest comes next time."""
    with given.open(create=False) as archive, Progress("documents", quiet=given.quiet) as bar:
        report = archive.compact(effort="quick" if quick else "full", progress=bar.show)
    saved = report.bytes_before - report.bytes_after
    given.output.row(
        asdict(report), f"{report.documents} documents, {report.bytes_after} bytes of packs, {saved} bytes given back"
    )
