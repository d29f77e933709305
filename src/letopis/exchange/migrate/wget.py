"""Mirrors of wget: `host/path` below a folder, with the headers inside when they were saved.

Files do not tell their scheme: it is the one of `--url`, else https. Their
time is the `Date` that was saved, else the time of the file, which wget sets
to Last-Modified where the server told one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

from letopis.exchange.capture import Capture
from letopis.exchange.http_block import parsed
from letopis.exchange.migrate.asked import Asked
from letopis.exchange.migrate.folder import Folder
from letopis.exchange.migrate.naming import address, content_type, iso
from letopis.exchange.report import ImportReport
from letopis.exchange.warc_names import is_warc_name
from letopis.model import Headers, header

_HOST = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+|localhost)\.?(?:[:+][0-9]{1,5})?", re.IGNORECASE)
_MOST_SCHEMES = ("http", "https")
_SCHEMES = ("http", "https")
_KEPT = ".orig"


def is_mirror(folder: Path) -> bool:
    """Whether a folder, or a folder in it, has the name of a host."""
    return bool(_HOST.fullmatch(folder.resolve().name)) or any(
        _is_host(entry) or (entry.name in _SCHEMES and any(map(_is_host, entry.iterdir())))
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.is_symlink()
    )


def _is_host(folder: Path) -> bool:
    return folder.is_dir() and _HOST.fullmatch(folder.name) is not None


def warcs_beside(folder: Path) -> list[Path]:
    """WARC files that `--warc-file` wrote into the folder of the mirror."""
    return sorted(file for file in folder.iterdir() if is_warc_name(file.name) and file.is_file())


def wget_captures(
    root: Path, asked: Asked, report: ImportReport, known: Callable[[str], bool] = lambda url: False
) -> Iterator[Capture]:
    """All files with an address; those whose address is `known` from a WARC beside them are passed over."""
    folder = Folder(root, report)
    for path in folder.files():
        if is_warc_name(path) or (path.endswith(_KEPT) and folder.has(path.removesuffix(_KEPT))):
            continue
        url = _url(root, path, asked.url)
        if not url:
            report.refuse("it lies below no folder that is named like a host; give --url", path)
        elif known(url) or known(_other_scheme(url)):
            report.same += 1
        else:
            yield from _captures(folder, path, url, report)


def _captures(folder: Folder, path: str, url: str, report: ImportReport) -> Iterator[Capture]:
    """The file as it was fetched: `-K` keeps it as `.orig` when links were converted."""
    kept = path + _KEPT if folder.has(path + _KEPT) else path
    body = folder.read(kept)
    if body is None:
        return
    status, headers, body = with_head(body)
    date = _date(header(headers, "date")) or iso(folder.mtime(kept))
    yield Capture(url, date, status, headers or content_type(_bare(path), body), body, decoded=True)


def with_head(body: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and the rest of a file that begins with the head of an answer; else 200 and none."""
    status, headers, rest = parsed(body)
    return (status, headers, rest) if status and headers else (200, (), body)


def _date(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat() if text else ""
    except ValueError:
        return ""


def _url(root: Path, path: str, told: str) -> str:
    """The address of a file by its place; below `--url` when no folder is a host."""
    parts = path.split("/")
    scheme = parts.pop(0) if parts[0] in _SCHEMES and len(parts) > 2 else _scheme(told)
    if len(parts) > 1 and _HOST.fullmatch(parts[0]):
        host, rest = parts[0], "/".join(parts[1:])
    elif told.count("/") > 2:
        return _address(told if told.endswith("/") else told + "/", path)
    elif _HOST.fullmatch(root.resolve().name):
        host, rest = root.resolve().name, path
    else:
        return ""
    return _address(f"{scheme}://{host.replace('+', ':')}/", rest)


def _scheme(told: str) -> str:
    return "http" if told.startswith("http:") else "https"


def _other_scheme(url: str) -> str:
    return "http:" + url[6:] if url.startswith("https:") else "https:" + url[5:]


def _address(prefix: str, path: str) -> str:
    """The first question mark of a name begins the query."""
    name, mark, query = path.partition("?")
    return address(prefix, name) + mark + query.replace("#", "%23")


def _bare(path: str) -> str:
    return path.partition("?")[0]
