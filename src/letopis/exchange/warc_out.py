"""WARC 1.1 out: deterministic, one compressed member a record, streamed.

A version is a `response`; a check that found it again is a `revisit` that
refers to it; a check without any answer is a `metadata` record. Exporting
the same part of the same archive twice gives the same bytes.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

from backports import zstd

from letopis import __version__
from letopis.archive import Archive, identify
from letopis.exchange.http_block import head_bytes
from letopis.exchange.selecting import Selected
from letopis.model import Check, Outcome, rfc3339

CHECK_TYPE = "application/vnd.letopis.check+json"
"""Of metadata records that hold what WARC has no field for."""

Compression = Literal["gzip", "zstd", "none"]
_NAMESPACE = uuid.UUID("5f1d2c0e-6d4b-5b1e-9f55-0a7c0c1e7a11")
_PROFILE_SAME = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_PROFILE_304 = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_NEWS = (Outcome.NEW, Outcome.CHANGED)


@dataclass(frozen=True, slots=True)
class Record:
    """One WARC record: its headers in order, and its block."""

    headers: tuple[tuple[str, str], ...]
    block: bytes

    def to_bytes(self) -> bytes:
        """The record as it stands in a file."""
        lines = [
            "WARC/1.1",
            *(f"{name}: {value}" for name, value in self.headers),
            f"Content-Length: {len(self.block)}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + self.block + b"\r\n\r\n"


def export_warc(
    archive: Archive,
    out: BinaryIO,
    selected: Selected,
    compression: Compression = "gzip",
    progress: Callable[[int], None] = lambda done: None,
) -> int:
    """Writes the selected part; answers how many records."""
    squeeze = _SQUEEZE[compression]
    count = 0
    for count, record in enumerate(_records(archive, selected), 1):
        out.write(squeeze(record.to_bytes()))
        progress(count)
    return count


def _gzip(data: bytes) -> bytes:
    """One member without a time of its own, so that the same record gives the same bytes."""
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    return press.compress(data) + press.flush()


_SQUEEZE: dict[Compression, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "zstd": lambda data: zstd.compress(data, 12),
    "none": lambda data: data,
}


def _records(archive: Archive, selected: Selected) -> Iterator[Record]:
    yield _info()
    for row in selected.resources(archive):
        seen: dict[int, Check] = {}
        for check in selected.checks(archive, row.url):
            yield from _of_check(archive, check, seen)


def _info() -> Record:
    text = f"software: Letopis/{__version__}\r\nformat: WARC File Format 1.1\r\n"
    return Record(
        (
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", _id("warcinfo", text)),
            ("WARC-Date", "1970-01-01T00:00:00Z"),
            ("Content-Type", "application/warc-fields"),
        ),
        text.encode(),
    )


def _of_check(archive: Archive, check: Check, seen: dict[int, Check]) -> Iterator[Record]:
    if check.outcome in _NEWS and check.version is not None:
        seen[check.version] = check
        yield _response(check, archive.get(check.url, version=check.version).body)
    elif check.outcome is Outcome.UNCHANGED and (check.status < 300 or check.status == 304):
        yield _revisit(check, seen.get(check.version) if check.version is not None else None)
    elif check.status:
        yield _response(check, archive.answers.error_body(check.url, check.checked_at))
    if not check.status or check.redirects or check.warnings or check.error or check.final_url != check.url:
        yield _metadata(check)


def _common(kind: str, check: Check) -> list[tuple[str, str]]:
    return [
        ("WARC-Type", kind),
        ("WARC-Record-ID", _id(kind, check.url, rfc3339(check.checked_at))),
        ("WARC-Date", rfc3339(check.checked_at)),
        ("WARC-Target-URI", check.url),
    ]


def _response(check: Check, body: bytes) -> Record:
    headers = _common("response", check)
    headers.append(("WARC-Payload-Digest", f"sha1:{identify(body).text}"))
    headers.append(("Content-Type", "application/http; msgtype=response"))
    return Record(tuple(headers), head_bytes(check.status, check.headers, len(body)) + body)


def _revisit(check: Check, original: Check | None) -> Record:
    """A check that found a version again; where that lies before the selected span, only its digest is named."""
    headers = _common("revisit", check)
    headers.append(("WARC-Profile", _PROFILE_304 if check.status == 304 else _PROFILE_SAME))
    digest = original.digest if original else check.digest
    if digest:
        headers.append(("WARC-Payload-Digest", f"sha1:{digest}"))
    if original is not None:
        headers += [
            ("WARC-Refers-To", _id("response", original.url, rfc3339(original.checked_at))),
            ("WARC-Refers-To-Target-URI", original.url),
            ("WARC-Refers-To-Date", rfc3339(original.checked_at)),
        ]
    headers.append(("Content-Type", "application/http; msgtype=response"))
    return Record(tuple(headers), head_bytes(check.status, check.headers, None))


def _metadata(check: Check) -> Record:
    """What WARC has no field for: failures, redirects that were followed, warnings."""
    facts = {
        "outcome": check.outcome,
        "status": check.status,
        "error": check.error,
        "final_url": check.final_url,
        "redirects": [[hop.url, hop.status, hop.location, hop.ip, hop.headers] for hop in check.redirects],
        "warnings": list(check.warnings),
    }
    headers = (*_common("metadata", check), ("Content-Type", CHECK_TYPE))
    return Record(headers, json.dumps(facts, ensure_ascii=False, sort_keys=True).encode())


def _id(*parts: str) -> str:
    return f"<urn:uuid:{uuid.uuid5(_NAMESPACE, ' '.join(parts))}>"
