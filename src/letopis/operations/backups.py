"""An archive backed up to a folder or an object store, and put back from there."""

from __future__ import annotations

from letopis.archive import OWN
from letopis.archive.backups import BackupReport, RestoreReport, back_up
from letopis.archive.backups import restore as restore_archive
from letopis.model.printing import counted
from letopis.operations.answers import Value
from letopis.operations.context import Context, LocalContext
from letopis.operations.operation import operation
from letopis.operations.parameters import Parameters, parameter


class BackupCommand(Parameters):
    """Where to."""

    folder: str = parameter(
        "Folder of the backup, best on another disk, or s3://bucket/prefix.", argument=True, metavar="DIR|s3://…"
    )


def _backup_sentence(report: BackupReport) -> str:
    versions, packs = counted(report.versions, "version"), counted(report.packs_added, "pack")
    return f"backup {report.serial}: {versions}; {packs} copied, checked"


@operation(
    "backup",
    right=OWN,
    verb="backup",
    creates=False,
    sentence=_backup_sentence,
    examples=("letopis backup /mnt/backup/archive", "letopis backup s3://backups/archive"),
)
def backup(context: Context, asked: BackupCommand) -> Value[BackupReport]:
    """Bring a backup up to date: everything at one moment, accounts too; only new packs are copied."""
    return Value(back_up(context.archive, asked.folder, context.counted_progress))


class RestoreCommand(Parameters):
    """From where."""

    folder: str = parameter("Folder of the backup, or s3://bucket/prefix.", argument=True, metavar="DIR|s3://…")


def _restore_sentence(report: RestoreReport) -> str:
    return f"restored the archive of {report.time}: {counted(report.versions, 'version')}, every byte checked"


@operation(
    "restore",
    right=OWN,
    verb="restore",
    sentence=_restore_sentence,
    examples=("letopis restore /mnt/backup/archive --archive /srv/archive",),
)
def restore(context: LocalContext, asked: RestoreCommand) -> Value[RestoreReport]:
    """Make an empty archive what a backup holds, and check every byte."""
    return Value(restore_archive(asked.folder, context.settings, context.counted_progress))
