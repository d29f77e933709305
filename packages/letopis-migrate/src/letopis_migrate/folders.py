"""Folders that somebody else has written: read within bounds and never outside, with addresses, types and times
out of the names of files; and folders of dated files.
"""

from __future__ import annotations

import mimetypes
import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote

from letopis.errors import UsageError
from letopis.exchange.body_codings import MAX_BODY
from letopis.exchange.sources import ImportedCapture, ImportReport, SourceHints
from letopis.model import Headers

_INDEX = re.compile(r"(^|/)index\.x?html?$")
_SAFE = "/%:@&=+$,;~!*'()[]"
_TYPES = mimetypes.MimeTypes()
_HTML = re.compile(rb"\s*+(?><!--.*?-->\s*+)*+<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)

_DATE = re.compile(
    r"(?<![0-9])(?P<year>(?:19|20)[0-9]{2})(?P<dash>[-_.]?)(?P<month>[01][0-9])(?P=dash)(?P<day>[0-3][0-9])"
    r"(?:[-T_. ]?(?P<hour>[0-2][0-9])[-:_.h]?(?P<minute>[0-5][0-9])(?:[-:_.m]?(?P<second>[0-6][0-9]))?"
    r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![0-9])"
)
_FOLDERS = re.compile(r"(?:^|/)((?:19|20)[0-9]{2})/([01][0-9])/([0-3][0-9])(?=/|$)")


def file_url(prefix: str, path: str) -> str:
    """The address of a file below a folder of the web; `index.html` is the folder itself."""
    return prefix + quote(_INDEX.sub(r"\1", path), safe=_SAFE)


def content_type_header(path: str, body: bytes = b"") -> Headers:
    """The content type that a name tells, else the one that the first bytes look like."""
    named = _TYPES.guess_type(path, strict=False)[0]
    return (("Content-Type", named or sniffed_type(body)),)


def sniffed_type(body: bytes) -> str:
    """HTML, other text, or bytes."""
    if _HTML.match(body[:4096]):
        return "text/html"
    return "application/octet-stream" if b"\x00" in body[:4096] else "text/plain"


