"""Maintenance of the archive: verify and repair every byte, compact, back up, check the installation."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from letopis.archive import OWN, Archive, holds_archive
from letopis.archive.backups import BackupReport, RestoreReport, back_up
from letopis.archive.backups import restore as restore_archive
from letopis.archive.cluster import compact_jointly, spread_over
from letopis.archive.compaction import CompactReport
from letopis.archive.integrity import RepairReport
from letopis.config import Settings
from letopis.errors import Damaged, LetopisError, MissingExtra, NotReady, shell_words
from letopis.fetch.browser import find_browser
from letopis.lazy import lazy
from letopis.model.printing import counted
from letopis.operations.context import Cancelled, Context, LocalContext
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import NoParameters, Parameters, parameter
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    import pycurl
else:
    pycurl = lazy("pycurl")

# Verify


class VerifyCommand(Parameters):
    """Whether to repair."""

    repair: bool = parameter("Drop only what is lost; rebuild a damaged catalogue from the packs.", default=False)


class VerifyProblem(NamedTuple):
    """Something that is not as it was written."""

    where: str
    problem: str


class SoundArchive(NamedTuple):
    """What was checked when no problem was found."""

    problems: int
    documents: int
    versions: int
    contents: int
    pack_bytes: int


def _verify_sentence(found: VerifyProblem | RepairReport) -> str:
    if isinstance(found, VerifyProblem):
        return f"{found.where}: {found.problem}"
    return f"{found.versions} versions intact, {len(found.lost)} lost"


@operation(
    "verify", right=OWN, verb="verify", sentence=_verify_sentence,
    examples=("letopis verify", "letopis verify --repair"),
)  # fmt: skip
def verify(context: LocalContext, asked: VerifyCommand) -> Rows[VerifyProblem] | Value[RepairReport]:
    """Check every byte and every reference, and list what is damaged.

    With --json and nothing to list, one object tells what was checked, with "problems": 0. A repair that could not
    save everything ends with status 6, and names what is lost.
    """
    if asked.repair:
        report = Archive.repair(context.settings)
        missing = [f"lost: {sentence}" for sentence in report.lost] + [f"not read: {name}" for name in report.unread]
        said = f"the archive is sound again, but {counted(len(missing), 'part')} of it could not be saved"
        return Value(
            report, [Damaged(f"{said}; restore a backup if there is one")] if missing else (), "\n".join(missing)
        )
    faults: list[LetopisError] = []
    answer: Rows[VerifyProblem] = Rows((), faults=faults)
    answer.rows = _problems(context, faults, answer)
    return answer


def _problems(
    context: LocalContext, faults: list[LetopisError], answer: Rows[VerifyProblem]
) -> Iterator[VerifyProblem]:
    """Problems as they are found; what sums them up is known at the end."""
    count = 0
    with context.open_archive() as archive:
        totals = cache(archive.stats)  # asked once the catalogue is known to be readable
        for problem in archive.verify(lambda done: context.progress.show(done, "contents", totals().contents)):
            count += 1
            yield VerifyProblem(problem.where, problem.what)
        found = totals()
    if count:
        faults.append(Damaged(f"{count} problems found; 'letopis verify --repair' keeps what can be kept"))
    else:
        answer.remark = (
            f"no problems found: {counted(found.versions, 'version')} of {counted(found.documents, 'document')}, "
            f"{found.pack_bytes} bytes of packs"
        )
        answer.none = SoundArchive(0, found.documents, found.versions, found.contents, found.pack_bytes)


@operation("verify_archive", right=OWN, step="verify", listed="problems", element="problem")
def verify_archive(context: Context, asked: NoParameters) -> Rows[VerifyProblem]:
    """Check every byte and every reference of the archive, and list what is damaged."""
    found = []
    totals = cache(context.archive.stats)
    for problem in context.archive.verify(lambda done: context.steps("contents", totals().contents)(done)):
        found.append(VerifyProblem(problem.where, problem.what))
        context.raise_if_cancelled()
    return Rows(found)


# Compact


class CompactCommand(Parameters):
    """How thoroughly."""

    quick: bool = parameter("Only new versions, at about the cost of storing them again.", default=False)


def _compact_sentence(report: CompactReport) -> str:
    saved = report.bytes_before - report.bytes_after
    parts = [counted(report.documents, "document"), f"{counted(report.moved, 'content')} rewritten"]
    parts += [f"{counted(report.dropped_versions, 'version')} dropped"] if report.dropped_versions else []
    parts.append(f"{report.bytes_after} bytes of packs")
    if saved < 0:
        parts.append(f"{-saved} more than before, so that newest versions that were slow to read are fast")
    else:
        parts.append(f"{saved} bytes freed" if saved else "nothing to free")
    return ", ".join(parts)


@operation(
    "compact", right=OWN, verb="compact", step="compact", creates=False, on_cluster=True, audited="compacted",
    subject=lambda asked: "quick" if asked.quick else "full", sentence=_compact_sentence,
    examples=("letopis compact", "letopis compact --quick", "letopis compact --cluster tcp://scheduler.example:8786"),
)  # fmt: skip
def compact(context: Context, asked: CompactCommand) -> Value[CompactReport]:
    """Recompress old versions, apply retention, free space. Ctrl-C stops; the next run does the rest."""
    archive, stop = context.archive, context.progress.cancelled
    documents = archive.stats().documents

    def progress(done: int) -> None:
        context.progress.show(done, "documents", documents)

    with spread_over(archive.settings, where_shared=True) as workers:
        if workers is None:
            report = archive.compact(effort="quick" if asked.quick else "full", progress=progress, stop=stop)
        else:
            report = compact_jointly(archive, workers, "quick" if asked.quick else "full", progress, stop)
    if stop():
        raise Cancelled("stopped; what was compacted stays compacted, and the next run continues")
    return Value(report)


# Doctor

_LEAST_FREE = 200 * 1024 * 1024
_EXTRAS = {
    "arc": "warcio", "cluster": "distributed", "docs-formats": "pypdfium2", "fast": "uvloop",
    "mcp": "mcp", "notify": "apprise", "parquet": "pyarrow", "postgres": "psycopg", "s3": "obstore",
}  # fmt: skip
_PACKAGES = {
    "letopis-codecs": "letopis_codecs", "letopis-demo": "letopis_demo", "letopis-fast": "letopis_fast.pages",
    "letopis-migrate": "letopis_migrate",
}  # fmt: skip


class DoctorFinding(NamedTuple):
    """One thing that was checked. `ok` None: not required, for information."""

    name: str
    ok: bool | None
    detail: str


_HUNSPELL_FOLDERS = (Path("/usr/share/hunspell"), Path("/usr/share/myspell/dicts"), Path("/Library/Spelling"))


def _finding_sentence(finding: DoctorFinding) -> str:
    mark = {True: "ok", False: "WRONG", None: "-"}[finding.ok]
    return f"{mark:6} {finding.name:15} {finding.detail}"


@operation(
    "doctor", right=OWN, verb="doctor", sentence=_finding_sentence, examples=("letopis doctor", "letopis doctor --json")
)
def doctor(context: LocalContext, asked: NoParameters) -> Rows[DoctorFinding]:
    """Check this installation: Python, libraries, settings, archive, disk, optional parts."""
    findings = list(_findings(context.settings))
    wrong = [finding.name for finding in findings if finding.ok is False]
    faults = [NotReady(f"{', '.join(wrong)}: problem found; fix it and run this again")] if wrong else []
    return Rows(findings, faults=faults)


def _findings(settings: Settings) -> Iterator[DoctorFinding]:
    folder = Path(settings.archive.path)
    yield DoctorFinding("python", sys.version_info >= (3, 11), sys.version.split()[0])
    yield DoctorFinding("sqlite", sqlite3.sqlite_version_info >= (3, 35), sqlite3.sqlite_version)
    yield _libcurl()
    yield _folder(folder)
    yield _privacy(folder)
    free = shutil.disk_usage(_existing(folder)).free
    yield DoctorFinding("disk", free > _LEAST_FREE, f"{free / 1e9:.1f} GB free")
    yield _catalogue(settings)
    yield from _dictionaries(settings)
    yield _browser(settings)
    yield from (_optional(extra, module, f"letopis[{extra}]") for extra, module in _EXTRAS.items())
    yield from (_optional(package, module, package) for package, module in _PACKAGES.items())


def _dictionaries(settings: Settings) -> Iterator[DoctorFinding]:
    """Hunspell dictionaries of the system for languages whose word forms are joined, and whether they are used."""
    search = settings.search
    used = {text.partition("=")[0]: text.partition("=")[2] for text in search.affixes}
    for language in search.languages:
        files = [file for folder in _HUNSPELL_FOLDERS for file in folder.glob(f"{language}*.aff")]
        installed = sorted(files, key=lambda file: (file.stem.lower() != f"{file.stem[:2]}_{file.stem[:2]}", file.name))
        name = f"hunspell {language}"
        if language in used:
            exists = Path(used[language]).is_file()
            yield DoctorFinding(name, exists, used[language] + (" is used" if exists else " is missing"))
        elif installed:
            yield DoctorFinding(name, None, f'installed, not used; add "{language}={installed[0]}" to search.affixes')


def _libcurl() -> DoctorFinding:
    version = " ".join(pycurl.version.split()[:2])
    https = "https" in pycurl.version_info()[8]
    return DoctorFinding("libcurl", https, version + (", https" if https else ", without https"))


def _browser(settings: Settings) -> DoctorFinding:
    try:
        return DoctorFinding("browser", True, find_browser(settings.fetch.chromium))
    except MissingExtra as error:
        return DoctorFinding("browser", None, str(error))


def _optional(name: str, module: str, package: str) -> DoctorFinding:
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:  # the package that the module would be in
        found = False
    return DoctorFinding(name, True if found else None, "installed" if found else f"pip install {package}")


def _existing(folder: Path) -> Path:
    return next(path for path in [folder.absolute(), *folder.absolute().parents] if path.exists())


def _folder(folder: Path) -> DoctorFinding:
    place = _existing(folder)
    if os.access(place, os.W_OK):
        return DoctorFinding("archive", True, f"{folder}")
    if os.access(folder / "catalogue.sqlite", os.R_OK):
        return DoctorFinding("archive", None, f"{folder} is read-only")
    return DoctorFinding("archive", False, f"{place} cannot be written; choose another --archive")


_SECRET_FILES = ("catalogue.sqlite", "cookies.txt")


def exposed_files(folder: Path) -> list[Path]:
    """Files with secrets that other users of this machine can read, as earlier releases left them."""
    found = [path for name in _SECRET_FILES if (path := folder.absolute() / name).is_file()]
    return [path for path in found if any(_is_open(path, 0o1 << shift, 0o4 << shift) for shift in (0, 3))]


def _is_open(path: Path, enter: int, read: int) -> bool:
    """Whether one kind of others, the group or everybody, may read a file and enter all folders above it."""
    return bool(path.stat().st_mode & read) and all(above.stat().st_mode & enter for above in path.parents)


def exposure_warning(folder: Path) -> str:
    """What to do about it; empty where nothing is exposed."""
    names = ", ".join(path.name for path in exposed_files(folder))
    return f"other users of this machine can read {names}; run 'chmod -R go= {folder}'" if names else ""


def _privacy(folder: Path) -> DoctorFinding:
    warning = exposure_warning(folder)
    return DoctorFinding("privacy", not warning, warning or "nobody else on this machine can read its secrets")


def _catalogue(settings: Settings) -> DoctorFinding:
    if not settings.database.url and not holds_archive(Path(settings.archive.path)):
        return DoctorFinding("catalogue", None, "no archive yet; 'letopis init' makes one")
    try:
        with Archive.open(settings) as archive:
            return DoctorFinding("catalogue", True, f"{archive.stats().versions} versions")
    except LetopisError as error:
        return DoctorFinding("catalogue", False, shell_words(error))


class BackupCommand(Parameters):
    """Where to back up."""

    folder: str = parameter(
        "Folder of the backup, best on another disk, or s3://bucket/prefix.", argument=True, metavar="DIR|s3://…"
    )


def _backup_sentence(report: BackupReport) -> str:
    versions, packs = counted(report.versions, "version"), counted(report.packs_added, "pack")
    return f"backup {report.serial}: {versions}; {packs} copied, checked"


@operation(
    "backup", right=OWN, verb="backup", creates=False, sentence=_backup_sentence,
    examples=("letopis backup /mnt/backup/archive", "letopis backup s3://backups/archive"),
)  # fmt: skip
def backup(context: Context, asked: BackupCommand) -> Value[BackupReport]:
    """Bring a backup up to date: everything at one moment, accounts too; only new packs are copied."""
    return Value(back_up(context.archive, asked.folder, context.counted_progress))


class RestoreCommand(Parameters):
    """Which backup."""

    folder: str = parameter("Folder of the backup, or s3://bucket/prefix.", argument=True, metavar="DIR|s3://…")


def _restore_sentence(report: RestoreReport) -> str:
    return f"restored the archive of {report.time}: {counted(report.versions, 'version')}, every byte checked"


@operation(
    "restore", right=OWN, verb="restore", sentence=_restore_sentence,
    examples=("letopis restore /mnt/backup/archive --archive /srv/archive",),
)  # fmt: skip
def restore(context: LocalContext, asked: RestoreCommand) -> Value[RestoreReport]:
    """Make an empty archive what a backup holds, and check every byte."""
    return Value(restore_archive(asked.folder, context.settings, context.counted_progress))
