"""Verbs that look after the archive: verify, compact."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

import click

from letopis.archive import Archive
from letopis.cli.cluster import CLUSTER, spread_over, use_cluster
from letopis.cli.context import Given, verb
from letopis.cli.progress import Progress
from letopis.errors import Damaged

if TYPE_CHECKING:
    from letopis.archive.compaction import CompactReport


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


@verb("compact", "letopis compact", "letopis compact --quick", "letopis compact --cluster tcp://scheduler.example:8786")
@click.option("--quick", is_flag=True, help="Only what is new, at about the cost of storing it again.")
@CLUSTER
def compact_verb(given: Given, quick: bool, cluster: str | None) -> None:
    """Re-compress old versions, carry out retention, give space back. Ctrl-C stops; the rest comes next time."""
    use_cluster(given, cluster)
    with given.open(create=False) as archive, Progress("documents", quiet=given.quiet) as bar:
        report = _compacted(archive, "quick" if quick else "full", bar)
    saved = report.bytes_before - report.bytes_after
    given.output.row(
        asdict(report), f"{report.documents} documents, {report.bytes_after} bytes of packs, {saved} bytes given back"
    )


def _compacted(archive: Archive, effort: Literal["quick", "full"], bar: Progress) -> CompactReport:
    """Here, or by the workers of a cluster under one lease."""
    with spread_over(archive.settings, where_shared=True) as spread:
        if spread is None:
            return archive.compact(effort=effort, progress=bar.show)
        # Loaded late on purpose: writing packs needs parts that most commands do without.
        from letopis.archive.joint_compaction import compact_jointly  # noqa: PLC0415

        return compact_jointly(archive, spread, effort, bar.show)
