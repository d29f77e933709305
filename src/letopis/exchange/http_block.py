"""HTTP answers as WARC keeps them: a status line, headers, the body.

We store bodies with their content codings undone. Headers that then no
longer fit the bytes travel under another name, and come back under their own.
"""

from __future__ import annotations

from http import HTTPStatus

from letopis.model import Headers

KEPT = "X-Letopis-Kept-"
MAX_HEAD = 1024 * 1024
_UNFIT = frozenset({"content-encoding", "transfer-encoding", "content-length"})


def reason(status: int) -> str:
    """The usual words of a status; empty for unknown ones."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def head_bytes(status: int, headers: Headers, length: int | None) -> bytes:
    """Status line and headers; with a length, one that fits the body that follows."""
    lines = [f"HTTP/1.1 {status} {reason(status)}"]
    lines += [f"{KEPT if name.lower() in _UNFIT else ''}{name}: {value}" for name, value in headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def restored(headers: Headers) -> Headers:
    """Headers of our own export as they were; those of others unchanged."""
    if any(name.startswith(KEPT) for name, _ in headers):
        return tuple(_restore(headers))
    if headers and headers[-1][0] == "Content-Length":
        return tuple((name, value) for name, value in headers if name.lower() != "content-length")
    return headers


def _restore(headers: Headers) -> list[tuple[str, str]]:
    result = []
    for index, (name, value) in enumerate(headers):
        if name.startswith(KEPT):
            result.append((name[len(KEPT) :], value))
        elif not (name == "Content-Length" and index == len(headers) - 1):
            result.append((name, value))
    return result


def parsed(block: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and body of an answer; status 0 and everything as body when it does not begin like one.

    Lines may end without a carriage return, the words of the status may be
    missing, and a line that begins with a blank goes on with the one before.
    """
    if not block.startswith(b"HTTP/"):
        return 0, (), block
    end, size = block.find(b"\r\n\r\n", 0, MAX_HEAD), 4
    bare = block.find(b"\n\n", 0, end if end >= 0 else MAX_HEAD)
    if bare >= 0:
        end, size = bare, 2
    first, *lines = _text(block[:end] if end >= 0 else block[:MAX_HEAD]).split("\n")
    words = first.split(None, 2)
    if end < 0 or len(words) < 2 or not (words[1].isascii() and words[1].isdigit() and len(words[1]) == 3):
        return 0, (), block
    return int(words[1]), tuple(_fields(lines)), block[end + size :]


def _text(head: bytes) -> str:
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError:
        return head.decode("latin-1")


def _fields(lines: list[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in lines:
        if line[:1] in (" ", "\t") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
            continue
        name, colon, value = line.partition(":")
        if colon:
            found.append((name.strip(), value.strip()))
    return found
