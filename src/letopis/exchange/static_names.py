"""File names of addresses: safe on every file system, unique, and the same whatever else is copied.

A name that says the same as its address is kept (`/docs/a.html`). Whatever had to be changed, because of a query,
capitals, odd characters, a reserved word, another ending or its length, carries a mark made of the whole address
(`a~0123456789ab.html`), so no two addresses share a file. Files always have an ending and folders below a host
never have a dot, so none is the other.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from posixpath import dirname, relpath
from urllib.parse import unquote, urlsplit

INDEX_NAME = "index.html"
MOST_LENGTH = 180
"""Characters of a whole name; Windows allows 260 for a path."""
_MOST_SEGMENT = 60
_MOST_FOLDERS = 12

_PLAIN = re.compile(r"[a-z0-9_-]{1,60}")
_HOST = re.compile(r"[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)+")
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
_ENDING = re.compile(r"[a-z0-9]{1,5}")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9_-][a-z0-9._~-]*(?:/[a-z0-9_-][a-z0-9._~-]*)*")
_TYPES: dict[str, tuple[str, ...]] = {
    "text/html": ("html", "htm"),
    "application/xhtml+xml": ("xhtml", "html", "htm"),
    "text/css": ("css",),
    "text/javascript": ("js", "mjs"),
    "application/javascript": ("js", "mjs"),
    "application/x-javascript": ("js",),
    "application/json": ("json",),
    "application/ld+json": ("json",),
    "application/xml": ("xml", "xsl", "rss", "atom"),
    "text/xml": ("xml", "xsl", "rss", "atom"),
    "application/rss+xml": ("xml", "rss"),
    "application/atom+xml": ("xml", "atom"),
    "image/svg+xml": ("svg",),
    "image/png": ("png",),
    "image/jpeg": ("jpg", "jpeg"),
    "image/gif": ("gif",),
    "image/webp": ("webp",),
    "image/avif": ("avif",),
    "image/x-icon": ("ico",),
    "image/vnd.microsoft.icon": ("ico",),
    "font/woff": ("woff",),
    "font/woff2": ("woff2",),
    "font/ttf": ("ttf",),
    "font/otf": ("otf",),
    "text/plain": ("txt", "md", "csv", "log"),
    "text/csv": ("csv",),
    "application/pdf": ("pdf",),
    "application/zip": ("zip",),
    "application/gzip": ("gz", "tgz"),
    "audio/mpeg": ("mp3",),
    "audio/ogg": ("ogg", "oga"),
    "video/mp4": ("mp4",),
    "video/webm": ("webm",),
}


def file_name(url: str, content_type: str) -> str:
    """The name of an address below the folder of the copy, with `/` between its parts."""
    parts = urlsplit(url)
    host = _host(parts.scheme, parts.netloc)
    *folders, last = parts.path.removeprefix("/").split("/")
    folder = "/".join([host, *map(_folder, folders)])
    name = f"{folder}/{_last(last, has_query_mark(url), content_type, url)}"
    if len(name) <= MOST_LENGTH and len(folders) <= _MOST_FOLDERS:
        return name
    return f"{host}/long~{_mark(url)}.{_ending('', content_type)}"


def is_file_name(name: str) -> bool:
    """Whether a text can have come from here; nothing else is ever removed."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def link_to(name: str, page: str) -> str:
    """How a file refers to another; all characters of names need no escapes in URLs."""
    return relpath(name, dirname(page) or ".")


def has_query_mark(url: str) -> bool:
    """Whether an address has a query, be it an empty one."""
    return "?" in url


def _host(scheme: str, netloc: str) -> str:
    """`example.org`, `example.org~http`, `example.org~http~8080`; `~` is in no host."""
    name, _, port = netloc.lower().rpartition("@")[2].partition(":")
    known = _HOST.fullmatch(name) and len(name) <= _MOST_SEGMENT and "@" not in netloc and not _reserved(name)
    # Files of the copy are next to the folders of hosts; no host may have their names.
    known = known and not name.endswith((".html", ".txt", ".part"))
    folder = name if known else f"{_cleaned(name)}~{_mark(netloc)}"
    return "~".join([folder, *([scheme] if scheme != "https" else []), *([_cleaned(port)] if port else [])])


def _folder(segment: str) -> str:
    if _PLAIN.fullmatch(segment) and not _reserved(segment):
        return segment
    return f"{_cleaned(unquote(segment))}~{_mark(segment)}"


def _last(segment: str, has_query: bool, content_type: str, url: str) -> str:
    if not segment and not has_query:
        stem, ending = "index", _ending("html", content_type)
        return INDEX_NAME if ending == "html" else f"index~{_mark(url)}.{ending}"
    stem, _, suffix = segment.rpartition(".")
    ending = _ending(suffix if stem else "", content_type)
    is_same = not has_query and ending == suffix and _PLAIN.fullmatch(stem) and not _reserved(stem)
    if is_same and segment != INDEX_NAME:
        return segment
    return f"{_cleaned(unquote(stem or segment)) or 'index'}~{_mark(url)}.{ending}"


def _ending(suffix: str, content_type: str) -> str:
    """The ending of the address where it fits its type, else the usual one of the type."""
    known = _TYPES.get(content_type.partition(";")[0].strip().lower())
    if known:
        return suffix if suffix in known else known[0]
    return suffix if _ENDING.fullmatch(suffix) else "bin"


def _reserved(stem: str) -> bool:
    return _RESERVED.fullmatch(stem.partition(".")[0]) is not None


def _cleaned(text: str) -> str:
    return _UNSAFE.sub("_", text.lower())[: _MOST_SEGMENT - 20].strip("_") or "_"


def _mark(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
