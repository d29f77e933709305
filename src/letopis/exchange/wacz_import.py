"""WACZ in: all WARC files of the ZIP, each compared with its digest first; and packages of several WACZ, as a ZIP
that holds them or as a list of files beside it.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from letopis.archive import Archive
from letopis.archive.outside_values import parse_json
from letopis.errors import Damaged
from letopis.exchange.captures import import_captures
from letopis.exchange.page_looks import page_time, web_url
from letopis.exchange.sources import ImportReport, read_whole
from letopis.exchange.warc_import import warc_captures
from letopis.exchange.warc_records import WARC_SUFFIXES, page_id

_PIECE = 1024 * 1024
_PACKAGE = ".wacz"
_ENDINGS = (*WARC_SUFFIXES, _PACKAGE)
_OTHER_DIGEST = "its digest differs; what could be read was imported"
_MOST_FACTS = 64 * 1024 * 1024
_MOST_LINE = 4 * 1024 * 1024
_MOST_DEPTH = 4
"""Packages inside packages; more is a trap."""
_MULTI = "multi-wacz-package"
_BROKEN = (zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError)


def is_wacz(file: Path) -> bool:
    """Whether a file is a ZIP, whatever it is called."""
    return file.is_file() and zipfile.is_zipfile(file)


def is_wacz_list(head: bytes) -> bool:
    """Whether a file begins like a list of several WACZ files."""
    return head.startswith(b"{") and f'"{_MULTI}"'.encode() in head


def import_wacz(
    archive: Archive, file: Path, report: ImportReport, progress: Callable[[int], None] = lambda done: None
) -> None:
    """Imports every WARC file; a member that is damaged or missing is named, and what can be read of it is imported."""
    if is_wacz(file):
        _import_package(archive, file, file.name, report, progress, _MOST_DEPTH)
        return
    for name, digest in _listed_packages(file, report):
        part = (file.parent / name).resolve()
        if not part.is_relative_to(file.parent.resolve()) or not is_wacz(part):
            report.refuse("it is no WACZ file beside the list; fetch it there", f"{file.name} {name}")
            continue
        with part.open("rb") as stream:
            found = hashlib.file_digest(stream, _algorithm(digest)).hexdigest()
        if digest and not _fits(found, digest):
            report.refuse(_OTHER_DIGEST, f"{file.name} {name}")
        _import_package(archive, part, f"{file.name} {name}", report, progress, _MOST_DEPTH)


def _listed_packages(file: Path, report: ImportReport) -> Iterator[tuple[str, str]]:
    """Paths and digests of the packages that a list names."""
    document = _object(read_whole(file, _MOST_FACTS))
    listed = document.get("resources")
    if document.get("profile") != _MULTI or not isinstance(listed, list):
        report.refuse("there is no WARC file in it", file.name)
        return
    for row in listed:
        if isinstance(row, dict):
            yield str(row.get("path") or row.get("name") or ""), str(row.get("hash") or "")


def _import_package(
    archive: Archive, file: Path, where: str, report: ImportReport, progress: Callable[[int], None], depth: int
) -> None:
    try:
        with zipfile.ZipFile(file) as package:
            digests = _digests(package, where, report)
            names = list(_members(package, digests, where, report))
            if not names:
                report.refuse("there is no WARC file in it", where)
            for name in names:
                with _copied(package, name, digests.get(name, ""), f"{where} {name}", report) as copy:
                    if not name.endswith(_PACKAGE):
                        import_captures(archive, warc_captures(copy, report), f"{where} {name}", report, progress)
                    elif depth and is_wacz(copy):
                        _import_package(archive, copy, f"{where} {name}", report, progress, depth - 1)
                    else:
                        report.refuse("not a valid WACZ file, or nested too deeply", f"{where} {name}")
            for name in package.namelist():
                if name.startswith("pages/") and name.endswith(".jsonl"):
                    _take_pages(package, name, f"{where} {name}", report)
    except zipfile.BadZipFile as error:
        raise Damaged(f"{where} is not a valid ZIP file ({error}); fetch it again") from None


def _take_pages(package: zipfile.ZipFile, name: str, where: str, report: ImportReport) -> None:
    """Which pages the looks are at whose records came, and their texts; lists of ours say it beside the records."""
    left = _most(package.getinfo(name))
    try:
        with package.open(name) as lines:
            while (line := lines.readline(_MOST_LINE)) and left > 0:
                left -= len(line)
                said = _object(line)
                ident, url, time = said.get("id"), said.get("url"), said.get("ts")
                if isinstance(ident, str) and isinstance(url, str) and ident != page_id(url, str(time)):
                    text = str(said.get("text") or "")
                    report.looks.name_page(ident, web_url(url), page_time(time), text, report.refuse)
    except _BROKEN as error:
        report.refuse(f"it is damaged ({error}); what could be read was imported", where)


def _digests(package: zipfile.ZipFile, where: str, report: ImportReport) -> dict[str, str]:
    """Digests of the members by their path, as `datapackage.json` lists them; empty when it does not."""
    text = _read(package, "datapackage.json")
    if text is None:
        report.refuse("it has no datapackage.json; its files were imported without a check", where)
        return {}
    proof = _object(_read(package, "datapackage-digest.json") or b"{}").get("hash")
    if proof and not _fits(hashlib.new(_algorithm(str(proof)), text).hexdigest(), str(proof)):
        report.refuse("datapackage.json does not match its digest", where)
    listed = _object(text).get("resources")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    return {str(row.get("path")): str(row.get("hash") or "") for row in rows}


def _members(package: zipfile.ZipFile, digests: dict[str, str], where: str, report: ImportReport) -> Iterator[str]:
    """The WARC and WACZ files, in the order of the ZIP; those that are listed and not there are named."""
    present = dict.fromkeys(package.namelist())
    for name in digests:
        if name.endswith(_ENDINGS) and name not in present:
            report.refuse("it is listed in datapackage.json but missing", f"{where} {name}")
    for name in present:
        if name.endswith(_ENDINGS):
            if digests and name not in digests:
                report.refuse("it is not listed in datapackage.json; imported without a check", f"{where} {name}")
            yield name


@contextmanager
def _copied(package: zipfile.ZipFile, name: str, digest: str, where: str, report: ImportReport) -> Iterator[Path]:
    """A member as a file, which readers take faster than a stream; its digest is made on the way."""
    ending = next(ending for ending in sorted(_ENDINGS, key=len, reverse=True) if name.endswith(ending))
    with tempfile.NamedTemporaryFile(suffix=ending) as copy:
        found = hashlib.new(_algorithm(digest))
        try:
            with package.open(name) as stream:
                _copy(stream, copy, found.update, _most(package.getinfo(name)))
        except _BROKEN as error:
            report.refuse(f"it is damaged ({error}); what could be read was imported", where)
        else:
            if digest and not _fits(found.hexdigest(), digest):
                report.refuse(_OTHER_DIGEST, where)
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
        found = parse_json(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
