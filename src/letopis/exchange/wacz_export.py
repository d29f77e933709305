"""WACZ 1.1.1 out: WARC files, their index and a list of pages in one ZIP, deterministic and streamed.

Order inside: the WARC files, the compressed index with its own small index, the pages, `datapackage.json` with a
digest of each, and the digest of that.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO, cast

from letopis.archive import Archive, identify
from letopis.archive.captures import last_check_time
from letopis.archive.cluster import PieceRunner
from letopis.binary import atomic_file
from letopis.exchange.cdx import RecordLocation, SortedLines, record_line, resource_line
from letopis.exchange.exported_places import ExportIndexWriter
from letopis.exchange.selection import ExportSelection
from letopis.exchange.warc_export import SOFTWARE, ExportedRecord, exported_records, info_record, is_listed_capture
from letopis.exchange.warc_records import PAGE_ID, TEXT, WarcPlace, WarcRecord, WarcWriter, gzip_member, page_id
from letopis.extract import read_page
from letopis.extract.extraction import HTML_TYPES, bare_type
from letopis.model import Check, Outcome, Page, header, rfc3339, to_millis

_MOST_TEXT = 1024 * 1024


class WaczPageList:
    """Takes records URL by URL; each version of a page gets its title, the newest of a URL its text too.

    Lines go to a file that the caller gives, since there may be millions.
    """

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._waiting: tuple[Check, Page, str] | None = None
        self._shown = ""
        self.main: Check | None = None
        self._say({"format": "json-pages-1.0", "id": "pages", "title": "All Pages", "hasText": True})

    def take(self, exported: ExportedRecord) -> None:
        """Notes a record when it holds a page."""
        check = exported.check
        if exported.record.kind == "resource" and self._waiting is not None and self._waiting[0].url == check.url:
            self._take_shown(exported)
        if exported.record.kind != "response" or check.outcome not in (Outcome.NEW, Outcome.CHANGED):
            return
        if bare_type(check.content_type) not in HTML_TYPES:
            return
        if self.main is None:
            self.main = check
        found = read_page(exported.body, check.url, check.headers, detect_language=False)
        self._flush(newest=self._waiting is not None and self._waiting[0].url != check.url)
        self._waiting = (check, found, header(exported.record.headers, PAGE_ID.lower()))

    def _take_shown(self, exported: ExportedRecord) -> None:
        """The text as a browser showed it says more than what the server sent."""
        address = header(exported.record.headers, "warc-target-uri")
        if address.startswith(TEXT) and self._waiting is not None:
            self._shown = exported.body.decode("utf-8", "replace")

    def close(self) -> None:
        """Writes the last line; nothing may be taken any more."""
        self._flush(newest=True)

    def _flush(self, *, newest: bool) -> None:
        if self._waiting is None:
            return
        check, found, ident = self._waiting
        text, self._waiting, self._shown = self._shown or found.text, None, ""
        moment = rfc3339(check.checked_at)
        line = {"id": ident or page_id(check.url, moment), "url": check.url, "ts": moment}
        line["title"] = found.title or check.url
        if newest:
            line["text"] = text[:_MOST_TEXT]
        self._say(line)

    def _say(self, line: dict[str, object] | dict[str, str]) -> None:
        self._out.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


WACZ_VERSION = "1.1.1"
WARC_BYTES = 1024 * 1024 * 1024
"""A WARC file is closed when it has grown beyond this."""
BLOCK_LINES = 1024
"""Lines of the index that are compressed together; a reader fetches one such block for a look-up."""
_PIECE = 1024 * 1024


class WaczPackage:
    """Members of a ZIP file without times, with a digest of each."""

    def __init__(self, out: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_STORED)
        self.resources: list[dict[str, str | int]] = []

    @contextmanager
    def member(self, path: str, *, deflated: bool = False, size: int = 0) -> Iterator[BinaryIO]:
        """A member to be written in pieces; compressed data is stored unchanged.

        Only a `size` beyond 2 GiB makes it a ZIP64 member: the longer header of those, where nothing asks for
        it, keeps ReplayWeb.page from finding the contents.
        """
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = 0o644 << 16
        entry.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
        entry.file_size = size
        with self._zip.open(entry, "w") as stream:
            digesting = _Digesting(stream)
            yield cast(BinaryIO, digesting)
        name = path.rpartition("/")[2]
        self.resources.append({"name": name, "path": path, "hash": digesting.digest, "bytes": digesting.size})

    def close(self, facts: dict[str, object]) -> None:
        """Writes the description of everything, its digest, and the directory of the ZIP file."""
        text = json.dumps(facts | {"resources": list(self.resources)}, indent=2, ensure_ascii=False).encode()
        with self.member("datapackage.json", deflated=True) as out:
            out.write(text)
        proof = {"path": "datapackage.json", "hash": _sha256(text)}
        with self.member("datapackage-digest.json", deflated=True) as out:
            out.write(json.dumps(proof, indent=2).encode())
        self.release()

    def release(self) -> None:
        """Ends the ZIP file, be it complete or not."""
        self._zip.close()


class _Digesting:
    """Passes bytes on and remembers their digest and number."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._out.write(data)

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def export_wacz(
    archive: Archive,
    target: Path,
    selected: ExportSelection,
    progress: Callable[[int], None] = lambda done: None,
    spread: PieceRunner | None = None,
    *,
    warc_bytes: int = WARC_BYTES,
    places: ExportIndexWriter | None = None,
) -> int:
    """Writes the selected part to a file that is there whole or not at all; returns how many records.

    `places` takes where the captures lie.
    """
    with atomic_file(target) as out, tempfile.TemporaryFile() as text:
        package, index, pages = WaczPackage(out), _WaczIndex(places), WaczPageList(text)
        try:
            counted = _Counted(exported_records(archive, selected, spread), pages, progress)
            _write_warcs(package, counted, index, warc_bytes, info_record(last_check_time(archive)))
            _write_index(package, index.lines)
            pages.close()
            _write_file(package, "pages/pages.jsonl", text, deflated=True)
            package.close(_description(archive, selected, counted.newest, pages))
        finally:
            package.release()
            index.lines.close()
    return counted.count


