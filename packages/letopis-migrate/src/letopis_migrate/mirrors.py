"""Mirrors of wget and HTTrack: files with their addresses, and the headers where they were kept.

wget writes `host/path` below a folder; files do not tell their scheme, which is the one of `--url`, else https, and
their time is the `Date` that was saved, else the time of the file. HTTrack's `hts-cache/new.zip` names its members
by their addresses and keeps the headers in their local extra fields; `new.txt` has the time of day of each file, and
without a cache there is what HTTrack wrote into the pages: `Mirrored from`.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from letopis.errors import Damaged
from letopis.exchange.body_codings import MAX_BODY
from letopis.exchange.sources import ImportedCapture, ImportReport, SourceHints
from letopis.exchange.warc_records import is_warc_name, parse_response
from letopis.extract.metadata import read_date
from letopis.model import Headers, header
from letopis.tuples import NamedTuple
from letopis_migrate.folders import SourceFolder, content_type_header, file_url, iso_time

_HOST = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+|localhost)\.?(?:[:+][0-9]{1,5})?", re.IGNORECASE)
_SCHEMES = ("http", "https")
_KEPT = ".orig"


def is_wget_mirror(folder: Path) -> bool:
    """Whether a folder, or a folder in it, has the name of a host."""
    return bool(_HOST.fullmatch(folder.resolve().name)) or any(
        _is_host(entry) or (entry.name in _SCHEMES and any(map(_is_host, entry.iterdir())))
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.is_symlink()
    )


def _is_host(folder: Path) -> bool:
    return folder.is_dir() and _HOST.fullmatch(folder.name) is not None


def wget_captures(
    root: Path, hints: SourceHints, report: ImportReport, known: Callable[[str], bool] = lambda url: False
) -> Iterator[ImportedCapture]:
    """All files with an address; those whose address is `known` from a WARC beside them are passed over."""
    folder = SourceFolder(root, report)
    for path in folder.files():
        if is_warc_name(path) or (path.endswith(_KEPT) and folder.has(path.removesuffix(_KEPT))):
            continue
        url = _url(root, path, hints.url)
        if not url:
            report.refuse("it lies below no folder that is named like a host; give --url", path)
        elif known(url) or known(_other_scheme(url)):
            report.same += 1
        else:
            yield from _saved_captures(folder, path, url, report)


def _saved_captures(folder: SourceFolder, path: str, url: str, report: ImportReport) -> Iterator[ImportedCapture]:
    """The file as it was fetched: `-K` keeps it as `.orig` when links were converted."""
    kept = path + _KEPT if folder.has(path + _KEPT) else path
    body = folder.read(kept)
    if body is None:
        return
    status, headers, body = split_saved_head(body)
    date = _header_date(header(headers, "date")) or iso_time(folder.mtime(kept))
    yield ImportedCapture(url, date, status, headers or content_type_header(_bare(path), body), body, decoded=True)


def split_saved_head(body: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and the rest of a file that begins with the head of an answer; else 200 and none."""
    status, headers, rest = parse_response(body)
    return (status, headers, rest) if status and headers else (200, (), body)


def _header_date(text: str) -> str:
    moment = read_date(text)
    return moment.isoformat() if moment is not None else ""


def _url(root: Path, path: str, base: str) -> str:
    """The address of a file by its place; below `--url` when no folder is a host."""
    parts = path.split("/")
    scheme = parts.pop(0) if parts[0] in _SCHEMES and len(parts) > 2 else _scheme(base)
    if len(parts) > 1 and _HOST.fullmatch(parts[0]):
        host, rest = parts[0], "/".join(parts[1:])
    elif base.count("/") > 2:
        return _address(base if base.endswith("/") else base + "/", path)
    elif _HOST.fullmatch(root.resolve().name):
        host, rest = root.resolve().name, path
    else:
        return ""
    return _address(f"{scheme}://{host.replace('+', ':')}/", rest)


def _scheme(base: str) -> str:
    return "http" if base.startswith("http:") else "https"


