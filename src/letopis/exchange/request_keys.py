"""Requests as they stand in records: those of others read, those of Letopis written and read again.

The addresses of their answers are made in `letopis.urls.request_keys`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from letopis.archive import identify
from letopis.exchange.record_stream import SourceRecord
from letopis.exchange.warc_records import PAGE_ID, WarcRecord, head_end, record_id
from letopis.model import Headers, SentRequest, header
from letopis.urls.request_keys import HttpRequest, indexed_url, record_url, request_url

__all__ = [
    "HttpRequest", "exchange_fields", "indexed_url", "parse_request", "record_url", "request_record", "request_url",
    "sent_request",
]  # fmt: skip

_PROTOCOLS = {"2": "h2", "3": "h3"}
"""What records call the versions of HTTP whose messages are written in the form of 1.1."""


def parse_request(block: bytes) -> HttpRequest | None:
    """The request in the block of a record; None when it does not begin like one."""
    method, fields, body = _message(block)
    return HttpRequest(method, header(fields, "content-type"), body) if method else None


def _message(block: bytes) -> tuple[str, Headers, bytes]:
    """Method, fields and body; the method is empty when the block does not begin like a request."""
    end, body_start = head_end(block)
    first, *lines = block[:end].decode("latin-1").split("\n")
    words = first.split()
    if len(words) < 2 or not words[0].isalpha():
        return "", (), b""
    fields = (line.partition(":") for line in lines)
    return words[0].upper(), tuple((name.strip(), value.strip()) for name, _, value in fields), block[body_start:]


def exchange_fields(sent: SentRequest) -> Headers:
    """What the records of a request and of its answer say of the connection."""
    address = (("WARC-IP-Address", sent.address),) if sent.address else ()
    protocol = _PROTOCOLS.get(sent.http_version, "")
    return (*address, ("WARC-Protocol", protocol)) if protocol else address


def request_record(sent: SentRequest, url: str, asked: str, date: str, answer: str) -> WarcRecord:
    """The record of a request for `asked`, beside the answer that is kept under a URL in the record of that id."""
    block = _request_head(sent, asked)
    fields = (
        ("WARC-Type", "request"),
        ("WARC-Record-ID", record_id("request", url, date)),
        ("WARC-Date", date),
        ("WARC-Target-URI", url),
        *exchange_fields(sent),
        ("WARC-Concurrent-To", answer),
        ("WARC-Block-Digest", f"sha1:{identify(block).text}"),
        ("Content-Type", "application/http; msgtype=request"),
    )
    return WarcRecord(fields, block)


def _request_head(sent: SentRequest, url: str) -> bytes:
    """As it went out over HTTP/1.1: Host comes first, the other fields in their order."""
    parts = urlsplit(url)
    host = header(sent.headers, "host") or parts.netloc.rpartition("@")[2]
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"{sent.method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}".rstrip() for name, value in sent.headers if name.lower() != "host"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def sent_request(record: SourceRecord, answer: str, page: str = "") -> SentRequest | None:
    """The inverse: the request in a record; None unless that is what would be written of it beside the answer, which
    belongs to a page of that id.
    """
    method, headers, _ = _message(record.block)
    if not method:
        return None
    versions = {protocol: version for version, protocol in _PROTOCOLS.items()}
    version = versions.get(record.field("warc-protocol"), "1.1")
    others = tuple(field for field in headers if field[0].lower() != "host")
    sent = SentRequest(method, others, version, record.field("warc-ip-address"))
    url, date = record.field("warc-target-uri"), record.field("warc-date")
    asked = f"{urlsplit(url).scheme}://{header(headers, 'host')}{record.block.split(b' ', 2)[1].decode('latin-1')}"
    again = request_record(sent, url, asked, date, answer)
    fields = tuple(field for field in record.fields if field[0] != "Content-Length")
    wanted = (*again.headers, (PAGE_ID, page)) if page else again.headers
    return sent if (wanted, again.block) == (fields, record.block) else None
