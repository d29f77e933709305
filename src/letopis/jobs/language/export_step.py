"""The step `export`: a part of the archive as one file of the job, in every format that the command line has."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

from lxml import etree

from letopis.errors import NotReady, UsageError
from letopis.exchange.cdxj_out import export_cdxj
from letopis.exchange.parquet_out import export_parquet
from letopis.exchange.selecting import Selected
from letopis.exchange.static import export_static
from letopis.exchange.wacz_out import export_wacz
from letopis.exchange.warc_out import export_warc
from letopis.exchange.warc_writer import Compression
from letopis.exchange.whole_file import whole_file
from letopis.jobs.language.markup import element
from letopis.jobs.language.running import Run, flag

_ENDINGS = {"gzip": ".warc.gz", "zstd": ".warc.zst", "none": ".warc"}
_DAWN = (1980, 1, 1, 0, 0, 0)
"""The date of everything in a zip file: the same export gives the same bytes."""


class Wanted(NamedTuple):
    """What one export was asked for."""

    run: Run
    target: Path
    selected: Selected
    compression: Compression

    def progress(self, done: int) -> None:
        """Goes on unless the job was stopped."""
        self.run.go_on()


def export_step(step: etree._Element, run: Run) -> bytes:
    """Writes a part of the archive to a file of the job; the result says where it lies."""
    kind, compression = step.get("kind", ""), cast(Compression, step.get("compression", "gzip"))
    target = _folder(run) / step.get("file", f"export{_ending(kind, compression)}")
    selected = Selected(
        step.get("site", ""), run.moment(step, "from"), run.moment(step, "to"), flag(step, "latest"),
        step.get("project", ""),
    )  # fmt: skip
    counts = KINDS[kind](Wanted(run, target, selected, compression))
    about = {"kind": kind, "file": _shown(target, run), **counts, "bytes": target.stat().st_size}
    return element("export", about).encode()


def _ending(kind: str, compression: Compression) -> str:
    if kind == "warc":
        return _ENDINGS[compression]
    return f".{kind}" if kind in ("wacz", "cdxj") else f".{kind}.zip"


def _shown(target: Path, run: Run) -> str:
    """Where a file lies in the archive; whoever reads the result need not know where the archive is."""
    inside = target.is_relative_to(run.archive.folder)
    return str(target.relative_to(run.archive.folder)) if inside else target.name


def _folder(run: Run) -> Path:
    folder = run.around.output
    if folder is None:
        raise UsageError("this job may write no files; leave <export> out or ask the owner of the archive")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"cannot make {folder}: {error.strerror}; check its permissions") from None
    return folder


def _warc(wanted: Wanted) -> dict[str, int]:
    with whole_file(wanted.target) as out:
        count = export_warc(wanted.run.archive, out, wanted.selected, wanted.compression, wanted.progress)
    return {"records": count}


def _cdxj(wanted: Wanted) -> dict[str, int]:
    with whole_file(wanted.target) as out:
        return {"records": export_cdxj(wanted.run.archive, out, wanted.selected, wanted.progress)}


def _wacz(wanted: Wanted) -> dict[str, int]:
    return {"records": export_wacz(wanted.run.archive, wanted.target, wanted.selected, wanted.progress)}


def _static(wanted: Wanted) -> dict[str, int]:
    with _zipped(wanted) as folder:
        return {"files": export_static(wanted.run.archive, folder, wanted.selected, wanted.progress).files}


def _parquet(wanted: Wanted) -> dict[str, int]:
    with _zipped(wanted) as folder:
        return export_parquet(wanted.run.archive, folder, wanted.selected, wanted.progress)


KINDS: dict[str, Callable[[Wanted], dict[str, int]]] = {
    "warc": _warc,
    "wacz": _wacz,
    "cdxj": _cdxj,
    "static": _static,
    "parquet": _parquet,
}
"""The kinds of the verb `export`; the schema knows the same."""


@contextmanager
def _zipped(wanted: Wanted) -> Iterator[Path]:
    """A folder that becomes the file when it is complete: a job's files are fetched one by one, without folders."""
    folder = wanted.target.with_name(f".{wanted.target.name}.parts")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
        with whole_file(wanted.target) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                wanted.run.go_on()
                _add(packed, file, str(file.relative_to(folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _add(packed: zipfile.ZipFile, file: Path, name: str) -> None:
    entry = zipfile.ZipInfo(name, _DAWN)
    entry.compress_type = zipfile.ZIP_STORED if file.suffix == ".parquet" else zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.file_size = file.stat().st_size
    with file.open("rb") as given, packed.open(entry, "w") as taken:
        shutil.copyfileobj(given, taken, 1 << 20)