class _Counted:
    """Lets records through, and keeps count of them, of their pages and of the newest time."""

    def __init__(self, records: Iterator[ExportedRecord], pages: WaczPageList, progress: Callable[[int], None]) -> None:
        self._records = records
        self._pages = pages
        self._progress = progress
        self._last: Check | None = None
        self._checks = 0
        self.count = 0
        self.newest = datetime(1970, 1, 1, tzinfo=UTC)

    def __iter__(self) -> Iterator[ExportedRecord]:
        return self

    def __next__(self) -> ExportedRecord:
        exported = next(self._records)
        self.count += 1
        self.newest = max(self.newest, exported.check.checked_at)
        self._pages.take(exported)
        self._checks += exported.check is not self._last
        self._last = exported.check
        self._progress(self._checks)
        return exported


def _write_warcs(
    package: WaczPackage, records: Iterator[ExportedRecord], index: _WaczIndex, most: int, info: WarcRecord
) -> None:
    """At least one file, also of an empty selection: the format asks for it."""
    first = next(records, None)
    number = 0
    while number == 0 or first is not None:
        name = f"data-{number:05}.warc.gz"
        index.enter(name)
        with package.member(f"archive/{name}") as out:
            writer = WarcWriter(out)
            writer.write(info)
            first = _fill(writer, first, records, index, most)
        number += 1


def _fill(
    writer: WarcWriter, first: ExportedRecord | None, records: Iterator[ExportedRecord], index: _WaczIndex, most: int
) -> ExportedRecord | None:
    """Writes records until the file is large enough; returns the first one of the next file."""
    exported = first
    while exported is not None and writer.size < most:
        index.take(exported, writer.write(exported.record))
        exported = next(records, None)
    return exported


class _WaczIndex:
    """The lines of the index of a package, and what the archive itself remembers of it."""

    def __init__(self, places: ExportIndexWriter | None) -> None:
        self.lines = SortedLines()
        self._places = places
        self._name = ""

    def enter(self, name: str) -> None:
        """What follows is in this WARC file."""
        self._name = name
        if self._places is not None:
            self._places.enter(name)

    def take(self, exported: ExportedRecord, place: WarcPlace) -> None:
        """Stores the place of a record, if it is a capture or a resource of one."""
        record, check, _ = exported
        if record.kind in ("response", "revisit"):
            self.lines.add(record_line(check, _digest(exported), RecordLocation(self._name, *place)))
        elif header(record.headers, "warc-target-uri").startswith("urn:"):
            self.lines.add(resource_line(check, record, RecordLocation(self._name, *place)))
        if self._places is not None and is_listed_capture(exported):
            self._places.add(check.url, to_millis(check.checked_at), *place)


def _digest(exported: ExportedRecord) -> str:
    """Of what the record carries; a redirect's check tells of the version that was current, not of its own body."""
    if exported.record.kind == "revisit" or exported.check.outcome in (Outcome.NEW, Outcome.CHANGED):
        return exported.check.digest
    return identify(exported.body).text


def _write_index(package: WaczPackage, index: SortedLines) -> None:
    """Blocks of lines, and a small index of where each of them begins."""
    heads = ['!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n']
    lines = iter(index)
    with tempfile.TemporaryFile() as blocks:
        while part := list(islice(lines, BLOCK_LINES)):
            block = gzip_member(b"".join(part))
            key = b" ".join(part[0].split(b" ", 2)[:2]).decode()
            place = {"offset": blocks.tell(), "length": len(block), "digest": _sha256(block)}
            heads.append(f"{key} {json.dumps(place | {'filename': 'index.cdx.gz'})}\n")
            blocks.write(block)
        _write_file(package, "indexes/index.cdx.gz", blocks)
    with package.member("indexes/index.idx", deflated=True) as out:
        out.write("".join(heads).encode())


def _write_file(package: WaczPackage, path: str, file: IO[bytes], *, deflated: bool = False) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    with package.member(path, deflated=deflated, size=size) as out:
        while piece := file.read(_PIECE):
            out.write(piece)


def _description(
    archive: Archive, selected: ExportSelection, newest: datetime, pages: WaczPageList
) -> dict[str, object]:
    """What `datapackage.json` says besides the files. Its time is that of the newest capture, not of the clock."""
    facts: dict[str, object] = {
        "profile": "data-package",
        "wacz_version": WACZ_VERSION,
        "title": selected.site or selected.project or archive.folder.resolve().name,
        "created": rfc3339(newest),
        "modified": rfc3339(newest),
        "software": SOFTWARE,
    }
    if pages.main is not None:
        facts |= {"mainPageUrl": pages.main.url, "mainPageDate": rfc3339(pages.main.checked_at)}
    return facts