def _other_scheme(url: str) -> str:
    return "http:" + url[6:] if url.startswith("https:") else "https:" + url[5:]


def _address(prefix: str, path: str) -> str:
    """The first question mark of a name begins the query."""
    name, mark, query = path.partition("?")
    return file_url(prefix, name) + mark + query.replace("#", "%23")


def _bare(path: str) -> str:
    return path.partition("?")[0]


_ZIP, _LIST, _LOG = "hts-cache/new.zip", "hts-cache/new.txt", "hts-log.txt"
_MOST_LIST = 256 * 1024 * 1024
_MOST_LOG = 1024 * 1024
_LOCAL = struct.Struct("<4s22xHH")
_LAUNCHED = re.compile(rb"launched on (\w+, \d+ \w+ \d{4} [\d:]{8}) at (\S+)")
_MIRRORED = re.compile(rb"<!-- Mirrored from (\S{1,2000}) by HTTrack [^\]]{1,200}\], ([^<>]{1,60}?) -->")
_BROKEN = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError)


class _ListLine(NamedTuple):
    """A line of `new.txt`: time of day, status, MIME type, address, local file."""

    clock: str
    status: str
    mime: str
    url: str
    file: str


def is_httrack(folder: Path) -> bool:
    """Whether HTTrack left its cache or its log here."""
    return (folder / "hts-cache").is_dir() or (folder / _LOG).is_file()


def httrack_captures(root: Path, hints: SourceHints, report: ImportReport) -> Iterator[ImportedCapture]:
    """From the cache when there is one, else from the list of files, else from the pages alone."""
    folder = SourceFolder(root, report)
    times = _FetchTimes(folder)
    lines = {line.url: line for line in _lines(folder)}
    if folder.has(_ZIP):
        yield from _from_zip(folder, root / _ZIP, lines, times, report)
    elif lines:
        for line in lines.values():
            yield from _from_line(folder, line, times, report)
    else:
        yield from _from_pages(folder, hints, times, report)


class _FetchTimes:
    """When files were fetched: the day of the launch with the clock of the list, in this machine's zone."""

    def __init__(self, folder: SourceFolder) -> None:
        head = folder.read(_LOG, _MOST_LOG) if folder.has(_LOG) else b""
        found = _LAUNCHED.search(head or b"")
        launched = parsedate(found[1].decode()) if found else None
        self.seed = found[2].decode("utf-8", "replace") if found else ""
        self._start = datetime(*launched[:6]) if launched else None
        written = max(folder.mtime(_ZIP), folder.mtime(_LIST), folder.mtime(_LOG))
        self._written = datetime.fromtimestamp(written, UTC)

    def at(self, clock: str) -> str:
        """A time of day of the list as a moment; without one, when the cache was written."""
        if self._start is None or not re.fullmatch(r"[0-2]\d:[0-5]\d:[0-5]\d", clock) or clock > "24":
            return self._written.isoformat()
        hours, minutes, seconds = map(int, clock.split(":"))
        moment = self._start.replace(hour=hours, minute=minutes, second=seconds)
        if moment < self._start:
            moment += timedelta(days=1)
        return moment.astimezone(UTC).isoformat()


def _from_zip(
    folder: SourceFolder, file: Path, lines: dict[str, _ListLine], times: _FetchTimes, report: ImportReport
) -> Iterator[ImportedCapture]:
    try:
        with zipfile.ZipFile(file) as cache, file.open("rb") as raw:
            for member in cache.infolist():
                line = lines.get(member.filename)
                capture = _member(folder, cache, raw, member, times.at(line.clock if line else ""), report)
                if capture is not None:
                    yield capture
    except zipfile.BadZipFile as error:
        raise Damaged(f"{file} is not a valid ZIP file ({error}); remove it to import the pages alone") from None


