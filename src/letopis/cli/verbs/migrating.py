"""The verb that takes an archive to another place."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from letopis.archive import Archive
from letopis.archive.moving import MoveReport, move_archive
from letopis.cli.context import Given, verb
from letopis.cli.progress import Progress
from letopis.config import Settings, load
from letopis.errors import UsageError


@verb(
    "migrate",
    "letopis migrate scaled.toml",
    "letopis --config scaled.toml migrate embedded.toml",
)
@click.argument("target", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--no-verify", is_flag=True, help="Compare the tables only; do not read every content again.")
def migrate_verb(given: Given, target: Path, no_verify: bool) -> None:
    """Copy the archive to the place that the settings in FILE name, and compare. Run it again after an interruption."""
    if not target.is_file():
        raise UsageError(f"there is no settings file {target}; write one that names the new place")
    there = load(target, {}, {})
    if _place(there) == _place(given.settings()):
        raise UsageError(f"{target} names the archive itself; name another place")
    done: list[str] = []

    def progress(what: str) -> None:
        done.append(what)
        bar.show(len(done), what)

    with (
        given.open(create=False) as source,
        Archive.open(there) as copy,
        Progress("parts", quiet=given.quiet) as bar,
    ):
        report = move_archive(source, copy, progress, verify=not no_verify)
    given.output.row(asdict(report), _sentence(report))


def _sentence(report: MoveReport) -> str:
    again = ", resumed" if report.resumed else ""
    return f"{report.packs} packs ({report.pack_bytes} bytes) and {report.rows} rows copied{again}; all equal"


def _place(settings: Settings) -> tuple[str, str]:
    """Where catalogue and packs are."""
    folder = str(Path(settings.archive.path).resolve())
    return settings.database.url or folder, settings.store.url or folder
