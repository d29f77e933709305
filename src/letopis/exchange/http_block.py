"""HTTP answers as WARC keeps them: a status line, headers, the body.

We store bodies with their content codings undone. Headers that then no
longer fit the bytes travel under another name, and come back under their own.
"""

from __future__ import annotations

from http import HTTPStatus

from letopis.model import Headers

KEPT = "X-Letopis-Kept-"
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
    kept = [(name[len(KEPT) :], value) for name, value in headers if name.startswith(KEPT)]
    if not kept:
        return tuple(
            (name, value) for name, value in headers if not (name.lower() == "content-length" and _is_ours(headers))
        )
    return tuple(_restore(headers))


def _is_ours(headers: Headers) -> bool:
    return bool(headers) and headers[-1][0] == "Content-Length"


def _restore(headers: Headers) -> list[tuple[str, str]]:
    result = []
    for index, (name, value) in enumerate(headers):
        if name.startswith(KEPT):
            result.append((name[len(KEPT) :], value))
        elif not (name == "Content-Length" and index == len(headers) - 1):
            result.append((name, value))
    return result
