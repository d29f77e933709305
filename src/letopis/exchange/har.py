"""Import and export of HAR: requests and answers recorded by developer tools of browsers, proxies and test tools.

Bodies in a HAR are without their codings, and text is decoded: it is written in the charset that the page names.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from letopis import __version__
from letopis.archive import Archive
from letopis.archive.imported import sources_of
from letopis.archive.sets import CaptureSet
from letopis.errors import UsageError
from letopis.exchange.captures import parse_date
from letopis.exchange.kept_records import KeptRecord, exchange_record, parse_request
from letopis.exchange.page_looks import LookFact, own_fact, page_time, web_url
from letopis.exchange.selection import ExportSelection
from letopis.exchange.sources import FileReader, ImportedCapture, ImportReport, SourceHints, failed_capture, read_json
from letopis.exchange.warc_export import ExportedRecord, exported_records
from letopis.exchange.warc_records import PAGE_ID, PAGE_INFO, WarcRecord, page_id, page_info, reason_phrase
from letopis.extract.charsets import declared_charset, find_charset, python_codec
from letopis.model import Headers, from_millis, header, rfc3339, to_millis
from letopis.urls.request_keys import HttpRequest, request_url

_HEAD = re.compile(rb'\{\s*"log"\s*:\s*\{')
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_WEB = ("http://", "https://")
_OWN_INFO = "_pageinfo"
"""The field of a page in a HAR of Letopis with what `urn:pageinfo:` has in a WARC file."""
_TEXTS = ("text/", "application/json", "application/javascript", "application/xml", "application/xhtml+xml")


def har_captures(file: Path, hints: SourceHints, report: ImportReport) -> Iterator[ImportedCapture]:
    """The answers of a HAR file in its order, with their requests; answers without a body are refused."""
    log = _object(_object(read_json(file)).get("log"))
    entries = log.get("entries")
    if not isinstance(entries, list):
        raise UsageError(f"{file} is not a HAR file: it has no list of entries; export it again")
    looks = _looks(log, file.name)
    for entry in map(_object, entries):
        capture = _capture(entry, report)
        if capture is not None:
            yield capture._replace(look=looks.get(str(entry.get("pageref"))))
    yield from _own_looks(log)


def _looks(log: dict[str, Any], name: str) -> dict[str, LookFact]:
    """The looks that entries belong to: the page is the entry of that URL, or the first one."""
    asked: dict[str, list[tuple[str, str]]] = {}
    for entry in map(_object, log["entries"]):
        if url := web_url(_object(entry.get("request")).get("url")):
            asked.setdefault(str(entry.get("pageref")), []).append((str(entry.get("startedDateTime")), url))
    found: dict[str, LookFact] = {}
    for page in _pages(log):
        ident, title = str(page.get("id")), web_url(page.get("title"))
        if ident in asked and _OWN_INFO not in page and ident not in found:
            named = {url for _, url in asked[ident]}
            found[ident] = LookFact(f"{name} {ident}", title if title in named else min(asked[ident])[1])
    return found


def _pages(log: dict[str, Any]) -> Iterator[dict[str, Any]]:
    pages = log.get("pages")
    return map(_object, pages if isinstance(pages, list) else ())


def _own_looks(log: dict[str, Any]) -> Iterator[ImportedCapture]:
    """What a HAR of Letopis says about its pages besides their entries."""
    for page in _pages(log):
        info = _object(page.get(_OWN_INFO))
        url, date = str(info.get("url")), str(info.get("ts"))
        fact = own_fact(PAGE_INFO + url, date, str(info.get("pageid")), json.dumps(info).encode()) if info else None
        if fact is not None and page_time(date) is not None:
            yield ImportedCapture(fact.page, date, 0, (), b"", look=fact)


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
        report.refuse("no readable date", target)
        return None
    address = str(entry.get("serverIPAddress") or "").strip("[]")
    record = exchange_record(target, moment, status, headers, body, block, address)
    return ImportedCapture(
        url, moment, status, headers, body, decoded=True, record=record, page=target if url != target else ""
    )


def _headers(given: Any) -> Headers:
    """Fields in their order; one that was sent several times has a line for each."""
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
    """The captures that are meant as one HAR 1.2, entry by entry, with the looks at whole pages as its pages.

    Checks that found a version again refer to it; those of a page that was captured whole have entries of their own.
    """
    pages: dict[tuple[str, datetime], str] = {}
    yield from har_head(_listed_pages(archive, selected, pages))
    idents = set(pages.values())
    comma, entry, last, checks = b"", None, None, 0
    for exported in exported_records(archive, selected):
        kind, check = exported.record.kind, exported.check
        checks += check is not last
        last = check
        progress(checks)
        own = pages.get((check.url, check.checked_at), "")
        if kind == "request" and entry is not None:
            entry["request"] |= _asked(exported.record)
        elif kind == "response" or (kind == "revisit" and own and check.version is not None):
            if entry is not None:
                yield comma + b"\n" + json.dumps(entry).encode()
                comma = b","
            entry = _entry(exported if kind == "response" else _with_version(archive, exported))
            ident = own or header(exported.record.headers, PAGE_ID.lower())
            entry = {"pageref": ident, **entry} if ident in idents else entry
    if entry is not None:
        yield comma + b"\n" + json.dumps(entry).encode()
    yield b"\n]}}\n"


def _with_version(archive: Archive, exported: ExportedRecord) -> ExportedRecord:
    """A check that found a version again as the answer that brought it."""
    check = exported.check
    sent = archive.as_sent(archive.get(check.url, version=check.version))
    status = 200 if check.status == 304 else check.status
    return exported._replace(check=check._replace(status=status, headers=sent.headers), body=sent.body)


def _listed_pages(
    archive: Archive, selected: ExportSelection, pages: dict[tuple[str, datetime], str]
) -> Iterator[dict[str, Any]]:
    """The looks at whole pages that are meant; `pages` gets the id of each, which is that of its records."""
    for row in selected.resources(archive):
        found = archive.sets.of(row.url)
        times = {check.checked_at for check in selected.replayable(archive, row.url)} if found else ()
        sources = sources_of(archive, row.url) if found else {}
        for one in found:
            source = sources.get(to_millis(one.time))
            ident = KeptRecord.unpack(source.data).field(PAGE_ID.lower()) if source is not None else ""
            if one.time in times:
                pages[one.url, one.time] = ident or page_id(one.url, rfc3339(one.time))
                yield har_page(archive, one, pages[one.url, one.time])


def har_page(archive: Archive, found: CaptureSet, ident: str) -> dict[str, Any]:
    """A look at a whole page, and in a field of Letopis which resources it used at which times."""
    page = {"startedDateTime": rfc3339(found.time), "id": ident, "title": found.url, "pageTimings": {}}
    return page | {_OWN_INFO: page_info(found, archive.sets.members(found))}


def har_head(pages: Iterable[Mapping[str, Any]] = ()) -> Iterator[bytes]:
    """The beginning of a HAR, up to its entries; `pages` are those that they may belong to."""
    creator = {"name": "Letopis", "version": __version__}
    comma = b""
    yield f'{{"log":{{"version":"1.2","creator":{json.dumps(creator)},"pages":['.encode()
    for page in pages:
        yield comma + json.dumps(page).encode()
        comma = b",\n"
    yield b'],"entries":['


def _asked(record: WarcRecord) -> dict[str, Any]:
    """The request of an answer, from its stored record."""
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
    """The entry of an answer, with its request if that was kept."""
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
    """Text unchanged if it gives the same bytes again, all else in base64."""
    if kind.lower().startswith(_TEXTS):
        try:
            text = body.decode("utf-8")
            if _encoded(text, kind) == body:
                return {"text": text}
        except UnicodeDecodeError:
            pass
    return {"text": base64.b64encode(body).decode(), "encoding": "base64"}
