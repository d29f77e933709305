"""WACZ in: all WARC files of the ZIP, each compared with its digest first."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from letopis.archive import Archive
from letopis.errors import Damaged
from letopis.exchange.captures import import_captures
from letopis.exchange.sources import ImportReport
from letopis.exchange.warc_import import warc_captures
from letopis.exchange.warc_records import WARC_SUFFIXES

_PIECE = 1024 * 1024
_MOST_FACTS = 64 * 1024 * 1024
_BROKEN = (zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError)


def is_wacz(file: Path) -> bool:
    """Whether a file is a ZIP, whatever it is called."""
    return file.is_file() and zipfile.is_zipfile(file)


def import_wacz(
    archive: Archive, file: Path, report: ImportReport, progress: Callable[[int], None] = lambda done: None
) -> None:
    """Takes every WARC file in; a member that is damaged or missing is named, and what can be read of it comes in."""
    try:
        with zipfile.ZipFile(file) as package:
            digests = _digests(package, file.name, report)
            names = list(_warcs(package, digests, file.name, report))
            if not names:
                report.refuse("there is no WARC file in it", file.name)
            for name in names:
                _import_member(archive, package, name, digests.get(name, ""), f"{file.name} {name}", report, progress)
    except zipfile.BadZipFile as error:
        raise Damaged(f"{file} is no sound ZIP file ({error}); fetch it again") from None


def _digests(package: zipfile.ZipFile, where: str, report: ImportReport) -> dict[str, str]:
    """Digests of the members by their path, as `datapackage.json` lists them; empty when it does not."""
    text = _read(package, "datapackage.json")
    if text is None:
        report.refuse("it has no datapackage.json; its files were taken without a check", where)
        return {}
    proof = _object(_read(package, "datapackage-digest.json") or b"{}").get("hash")
    if proof and not _fits(hashlib.new(_algorithm(str(proof)), text).hexdigest(), str(proof)):
        report.refuse("datapackage.json is not the one that its digest was made of", where)
    listed = _object(text).get("resources")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    return {str(row.get("path")): str(row.get("hash") or "") for row in rows}


def _warcs(package: zipfile.ZipFile, digests: dict[str, str], where: str, report: ImportReport) -> Iterator[str]:
    """The WARC files, in the order of the ZIP; those that are listed and not there are named."""
    present = package.namelist()
    for name in digests:
        if name.endswith((*WARC_SUFFIXES, ".wacz")) and name not in present:
            report.refuse("it is listed in datapackage.json and not there", f"{where} {name}")
    for name in present:
        if name.endswith(".wacz"):
            report.refuse("a WACZ inside a WACZ is not read; take it out and import it", f"{where} {name}")
        elif name.endswith(WARC_SUFFIXES):
            if digests and name not in digests:
                report.refuse("it is not listed in datapackage.json; taken without a check", f"{where} {name}")
            yield name


def _import_member(
    archive: Archive, package: zipfile.ZipFile, name: str, digest: str, where: str, report: ImportReport,
    progress: Callable[[int], None],
) -> None:  # fmt: skip
    with _copied(package, name, digest, where, report) as copy:
        import_captures(archive, warc_captures(copy, report), where, report, progress)


@contextmanager
def _copied(package: zipfile.ZipFile, name: str, digest: str, where: str, report: ImportReport) -> Iterator[Path]:
    """A member as a file, which readers take faster than a stream; its digest is made on the way."""
    ending = next(ending for ending in sorted(WARC_SUFFIXES, key=len, reverse=True) if name.endswith(ending))
    with tempfile.NamedTemporaryFile(suffix=ending) as copy:
        found = hashlib.new(_algorithm(digest))
        try:
            with package.open(name) as stream:
                _copy(stream, copy, found.update, _most(package.getinfo(name)))
        except _BROKEN as error:
            report.refuse(f"it is damaged ({error}); what could be read came in", where)
        else:
            if digest and not _fits(found.hexdigest(), digest):
                report.refuse("its digest is another one; what could be read came in", where)
        copy.flush()
        yield Path(copy.name)


def _most(member: zipfile.ZipInfo) -> int:
    """How far a member may grow: more than a hundredfold is a trap, not a WARC file."""
    return 100 * member.compress_size + _MOST_FACTS


def _copy(source: IO[bytes], target: IO[bytes], update: Callable[[bytes], None], most: int) -> None:
    while piece := source.read(_PIECE):
        most -= len(piece)
        if most < 0:
            raise zipfile.BadZipFile("it unpacks to more than a hundred times its size")
        update(piece)
        target.write(piece)


def _algorithm(digest: str) -> str:
    name = digest.partition(":")[0].lower().replace("-", "")
    return name if name in ("md5", "sha1", "sha256", "sha512") else "sha256"


def _fits(found: str, listed: str) -> bool:
    return listed.rpartition(":")[2].lower() == found


def _read(package: zipfile.ZipFile, name: str) -> bytes | None:
    try:
        with package.open(name) as stream:
            return stream.read(_MOST_FACTS)
    except KeyError:
        return None
    except _BROKEN:
        return b""


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