def _member(
    folder: SourceFolder,
    cache: zipfile.ZipFile,
    raw: IO[bytes],
    member: zipfile.ZipInfo,
    date: str,
    report: ImportReport,
) -> ImportedCapture | None:
    saved_headers = _saved_headers(raw, member)
    status = saved_headers.pop("x-statuscode", ("", "200"))[1]
    saved = saved_headers.pop("x-save", ("", ""))[1]
    in_cache = saved_headers.pop("x-in-cache", ("", "1"))[1] != "0"
    if not status.isdigit():
        report.refuse("no readable status", member.filename)
        return None
    body = _unzipped(cache, member, report) if in_cache else _local(folder, saved, report)
    if body is None:
        return None
    headers = tuple(pair for name, pair in saved_headers.items() if not name.startswith("x-"))
    return ImportedCapture(member.filename, date, int(status[:3]), headers, body, decoded=True)


def _saved_headers(raw: IO[bytes], member: zipfile.ZipInfo) -> dict[str, tuple[str, str]]:
    """Headers in the local extra field, by their lower-case names."""
    raw.seek(member.header_offset)
    head = raw.read(_LOCAL.size)
    if len(head) < _LOCAL.size:
        return {}
    _, name, extra = _LOCAL.unpack(head)
    raw.seek(name, 1)
    lines = (line.partition(":") for line in raw.read(extra).decode("utf-8", "surrogateescape").splitlines())
    return {name.strip().lower(): (name.strip(), value.strip()) for name, colon, value in lines if colon}


def _unzipped(cache: zipfile.ZipFile, member: zipfile.ZipInfo, report: ImportReport) -> bytes | None:
    """A member, read no further than the bound, whatever its size is said to be."""
    try:
        with cache.open(member) as stream:
            body = stream.read(MAX_BODY + 1)
    except _BROKEN as error:
        report.refuse(f"it is damaged ({error})", member.filename)
        return None
    if len(body) > MAX_BODY:
        report.refuse("larger than 256 MiB", member.filename)
        return None
    return body


def _local(folder: SourceFolder, saved: str, report: ImportReport) -> bytes | None:
    """A file of the mirror; the list may tell its place on another machine, so its end decides."""
    parts = [part for part in saved.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    for start in range(len(parts)):
        path = "/".join(parts[start:])
        if folder.has(path):
            return folder.read(path)
    report.refuse("its file is not in the mirror", saved or "a file without a name")
    return None


def _lines(folder: SourceFolder) -> Iterator[_ListLine]:
    text = folder.read(_LIST, _MOST_LIST) if folder.has(_LIST) else b""
    for row in (text or b"").decode("utf-8", "surrogateescape").splitlines()[1:]:
        fields = row.split("\t")
        if len(fields) >= 9:
            yield _ListLine(fields[0], fields[3], fields[5], fields[7], fields[8])


def _from_line(
    folder: SourceFolder, line: _ListLine, times: _FetchTimes, report: ImportReport
) -> Iterator[ImportedCapture]:
    if not line.status.isdigit():
        report.refuse("no readable status", line.url)
        return
    is_page = line.status.startswith("2")
    body = _local(folder, unquote(line.file) if line.file.count("%") else line.file, report) if is_page else b""
    if body is not None:
        headers = (("Content-Type", line.mime),) if line.mime else ()
        yield ImportedCapture(line.url, times.at(line.clock), int(line.status[:3]), headers, body, decoded=True)


def _from_pages(
    folder: SourceFolder, hints: SourceHints, times: _FetchTimes, report: ImportReport
) -> Iterator[ImportedCapture]:
    """Pages that say where they come from; scheme as `--url` or the log tells it."""
    scheme = "https://" if (hints.url or times.seed).startswith("https:") else "http://"
    for path in folder.files(skip=frozenset(("hts-cache",))):
        body = folder.read(path)
        if body is None or path.rpartition("/")[2] in ("hts-log.txt", "backblue.gif", "fade.gif"):
            continue
        found = _MIRRORED.search(body[: 1024 * 1024])
        if not found:
            report.refuse("it does not say where it was mirrored from", path)
            continue
        date = _header_date(found[2].decode("ascii", "replace")) or iso_time(folder.mtime(path))
        url = scheme + found[1].decode("utf-8", "surrogateescape")
        yield ImportedCapture(url, date, 200, content_type_header(path, body), body, decoded=True)
