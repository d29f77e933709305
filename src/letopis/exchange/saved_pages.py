"""Pages that a reader saved from a browser: MHTML with everything a page needs, and files of SingleFile.

Both say which page it was and when. What they hold is what the browser had made of the answers: they are taken in as
answers with status 200, under the addresses that the file names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from email import policy
from email.errors import MessageError
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

from letopis.errors import UsageError
from letopis.exchange.sources import MOST_HEAD, FileReader, ImportedCapture, ImportReport, SourceHints, read_whole
from letopis.extract.metadata import read_date

_MOST_PARTS = 100_000
_DEEPEST = 10
_WEB = ("http://", "https://")
_HEADER = re.compile(rb"(?:[A-Za-z-]+:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*)+", re.ASCII)
_RELATED = re.compile(rb"^content-type:\s*multipart/related\b", re.IGNORECASE | re.MULTILINE)
_SINGLEFILE = re.compile(rb"<!--\s*Page saved with SingleFile(?:[^\n]*)\n(?P<facts>.*?)-->", re.DOTALL)
_FACT = re.compile(rb"^[ \t]*(url|saved date):([^\n]*)$", re.MULTILINE)
_ZONE = re.compile(r"\([^()]*\)$")
_EMPTY_LINE = re.compile(rb"^\r?\n", re.MULTILINE)
_BOUNDARY = re.compile(r";\s*boundary\s*=\s*(?:\"([^\"]+)\"|([^\s;\"]+))", re.IGNORECASE)


def _is_mhtml(head: bytes) -> bool:
    fields = _HEADER.match(head)
    return fields is not None and _RELATED.search(fields[0]) is not None


def mhtml_captures(file: Path, hints: SourceHints, report: ImportReport) -> Iterator[ImportedCapture]:
    """Every part of an MHTML file that has a web address; all were there at the time of the file."""
    try:
        yield from _part_captures(read_whole(file).lstrip(), file.name, report)
    except (MessageError, ValueError, LookupError) as error:
        raise UsageError(f"{file} is not valid MHTML ({str(error)[:100]}); save the page again") from None


def _part_captures(data: bytes, name: str, report: ImportReport) -> Iterator[ImportedCapture]:
    whole = _head_and_body(data)[0]
    date = _mail_date(str(whole.get("Date", "")))
    page = str(whole.get("Snapshot-Content-Location", "")).strip()
    seen: set[str] = set()
    for count, (part, body) in enumerate(_leaves(data)):
        url = "".join(str(part.get("Content-Location", "")).split()) or (page if not seen else "")
        if count > _MOST_PARTS:
            report.refuse(f"more than {_MOST_PARTS} parts", name)
            return
        if not url.startswith(_WEB) or url in seen:
            report.refuse("a part without a web address" if url not in seen else "a repeated part", url or "-")
            continue
        seen.add(url)
        yield ImportedCapture(url, date, 200, _part_headers(part), _part_body(part, body), decoded=True)


def _leaves(data: bytes, depth: int = 0) -> Iterator[tuple[Message, bytes]]:
    """The parts that hold no others. The library's parser takes the square of a field, and gigabytes for lines."""
    part, body = _head_and_body(data)
    mark = _BOUNDARY.search(str(part["Content-Type"])) if part.get_content_maintype() == "multipart" else None
    if mark is None or depth == _DEEPEST:
        yield part, body
        return
    for inner in _between(body, b"--" + (mark[1] or mark[2]).encode("ascii", "surrogateescape")):
        yield from _leaves(inner, depth + 1)


def _head_and_body(data: bytes) -> tuple[Message, bytes]:
    head, *after = _EMPTY_LINE.split(data, 1)
    if len(head) > MOST_HEAD:
        raise ValueError(f"a part has more than {MOST_HEAD} bytes of fields")
    part = BytesParser(policy=policy.compat32).parsebytes(head, headersonly=True)
    odd = str(part.get_payload()).encode("ascii", "surrogateescape")  # lines of the head that are no fields
    return part, b"\n".join([odd, *after] if odd else after)


def _between(body: bytes, mark: bytes) -> Iterator[bytes]:
    """What stands between the lines that are a mark, up to the one that ends with two hyphens more."""
    part: list[bytes] = []
    for piece in (b"\n" + body).split(b"\n" + mark, _MOST_PARTS + 2)[1:]:
        line, _, rest = piece.partition(b"\n")
        if line.strip() not in (b"", b"--"):
            part += [b"\n", mark, piece] if part else []
            continue
        if part:
            yield b"".join(part).removesuffix(b"\r")
        part = [rest]
        if line.strip():
            return
    if part:
        yield b"".join(part)


def _mail_date(text: str) -> str:
    moment = read_date(text)
    if moment is None:
        raise ValueError(f"its date is '{text[:40]}'")
    return moment.isoformat()


def _part_headers(part: Message) -> tuple[tuple[str, str], ...]:
    """The type as it stands in the file; line breaks in it are no part of it."""
    return (("Content-Type", " ".join(str(part.get("Content-Type", "application/octet-stream")).split())),)


def _part_body(part: Message, body: bytes) -> bytes:
    part.set_payload(body.decode("ascii", "surrogateescape"))
    decoded = part.get_payload(decode=True)
    return decoded if isinstance(decoded, bytes) else b""


def is_singlefile(head: bytes) -> bool:
    """Whether a page begins like a file of SingleFile."""
    return _SINGLEFILE.search(head) is not None


def singlefile_captures(file: Path, hints: SourceHints, report: ImportReport) -> Iterator[ImportedCapture]:
    """The page of a file that SingleFile wrote, at the time at which it was saved."""
    body = read_whole(file)
    found = _SINGLEFILE.search(body[:MOST_HEAD])
    facts = {name: value.decode("utf-8", "replace") for name, value in _FACT.findall(found["facts"] if found else b"")}
    url = hints.url or facts.get(b"url", "").strip()
    if not url.startswith(_WEB):
        raise UsageError(f"{file} does not say which page it is; name its address")
    try:
        date = _browser_date(facts.get(b"saved date", "").strip())
    except ValueError:
        raise UsageError(f"{file} does not say when it was saved; import it as dated files") from None
    yield ImportedCapture(url, date, 200, (("Content-Type", "text/html; charset=utf-8"),), body, decoded=True)


def _browser_date(text: str) -> str:
    """`Fri Mar 01 2024 12:00:00 GMT+0100 (Central European Time)`, as scripts write a time, or ISO 8601."""
    plain = _ZONE.sub("", text).rstrip()
    try:
        return datetime.strptime(plain, "%a %b %d %Y %H:%M:%S GMT%z").isoformat()
    except ValueError:
        return datetime.fromisoformat(plain).isoformat()


PAGE_READERS = (
    FileReader("mhtml", 61, _is_mhtml, mhtml_captures),
    FileReader("singlefile", 62, is_singlefile, singlefile_captures),
)
