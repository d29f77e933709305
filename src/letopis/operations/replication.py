"""Archives replicated by plain files: published, cloned, updated, detached."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from letopis.archive import OWN
from letopis.errors import UsageError
from letopis.exchange.replica import CloneReport, CloneSelection, PublishReport, PullOptions, detach
from letopis.exchange.replica import clone as clone_archive
from letopis.exchange.replica import publish as publish_archive
from letopis.exchange.replica import pull as pull_archive
from letopis.exchange.replica.publication import GRACE_SECONDS
from letopis.model import to_millis
from letopis.model.printing import counted
from letopis.operations.context import Context, LocalContext
from letopis.operations.operation import Value, operation
from letopis.operations.parameters import Parameters, parameter, require_span
from letopis.tuples import NamedTuple

_KEY = "File with the secret that signs releases."


class PublishCommand(Parameters):
    """Where to publish, and how."""

    folder: str = parameter("Folder that a static web server serves.", argument=True, metavar="DIR")
    key: bytes | None = parameter(_KEY, default=None, metavar="FILE")
    grace: timedelta | None = parameter("How long to keep files of older releases; default: 1h.", default=None)


def _held(report: PublishReport | CloneReport) -> str:
    return f"{counted(report.versions, 'version')} of {counted(report.documents, 'document')}"


def _publish_sentence(report: PublishReport) -> str:
    files = f"{counted(report.packs_added, 'file')}, {report.bytes_added} bytes of packs added"
    added = files if report.new else "nothing new"
    return f"release {report.serial}: {_held(report)}; {added}"


@operation(
    "publish", right=OWN, verb="publish", creates=False, sentence=_publish_sentence,
    examples=("letopis publish /var/www/archive", "letopis publish /var/www/archive --key secret --json"),
)  # fmt: skip
def publish(context: Context, asked: PublishCommand) -> Value[PublishReport]:
    """Publish the archive to DIR as files for any static web server; only new files are written."""
    grace = GRACE_SECONDS if asked.grace is None else asked.grace.total_seconds()
    documents = context.archive.stats().documents
    return Value(
        publish_archive(
            context.archive, Path(asked.folder), key=_secret(asked.key), grace=grace,
            progress=lambda done: context.progress.show(done, "documents", documents),
        )
    )  # fmt: skip


class CloneCommand(Parameters):
    """Which archive, into which folder, and which part of it."""

    url: str = parameter("Where the archive is published: http, https, file: or a folder.", argument=True)
    folder: str = parameter("Folder of the clone.", argument=True, metavar="DIR")
    site: str = parameter("Only this host.", default="", metavar="SITE")
    start: datetime | None = parameter(
        "Fetch contents valid from this time on; others on demand.", default=None, named="from"
    )
    to: datetime | None = parameter("Fetch contents up to this time; others on demand.", default=None, ends_day=True)
    lazy: bool = parameter("Fetch each content when it is first read.", default=False)
    key: bytes | None = parameter(_KEY, default=None, metavar="FILE")

    def __post_init__(self) -> None:
        require_span(self.start, self.to)


def _clone_sentence(report: CloneReport | DetachedClone) -> str:
    if isinstance(report, DetachedClone):
        return f"{report.archive} is now an independent archive"
    state = f"already at release {report.serial}" if report.up_to_date else f"updated to release {report.serial}"
    rest = f", {report.absent} contents to be fetched when read" if report.absent else ""
    wire = report.bytes_downloaded + report.bytes_sent
    return f"{state}: {_held(report)}{rest}; {wire} bytes on the wire, {counted(report.requests, 'request')}"


@operation(
    "clone", right=OWN, verb="clone", sentence=_clone_sentence,
    examples=(
        "letopis clone https://example.org/archive/ copy",
        "letopis clone https://example.org/archive/ news --site news.example.org --from 2026-01-01",
        "letopis clone /mnt/disk/archive copy --lazy",
    ),
)  # fmt: skip
def clone(context: LocalContext, asked: CloneCommand) -> Value[CloneReport]:
    """Make DIR a copy of the archive published at URL (http, https, file: or a folder). Run again to resume."""
    selection = CloneSelection(
        asked.site,
        None if asked.start is None else to_millis(asked.start),
        None if asked.to is None else to_millis(asked.to),
        asked.lazy,
    )
    return Value(
        clone_archive(
            asked.url, Path(asked.folder), selection, context.settings, key=_secret(asked.key),
            progress=partial(context.counted_progress, what="bytes"),
        )
    )  # fmt: skip


class PullCommand(Parameters):
    """Which clone, and with which options."""

    folder: str = parameter("Folder of the clone.", argument=True, metavar="DIR")
    allow_older: bool = parameter("Accept an older release than the present one.", default=False)
    fill: bool = parameter("Fetch all contents that are still missing.", default=False)
    repack: bool = parameter("Fetch packs that the origin has compacted, to free space.", default=False)
    detach: bool = parameter("Stop following the origin: DIR becomes an independent archive.", default=False)
    key: bytes | None = parameter(_KEY, default=None, metavar="FILE")


class DetachedClone(NamedTuple):
    """A clone that no longer follows its origin."""

    archive: str
    detached: bool


@operation(
    "pull", right=OWN, verb="pull", sentence=_clone_sentence,
    examples=(
        "letopis pull copy",
        "letopis pull copy --fill",
        "letopis pull copy --detach",
        "letopis pull copy --json",
    ),
)  # fmt: skip
def pull(context: LocalContext, asked: PullCommand) -> Value[CloneReport] | Value[DetachedClone]:
    """Bring the clone DIR up to date; only differences are transferred."""
    if asked.detach:
        if asked.fill or asked.repack or asked.allow_older:
            raise UsageError("pull and detach are separate steps; pull first")
        detach(Path(asked.folder), context.settings)
        return Value(DetachedClone(asked.folder, True))
    options = PullOptions(asked.allow_older, asked.fill, asked.repack, _secret(asked.key))
    return Value(
        pull_archive(
            Path(asked.folder), options, context.settings, progress=partial(context.counted_progress, what="bytes")
        )
    )


def _secret(key: bytes | None) -> bytes | None:
    if key is not None and not key.strip():
        raise UsageError("the file with the key is empty; put a secret into it")
    return None if key is None else key.strip()
