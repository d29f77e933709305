"""Imported records kept as they were in their files, so that they are exported unchanged; and requests in records.

A record is kept without its body, which the archive has: its first line and fields, the head of the HTTP message in
its block, and the records that belong to it, as its request.
"""

from __future__ import annotations

import json
import zlib
from urllib.parse import urlsplit

from letopis.archive import identify
from letopis.binary import ByteReader, length_prefixed
from letopis.errors import Damaged
from letopis.exchange.record_stream import SourceRecord, parse_lines
from letopis.exchange.warc_records import PAGE_ID, WarcRecord, head_end, record_id, response_head
from letopis.model import Headers, SentRequest, header
from letopis.tuples import NamedTuple
from letopis.urls import url_key
from letopis.urls.request_keys import HttpRequest

MAX_BESIDE = 1024 * 1024
"""The maximum size of a block of a record beside a capture."""
HTTP_TYPE = "application/http"
CAPTURE_TYPES = ("response", "revisit", "resource")
_WINDOW_BITS = -13
_COMMON = (
    b'["WARC/1.1",["WARC/1.0",[["WARC-Type","revisit"],["WARC-Type","metadata"],["WARC-Type","warcinfo"],'
    b'["WARC-Profile","http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"],["WARC-Refers-To-Date","20'
    b'"],["WARC-Refers-To-Target-URI","http://"],["WARC-Truncated","length"],["WARC-Warcinfo-ID","<urn:uuid:'
    b'"],["WARC-Identified-Payload-Type","text/html"],["WARC-Type","request"],["Content-Type","application/http; '
    b'msgtype=request"],"GET / HTTP/1.1\\r\\nHost: www.\\r\\nUser-Agent: Mozilla/5.0 (compatible; +http://'
    b"\\r\\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\\r\\n"
    b"Accept-Encoding: gzip, deflate, br\\r\\nAccept-Language: en-US,en;q=0.5\\r\\nConnection: close\\r\\n"
    b"Cookie: \\r\\nReferer: https://www."
    b'\\r\\n\\r\\n"[["WARC-Type","response"],["WARC-Target-URI","https://www."],["WARC-Date","20'
    b'-01-01T00:00:00Z"],["WARC-Record-ID","<urn:uuid:"],["WARC-IP-Address","1"],["WARC-Concurrent-To","<urn:uuid:'
    b'"],["WARC-Block-Digest","sha1:"],["WARC-Payload-Digest","sha1:"],["Content-Type","application/http; '
    b'msgtype=response"],["Content-Length","1"]],"HTTP/1.1 200 OK\\r\\nServer: nginx\\r\\nDate: Mon, 01 Jan 20'
    b" 00:00:00 GMT\\r\\nContent-Type: text/html; charset=utf-8\\r\\nContent-Length: 1\\r\\nTransfer-Encoding: chunked"
    b"\\r\\nContent-Encoding: gzip\\r\\nVary: Accept-Encoding\\r\\nCache-Control: max-age=\\r\\nETag: "
    b"\\r\\nLast-Modified: "
    b'\\r\\nSet-Cookie: \\r\\nConnection: keep-alive\\r\\n\\r\\n",[["WARC/1.0",[["WARC-Type","request"],'
)
"""What records mostly consist of: the dictionary by which earlier releases compressed each alone, never changed."""
_AS_IT_STOOD = b"\x06"
"""The first byte of a record of parts, each after its length; a deflate stream never begins with it."""