def iso_time(seconds: float) -> str:
    """Seconds since 1970 as a date; ValueError outside of what a calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError) as error:
        raise ValueError(f"no such time ({error})") from None


def date_in_path(path: str) -> tuple[str, str] | None:
    """The moment that a path names, and the path without it; None when there is none.

    The file's own name counts first, then the folders above it, from the innermost out. Times without a zone are UTC.
    """
    folder, _, name = path.rpartition("/")
    parts = [*folder.split("/"), name] if folder else [name]
    for index in range(len(parts) - 1, -1, -1):
        found = _DATE.search(parts[index])
        moment = _moment(found) if found else None
        if found and moment:
            return moment, _without(parts, index, found)
    return _by_folders(path)


def _by_folders(path: str) -> tuple[str, str] | None:
    found = _FOLDERS.search(path.rpartition("/")[0])
    if not found:
        return None
    try:
        moment = datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC)
    except ValueError:
        return None
    rest = path[: found.start()] + "/" + path[found.end() :].lstrip("/")
    return moment.isoformat(), rest.strip("/")


def _moment(found: re.Match[str]) -> str | None:
    parts = found.groupdict()
    numbers = [int(parts[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second")]
    try:
        return datetime(*numbers[:6], tzinfo=_zone(parts["zone"])).isoformat()  # type: ignore[misc,arg-type]
    except ValueError:
        return None


def _zone(text: str | None) -> timezone:
    if not text or text == "Z":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _without(parts: list[str], index: int, found: re.Match[str]) -> str:
    """The path without its date; a name that was nothing else leaves its folder."""
    before, after = found.string[: found.start()], found.string[found.end() :]
    rest = before.rstrip("-_. @") + ("-" if before.strip("-_. @") and after[:1] not in (".", "") else "")
    rest += after.lstrip("-_ @") if not rest or rest.endswith("-") else after
    is_bare = not rest.strip("-_. @") or (index == len(parts) - 1 and rest.startswith("."))
    kept = [*parts[:index], *([] if is_bare else [rest]), *parts[index + 1 :]]
    return "/".join(part for part in kept if part)


_SPECIAL = "neither a file nor a folder"
_OUT = "a link that leads out of the folder"


class SourceFolder:
    """Files by their path under one root; what is refused stands in the report."""

    def __init__(self, root: Path, report: ImportReport) -> None:
        self.root = root
        self._real = root.resolve()
        self._report = report

    def files(self, *, skip: frozenset[str] = frozenset()) -> Iterator[str]:
        """Paths of all files, sorted; folders behind links are not entered, nor those named in `skip`."""
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            entries = self._entries(folder)
            below = []
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    below += [] if entry.name in skip else [path]
                else:
                    yield path
            waiting += reversed(below)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as found:
                return sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._report.refuse(f"the folder cannot be read ({error.strerror})", folder or str(self.root))
            return []

    def has(self, path: str) -> bool:
        """Whether a plain file lies here, inside the folder."""
        return isinstance(self._facts(path), os.stat_result)

    def mtime(self, path: str) -> float:
        """When the file was last written, in seconds; 0 when there is none."""
        facts = self._facts(path)
        return facts.st_mtime if isinstance(facts, os.stat_result) else 0.0

    def read(self, path: str, limit: int = MAX_BODY) -> bytes | None:
        """The bytes of a file; None, and a word in the report, when it is refused."""
        facts = self._facts(path)
        if isinstance(facts, str):
            self._report.refuse(facts, path)
            return None
        if facts.st_size > limit:
            self._report.refuse(f"larger than {limit // 1024**2} MiB", path)
            return None
        try:
            with (self._real / path).open("rb") as file:
                return file.read(limit)
        except OSError as error:
            self._report.refuse(f"it cannot be read ({error.strerror})", path)
            return None

    def _facts(self, path: str) -> os.stat_result | str:
        """Facts of a plain file inside the folder, or why it is not one. A pipe would be waited for for ever."""
        try:
            real = Path(os.path.realpath(self._real / path, strict=True))
            facts = real.stat()
        except (OSError, ValueError) as error:
            return f"it cannot be read ({getattr(error, 'strerror', None) or error})"
        if not real.is_relative_to(self._real):
            return _OUT
        return facts if stat.S_ISREG(facts.st_mode) else _SPECIAL


URL_LIST = "urls.tsv"
_MOST_LIST = 64 * 1024 * 1024


def dated_captures(root: Path, hints: SourceHints, report: ImportReport) -> Iterator[ImportedCapture]:
    """All files that have a date and an address, in the order of their paths."""
    folder = SourceFolder(root, report)
    listed = _listed(root, hints, report)
    if not hints.url and not listed:
        raise UsageError(
            f"{root} does not contain addresses; give --url, or a {URL_LIST} that lists files or folders with addresses"
        )
    for path in folder.files(skip=frozenset((".git",))):
        if path == URL_LIST:
            continue
        found = date_in_path(path)
        url = _url(path, found[1] if found else "", listed, hints.url) if found else ""
        if found is None or not url:
            report.refuse("no date in its name" if found is None else f"no line of {URL_LIST} has it", path)
            continue
        body = folder.read(path)
        if body is not None:
            yield ImportedCapture(url, found[0], 200, content_type_header(path, body), body, decoded=True)


def _url(path: str, rest: str, listed: dict[str, str], base: str) -> str:
    """The address of a file: from the list by its path, by its name without the date, or by its folder."""
    for name in (path, rest, path.rpartition("/")[0]):
        if name in listed:
            return listed[name]
    if not base:
        return ""
    return file_url(base, rest) if base.endswith("/") else base


def _listed(root: Path, hints: SourceHints, report: ImportReport) -> dict[str, str]:
    place = hints.urls or root / URL_LIST
    folder = SourceFolder(place.parent, report)
    if not folder.has(place.name):
        if hints.urls:
            raise UsageError(f"cannot read {hints.urls}; give a file of lines with a path, a tab, and an address")
        return {}
    lines = (folder.read(place.name, _MOST_LIST) or b"").decode("utf-8", "replace").splitlines()
    pairs = (line.split("\t") for line in lines if line.strip() and not line.startswith("#"))
    return {pair[0].strip().strip("/"): pair[1].strip() for pair in pairs if len(pair) > 1}
