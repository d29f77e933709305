"""From the names of files to addresses, content types and times."""

from __future__ import annotations

import mimetypes
import re
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote

from letopis.model import Headers

_INDEX = re.compile(r"(^|/)index\.x?html?$")
_SAFE = "/%:@&=+$,;~!*'()[]"
_TYPES = mimetypes.MimeTypes()
_HTML = re.compile(rb"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)

_DATE = re.compile(
    r"(?<![0-9])(?P<year>(?:19|20)[0-9]{2})(?P<dash>[-_.]?)(?P<month>[01][0-9])(?P=dash)(?P<day>[0-3][0-9])"
    r"(?:[-T_. ]?(?P<hour>[0-2][0-9])[-:_.h]?(?P<minute>[0-5][0-9])(?:[-:_.m]?(?P<second>[0-6][0-9]))?"
    r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![0-9])"
)
_FOLDERS = re.compile(r"(?:^|/)((?:19|20)[0-9]{2})/([01][0-9])/([0-3][0-9])(?=/|$)")


def address(prefix: str, path: str) -> str:
    """The address of a file below a folder of the web; `index.html` is the folder itself."""
    return prefix + quote(_INDEX.sub(r"\1", path), safe=_SAFE)


def content_type(path: str, body: bytes = b"") -> Headers:
    """The content type that a name tells, else the one that the first bytes look like."""
    named = _TYPES.guess_type(path, strict=False)[0]
    return (("Content-Type", named or looks_like(body)),)


def looks_like(body: bytes) -> str:
    """HTML, other text, or bytes."""
    if _HTML.match(body[:4096]):
        return "text/html"
    return "application/octet-stream" if b"\x00" in body[:4096] else "text/plain"


def iso(seconds: float) -> str:
    """Seconds since 1970 as a date; ValueError outside of what a calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError) as error:
        raise ValueError(f"no such time ({error})") from None


def dated(path: str) -> tuple[str, str] | None:
    """The moment that a path names, and the path without it; None when there is none.

    The file's own name counts first, then the folders above it, from the
    innermost out. Times without a zone are UTC.
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