class KeptRecord(NamedTuple):
    """A record without its body; `head` is the part of the block before that, `beside` what belongs to it.

    `lines` is its first line with its fields as they were in the file, empty if it was generated.
    """

    version: str
    fields: Headers
    head: bytes
    beside: tuple[SourceRecord, ...] = ()
    lines: bytes = b""

    def pack(self) -> bytes:
        """As it is stored."""
        parts = [self.lines or _lines_of(self.version, self.fields), self.head]
        for one in self.beside:
            parts += (one.lines or _lines_of(one.version, one.fields), one.block)
        return _AS_IT_STOOD + b"".join(map(length_prefixed, parts))

    @classmethod
    def unpack(cls, data: bytes) -> KeptRecord:
        """The inverse of `pack`."""
        if data.startswith(_AS_IT_STOOD):
            return cls._of_parts(ByteReader(data, len(_AS_IT_STOOD), what="imported record"))
        try:
            text = zlib.decompressobj(_WINDOW_BITS, zdict=_COMMON).decompress(data)
            version, fields, head, beside = json.loads(text)
        except (zlib.error, ValueError) as error:
            raise Damaged(f"an imported record cannot be read ({error}); import its file again") from None
        records = (SourceRecord(first, _pairs(names), block.encode("latin-1")) for first, names, block in beside)
        return cls(version, _pairs(fields), head.encode("latin-1"), tuple(records))

    @classmethod
    def _of_parts(cls, parts: ByteReader) -> KeptRecord:
        lines, head, beside = parts.text(), parts.text(), []
        while not parts.done:
            theirs = parts.text()
            version, fields = parse_lines(theirs)
            beside.append(SourceRecord(version, fields, parts.text(), lines=theirs))
        return cls(*parse_lines(lines), head, tuple(beside), lines)

    def field(self, name: str) -> str:
        """The first value of a field, by its name in lower case."""
        for key, value in self.fields:
            if key.lower() == name:
                return value
        return ""

    @property
    def key(self) -> int:
        """A number for its id; 0 when it has none."""
        name = self.field("warc-record-id")
        if not name.isascii():
            name = name.encode("utf-8", "surrogateescape").decode("latin-1")
        return url_key(name) if name else 0

    @property
    def pages_beside(self) -> int:
        """How many records beside it would be captures if they had a web address (ftp:, dns:, javascript:)."""
        return sum([one.field("warc-type").lower() in CAPTURE_TYPES for one in self.beside])

    def records(self, body: bytes) -> list[WarcRecord]:
        """The records as they were imported, those that belong to this one before or after it as in the file."""
        own = WarcRecord(self.fields, self.head + body, self.version)
        before = [one for one in self.beside if one.field("warc-type") == "warcinfo"]
        behind = [one for one in self.beside if one.field("warc-type") != "warcinfo"]
        return [*map(_written, before), own, *map(_written, behind)]


def exchange_record(
    url: str, date: str, status: int, headers: Headers, body: bytes, request: bytes = b"", address: str = ""
) -> KeptRecord:
    """The record of an answer whose codings are undone, with its request, for sources that are no WARC files."""
    name = record_id("response", url, date)
    fields = [("WARC-Type", "response"), ("WARC-Record-ID", name), ("WARC-Date", date), ("WARC-Target-URI", url)]
    fields += [("WARC-IP-Address", address)] if address else []
    fields.append(("WARC-Payload-Digest", f"sha1:{identify(body).text}"))
    fields.append(("Content-Type", f"{HTTP_TYPE}; msgtype=response"))
    head = response_head(status, headers, len(body))
    return KeptRecord("WARC/1.1", tuple(fields), head, _asked(url, date, name, request))


def _asked(url: str, date: str, answer: str, request: bytes) -> tuple[SourceRecord, ...]:
    fields = (
        ("WARC-Type", "request"),
        ("WARC-Record-ID", record_id("request", url, date)),
        ("WARC-Date", date),
        ("WARC-Target-URI", url),
        ("WARC-Concurrent-To", answer),
        ("Content-Type", f"{HTTP_TYPE}; msgtype=request"),
    )
    return (SourceRecord("WARC/1.1", fields, request),) if request and len(request) <= MAX_BESIDE else ()


def _written(record: SourceRecord) -> WarcRecord:
    return WarcRecord(record.fields, record.block, record.version)


def _lines_of(version: str, fields: Headers) -> bytes:
    """Such that reading them gives the same: no value ends a line."""
    lines = [f"{name}: {' '.join(value.split())}" for name, value in fields]
    return "\r\n".join([version, *lines]).encode("utf-8", "surrogateescape")


def _pairs(rows: list[list[str]]) -> Headers:
    return tuple((name, value) for name, value in rows)


# Requests as they stand in records: those of others read, those of Letopis written and read again. The addresses of
# their answers are made in `letopis.urls.request_keys`.

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
