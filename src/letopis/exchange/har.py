"""HAR, in and out: what a browser's developer tools, proxies and test tools write down of requests and answers.

Bodies in a HAR are without their codings, and text is decoded: it is written in the charset that the page names.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from letopis import __version__
from letopis.archive import Archive
from letopis.errors import UsageError
from letopis.exchange.captures import parse_date
from letopis.exchange.file_readers import FileReader, read_json
from letopis.exchange.kept_records import exchange_record
from letopis.exchange.request_keys import HttpRequest, parse_request, request_url
from letopis.exchange.selection import ExportSelection
from letopis.exchange.sources import ImportedCapture, ImportReport, SourceHints, failed_capture
from letopis.exchange.warc_export import ExportedRecord, exported_records
from letopis.exchange.warc_records import WarcRecord, reason_phrase
from letopis.extract.charsets import declared_charset, find_charset, python_codec
from letopis.model import Headers, from_millis, header, rfc3339

_HEAD = re.compile(rb'\{\s*"log"\s*:\s*\{')
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_WEB = ("http://", "https://")
_TEXTS = ("text/", "application/json", "application/javascript", "application/xml", "application/xhtml+xml")


def har_captures(file: Path, hints: SourceHints, report: ImportReport) -> Iterator[ImportedCapture]:
    """The answers of a HAR file in its order, with their requests; what has no body in it is refused."""
    log = _object(_object(read_json(file)).get("log"))
    entries = log.get("entries")
    if not isinstance(entries, list):
        raise UsageError(f"{file} is not a HAR file: it has no list of entries; export it again")
    for entry in entries:
        capture = _capture(_object(entry), report)
        if capture is not None:
            yield capture


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _capture(entry: dict[str, Any], report: ImportReport) -> ImportedCapture | None:
    asked, answer = _object(entry.get("request")), _object(entry.get("response"))
    target, date = str(asked.get("url") or ""), str(entry.get("startedDateTime") or "")
    if not target.lower().startswith(_WEB):
        report.refuse("no web address (http or https)", target)
        return None
    status = answer.get("status")
    if not isinstance(status, int) or not 100 <= status <= 999:
        why = str(answer.get("_error") or answer.get("statusText") or "the browser got no answer")[:200]
        return failed_capture(target, date, why)
    headers = _headers(answer.get("headers"))
    content = _object(answer.get("content"))
    body = _body(content, headers)
    if body is None:
        report.refuse("its body is not in the file; save the file with contents", target)
        return None
    request = _request(asked)
    url = request_url(target, request)
    block = _request_block(target, asked, request)
    try:
        moment = rfc3339(from_millis(parse_date(date)))
    except (ValueError, OverflowError):
        report.refuse("no date that can be read", target)
        return None
    address = str(entry.get("serverIPAddress") or "").strip("[]")
    record = exchange_record(target, moment, status, headers, body, block, address)
    return ImportedCapture(
        url, moment, status, headers, body, decoded=True, record=record, page=target if url != target else ""
    )


def _headers(given: Any) -> Headers:
    """Fields in their order; one that was sent several times stands in one line for each."""
    rows = [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
    found = ((str(row.get("name") or ""), str(row.get("value") or "")) for row in rows)
    return tuple(
        (name, " ".join(line.split("\r")))
        for name, value in found
        if name and not name.startswith(":") and name.isprintable() and ":" not in name
        for line in value.split("\n")
    )


def _body(content: dict[str, Any], headers: Headers) -> bytes | None:
    """The bytes of a body; None when the file leaves it out."""
    text = content.get("text")
    if not isinstance(text, str):
        size = content.get("size")
        return None if isinstance(size, int | float) and size > 0 else b""
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text)
        except (binascii.Error, ValueError):
            return None
    return _encoded(text, header(headers, "content-type") or str(content.get("mimeType") or ""))


def _encoded(text: str, content_type: str) -> bytes:
    plain = text.encode("utf-8", "surrogatepass")
    named = _CHARSET.search(content_type)
    charset = find_charset(named[1]) if named else declared_charset(plain)
    try:
        return text.encode(python_codec(charset)) if charset not in ("", "utf-8") else plain
    except (UnicodeEncodeError, LookupError):
        return plain


def _request(asked: dict[str, Any]) -> HttpRequest:
    posted = _object(asked.get("postData"))
    method = str(asked.get("method") or "GET").upper()
    body = str(posted.get("text") or "").encode("utf-8", "surrogatepass")
    known = method if method.isascii() and method.isalpha() else "GET"
    return HttpRequest(known, str(posted.get("mimeType") or ""), body)


def _request_block(url: str, asked: dict[str, Any], request: HttpRequest) -> bytes:
    path = "/" + url.partition("://")[2].partition("#")[0].partition("/")[2]
    fields = (f"{name}: {value}" for name, value in _headers(asked.get("headers")))
    head = "\r\n".join([f"{request.method} {path} HTTP/1.1", *fields]) + "\r\n\r\n"
    return head.encode("utf-8", "surrogatepass") + request.body


HAR = FileReader("har", 60, lambda head: bool(_HEAD.match(head)), har_captures)

# Out


def har_pieces(archive: Archive, selected: ExportSelection, progress: Callable[[int], None]) -> Iterator[bytes]:
    """The captures that are meant as one HAR 1.2, entry by entry; checks that found a version again refer to it."""
    yield har_head()
    comma, entry, last, checks = b"", None, None, 0
    for exported in exported_records(archive, selected):
        checks += exported.check is not last
        last = exported.check
        progress(checks)
        if exported.record.kind == "request" and entry is not None:
            entry["request"] |= _asked(exported.record)
        elif exported.record.kind == "response":
            if entry is not None:
                yield comma + b"\n" + json.dumps(entry).encode()
                comma = b","
            entry = _entry(exported)
    if entry is not None:
        yield comma + b"\n" + json.dumps(entry).encode()
    yield b"\n]}}\n"


def har_head(pages: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """What a HAR begins with, up to its entries; `pages` are those that they may belong to."""
    creator = {"name": "Letopis", "version": __version__}
    said = f'"version":"1.2","creator":{json.dumps(creator)},"pages":{json.dumps(pages)},"entries":['
    return f'{{"log":{{{said}'.encode()


def _asked(record: WarcRecord) -> dict[str, Any]:
    """The request of an answer, out of the record that was kept beside it."""
    request = parse_request(record.block)
    if request is None:
        return {}
    lines = record.block[: len(record.block) - len(request.body)].decode("utf-8", "replace").splitlines()[1:]
    fields = [line.partition(":") for line in lines if ":" in line]
    found: dict[str, Any] = {
        "method": request.method,
        "url": header(record.headers, "warc-target-uri").strip("<> "),
        "headers": [{"name": name, "value": value.strip()} for name, _, value in fields],
    }
    if request.body:
        found["postData"] = {"mimeType": request.content_type, "text": request.body.decode("utf-8", "replace")}
    return found


def har_entry(exported: ExportedRecord, asked: WarcRecord | None = None) -> dict[str, Any]:
    """The entry of an answer, with its request where that was kept."""
    entry = _entry(exported)
    if asked is not None:
        entry["request"] |= _asked(asked)
    return entry


def _entry(exported: ExportedRecord) -> dict[str, Any]:
    check, body = exported.check, exported.body
    kind, address = header(check.headers, "content-type"), header(exported.record.headers, "warc-ip-address")
    empty = {"httpVersion": "HTTP/1.1", "cookies": [], "headersSize": -1}
    return {
        "startedDateTime": rfc3339(check.checked_at),
        "time": 0,
        "request": {"method": "GET", "url": check.url, "headers": [], "queryString": [], "bodySize": -1, **empty},
        "response": {
            "status": check.status,
            "statusText": reason_phrase(check.status),
            "headers": [{"name": name, "value": value} for name, value in check.headers],
            "content": {"size": len(body), "mimeType": kind, **_content(body, kind)},
            "redirectURL": header(check.headers, "location"),
            "bodySize": len(body),
            **empty,
        },
        "cache": {},
        "timings": {"send": 0, "wait": 0, "receive": 0},
        **({"serverIPAddress": address} if address else {}),
    }


def _content(body: bytes, kind: str) -> dict[str, str]:
    """Text as it is where it comes back as the same bytes, all else in base64."""
    if kind.lower().startswith(_TEXTS):
        try:
            text = body.decode("utf-8")
            if _encoded(text, kind) == body:
                return {"text": text}
        except UnicodeDecodeError:
            pass
    return {"text": base64.b64encode(body).decode(), "encoding": "base64"}
