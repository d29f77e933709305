"""WARC 1.1 out: deterministic, one compressed member a record, streamed.

A version is a `response`; a check that found it again is a `revisit` that
refers to it; a check without an answer that could be kept is a `metadata`
record. Exporting the same part of the same archive twice gives the same bytes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import chain
from typing import BinaryIO, NamedTuple

from letopis import __version__
from letopis.archive import Archive, identify
from letopis.archive.spreading import Spread
from letopis.exchange.http_block import head_bytes
from letopis.exchange.parts import Part, parts
from letopis.exchange.selecting import Selected
from letopis.exchange.warc_names import CHECK_TYPE
from letopis.exchange.warc_writer import Compression, Record, member_of
from letopis.model import Check, Outcome, rfc3339

SOFTWARE = f"Letopis/{__version__}"
_NAMESPACE = uuid.UUID("5f1d2c0e-6d4b-5b1e-9f55-0a7c0c1e7a11")
_PROFILE_SAME = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_PROFILE_304 = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_NEWS = (Outcome.NEW, Outcome.CHANGED)


class Original(NamedTuple):
    """The check that brought a version, as later ones refer to it."""

    time: datetime
    digest: str


class Exported(NamedTuple):
    """A record, the check that it tells of, and the bytes of its payload."""

    record: Record
    check: Check
    body: bytes = b""


def export_warc(
    archive: Archive,
    out: BinaryIO,
    selected: Selected,
    compression: Compression = "gzip",
    progress: Callable[[int], None] = lambda done: None,
    spread: Spread | None = None,
) -> int:
    """Writes the selected part; answers how many records. `spread` may read and compress them elsewhere."""
    out.write(member_of(info_record(), compression))
    count = 1
    for member in _members(archive, selected, compression, spread):
        out.write(member)
        count += 1
        progress(count)
    return count


def _members(archive: Archive, selected: Selected, compression: Compression, spread: Spread | None) -> Iterator[bytes]:
    """The records as they stand in a file; from here they come one by one, from elsewhere piece by piece."""
    if spread is None:
        return (member_of(one.record, compression) for one in exported_records(archive, selected))
    pieces = ((compression, part) for part in parts(archive, selected))
    return chain.from_iterable(spread.each(_part_members, pieces))


def _part_members(archive: Archive, piece: tuple[Compression, Part]) -> list[bytes]:
    compression, part = piece
    return [member_of(one.record, compression) for one in _part_records(archive, part)]


def exported_records(archive: Archive, selected: Selected, spread: Spread | None = None) -> Iterator[Exported]:
    """All records of the selected part, URL by URL, oldest check first."""
    found = parts(archive, selected)
    if spread is None:
        return chain.from_iterable(_part_records(archive, part) for part in found)
    return chain.from_iterable(spread.each(_part_exported, found))


def _part_exported(archive: Archive, part: Part) -> list[Exported]:
    return list(_part_records(archive, part))


def _part_records(archive: Archive, part: Part) -> Iterator[Exported]:
    for url in part.urls:
        yield from records_of(archive, part.selected.replayable(archive, url), part.start, part.end)


def records_of(archive: Archive, checks: list[Check], start: int = 0, end: int | None = None) -> Iterator[Exported]:
    """The records of one URL's checks, or of a stretch of them, which may refer to checks before it."""
    originals: dict[int, Original] = {}
    for place, check in enumerate(checks[:end]):
        original = originals.get(check.version) if check.version is not None else None
        if check.outcome in _NEWS and check.version is not None:
            originals[check.version] = Original(check.checked_at, check.digest)
        if place >= start:
            yield from check_records(archive, check, original)


def check_records(archive: Archive, check: Check, original: Original | None) -> Iterator[Exported]:
    """The records of one check; `original` is the check that brought the version which this one found again."""
    if check.outcome in _NEWS and check.version is not None:
        body = archive.get(check.url, version=check.version).body
        yield Exported(_response(check, body), check, body)
    elif check.outcome is Outcome.UNCHANGED and (check.status < 300 or check.status == 304):
        yield Exported(_revisit(check, original), check)
    elif check.status and not _is_bodiless(check):
        body = archive.answers.error_body(check.url, check.checked_at)
        yield Exported(_response(check, body), check, body)
    if _is_bodiless(check) or check.redirects or check.warnings or check.error or check.final_url != check.url:
        yield Exported(_metadata(check), check)


def _is_bodiless(check: Check) -> bool:
    """Whether a check has no answer that a record could hold: none came, or it was too large to be kept."""
    return not check.status or check.outcome is Outcome.TOO_LARGE


def info_record() -> Record:
    """What stands at the beginning of each file; it has no time, so that equal files are equal."""
    text = f"software: {SOFTWARE}\r\nformat: WARC File Format 1.1\r\n"
    return Record(
        (
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", f"<urn:uuid:{stable_id('warcinfo', text)}>"),
            ("WARC-Date", "1970-01-01T00:00:00Z"),
            ("Content-Type", "application/warc-fields"),
        ),
        text.encode(),
    )


def stable_id(*parts: str) -> str:
    """The same parts always have the same id."""
    return str(uuid.uuid5(_NAMESPACE, " ".join(parts)))


def _record_id(kind: str, url: str, moment: datetime) -> str:
    return f"<urn:uuid:{stable_id(kind, url, rfc3339(moment))}>"


def _common(kind: str, check: Check) -> list[tuple[str, str]]:
    return [
        ("WARC-Type", kind),
        ("WARC-Record-ID", _record_id(kind, check.url, check.checked_at)),
        ("WARC-Date", rfc3339(check.checked_at)),
        ("WARC-Target-URI", check.url),
    ]


def _response(check: Check, body: bytes) -> Record:
    headers = _common("response", check)
    headers.append(("WARC-Payload-Digest", f"sha1:{identify(body).text}"))
    headers.append(("Content-Type", "application/http; msgtype=response"))
    return Record(tuple(headers), head_bytes(check.status, check.headers, len(body)) + body)


def _revisit(check: Check, original: Original | None) -> Record:
    """A check that found a version again; where that version is no longer kept, only its digest is named."""
    headers = _common("revisit", check)
    headers.append(("WARC-Profile", _PROFILE_304 if check.status == 304 else _PROFILE_SAME))
    digest = original.digest if original else check.digest
    if digest:
        headers.append(("WARC-Payload-Digest", f"sha1:{digest}"))
    if original is not None:
        headers += [
            ("WARC-Refers-To", _record_id("response", check.url, original.time)),
            ("WARC-Refers-To-Target-URI", check.url),
            ("WARC-Refers-To-Date", rfc3339(original.time)),
        ]
    headers.append(("Content-Type", "application/http; msgtype=response"))
    return Record(tuple(headers), head_bytes(check.status, check.headers, None))


def _metadata(check: Check) -> Record:
    """What WARC has no field for: failures, redirects that were followed, warnings."""
    facts: dict[str, object] = {
        "outcome": check.outcome,
        "status": check.status,
        "error": check.error,
        "final_url": check.final_url,
        "redirects": [[hop.url, hop.status, hop.location, hop.ip, hop.headers] for hop in check.redirects],
        "warnings": list(check.warnings),
    }
    if check.status and _is_bodiless(check):
        facts |= {"headers": check.headers, "length": check.length}
    headers = (*_common("metadata", check), ("Content-Type", CHECK_TYPE))
    return Record(headers, json.dumps(facts, ensure_ascii=False, sort_keys=True).encode())
