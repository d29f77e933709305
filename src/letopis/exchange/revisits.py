"""Revisits get the body they mean: by the digest of the payload, else by the address and time they refer to.

The capture with the body may come before or behind them, in the same file or another. What cannot be completed waits
in the archive, and is recorded when that capture comes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from letopis.archive import Archive, Identity, NewCapture, identify
from letopis.archive.imported import (
    RecordedPayload,
    WaitingRevisit,
    known_payloads,
    payload_then,
    record_waiting,
    shown_then,
    unrecorded_captures,
    waiting_revisits,
)
from letopis.archive.records import CaptureSource
from letopis.exchange.page_looks import LookFact
from letopis.exchange.sources import ImportReport
from letopis.model import Outcome, SentRequest
from letopis.tuples import NamedTuple
from letopis.urls import url_key

NO_BODY = "a revisit whose capture is missing; it is kept, and recorded when the capture is imported"
_EMPTY = identify(b"")
_OK, _NOT_MODIFIED = 200, 304


class Revisit(NamedTuple):
    """What a revisit says of its body: the digest of the payload, of which URL and when; empty where it says none."""

    digest: bytes
    url: str
    time: int | None


class Arrival(NamedTuple):
    """A capture as it was read; with `revisits`, one that still lacks its body.

    `page` is the address that was asked with another method than GET, `look` what it says of a look at a whole page.
    """

    capture: NewCapture
    revisits: Revisit | None = None
    page: str = ""
    look: LookFact | None = None


_BASE32_DIGITS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" + "0189", "0123456789abcdefghijklmnopqrstuv" + "!!!!")


def _sha1_of_text(text: str) -> bytes:
    """Of 32 letters in base32; every record of a file names one, for which the library takes 25 us."""
    if not (text.isascii() and text.isalnum()):
        raise ValueError("not in base32")
    return int(text.upper().translate(_BASE32_DIGITS), 32).to_bytes(20, "big")


def digest_key(text: str) -> bytes:
    """A digest as fields of records name it, in one spelling: SHA-1 as its twenty bytes, others as text."""
    if not text:
        return b""
    algorithm, colon, value = text.strip().partition(":")
    if not colon:
        algorithm, value = "sha1", algorithm
    try:
        if algorithm.lower() in ("sha1", "sha-1") and len(value) == 32:
            return _sha1_of_text(value)
        if algorithm.lower() in ("sha1", "sha-1") and len(value) == 40:
            return bytes.fromhex(value)
    except ValueError:
        pass
    return f"{algorithm.lower()}:{value}".encode("utf-8", "surrogateescape")[:200] if value else b""


@dataclass(slots=True)
class _BatchPayloads:
    """The bodies that come with a batch, by what revisits may call them."""

    by_digest: dict[bytes, RecordedPayload] = field(default_factory=dict)
    by_moment: dict[tuple[str, int], RecordedPayload] = field(default_factory=dict)
    shown: dict[tuple[str, int], Identity] = field(default_factory=dict)

    def learn(self, capture: NewCapture) -> None:
        """Of a capture with a body whose identity is known."""
        assert capture.identity is not None
        if capture.as_sent is not None:  # its digest is not that of what a record of it holds
            self.shown[capture.url, capture.time] = capture.identity
            return
        payload = RecordedPayload(capture.identity, capture.status, capture.headers)
        self.by_moment.setdefault((capture.url, capture.time // 1000), payload)
        self.by_digest.setdefault(capture.identity.sha1, payload)
        if capture.source is not None and capture.source.digest:
            self.by_digest.setdefault(capture.source.digest, payload)


class ResolvedBatch(NamedTuple):
    """Captures that can be recorded, originals before the revisits that mean them; and revisits that cannot yet."""

    captures: list[NewCapture]
    waiting: list[Arrival]


def resolve_revisits(archive: Archive, batch: Sequence[Arrival]) -> ResolvedBatch:
    """Gives the revisits of a batch their bodies, out of the batch itself or out of the archive."""
    if all(arrival.revisits is None for arrival in batch):
        return ResolvedBatch([arrival.capture for arrival in batch], [])
    batch = [arrival._replace(capture=_identified(arrival.capture)) for arrival in batch]
    here = _BatchPayloads()
    for arrival in batch:
        if arrival.revisits is None and arrival.capture.identity is not None:
            here.learn(arrival.capture)
    stored = known_payloads(archive, {arrival.revisits.digest for arrival in batch if arrival.revisits is not None})
    originals: list[NewCapture] = []
    behind: list[NewCapture] = []
    waiting: list[Arrival] = []
    brought: set[Identity] = set()
    for arrival in batch:
        capture = arrival.capture
        if arrival.revisits is None:
            originals.append(capture)
            if capture.identity is not None:
                brought.add(capture.identity)
            continue
        found = _completed(archive, arrival, here, stored)
        if found is None:
            waiting.append(arrival)
        elif _comes_later(found, here, brought):
            behind.append(found)
        else:
            originals.append(found)
    return ResolvedBatch(originals + behind, waiting)


def _identified(capture: NewCapture) -> NewCapture:
    return capture if capture.body is None else capture._replace(identity=capture.identity or identify(capture.body))


def _comes_later(capture: NewCapture, here: _BatchPayloads, brought: set[Identity]) -> bool:
    """Whether the body of a completed revisit is one that this batch only brings behind it."""
    identity = capture.identity
    if identity is None or identity in brought:
        return False
    return identity.sha1 in here.by_digest or identity in here.shown.values()


def _completed(
    archive: Archive, arrival: Arrival, here: _BatchPayloads, stored: dict[bytes, Identity]
) -> NewCapture | None:
    """A revisit as the capture that it means; None when its body is nowhere."""
    capture, revisits = arrival.capture, arrival.revisits
    assert revisits is not None
    if not revisits.digest and revisits.time is None:
        # It says nothing: what the URL had at its time is what it found again.
        return capture._replace(status=capture.status or _OK, outcome=Outcome.UNCHANGED, versioned=False)
    if revisits.url and revisits.time is not None:
        moment = (revisits.url, revisits.time)
        if (shown := here.shown.get(moment) or shown_then(archive, *moment)) is not None:
            return _with_body(capture, RecordedPayload(shown, _OK, ()))
    referred = _referred(archive, revisits, here) if not capture.status or not revisits.digest else None
    if revisits.digest == _EMPTY.sha1:
        return _with_body(capture, RecordedPayload(_EMPTY, _OK, ()))
    found = here.by_digest.get(revisits.digest) if revisits.digest else None
    if found is None and revisits.digest in stored:
        found = RecordedPayload(stored[revisits.digest], _OK, ())
    if found is not None and referred is not None:
        found = RecordedPayload(found.identity, referred.status, referred.headers)
    found = found or referred or _referred(archive, revisits, here)
    return None if found is None else _with_body(capture, found)


def _referred(archive: Archive, revisits: Revisit, here: _BatchPayloads) -> RecordedPayload | None:
    """What was captured of the URL at the time that a revisit refers to."""
    if not revisits.url or revisits.time is None:
        return None
    found = here.by_moment.get((revisits.url, revisits.time // 1000))
    return found or payload_then(archive, revisits.url, revisits.time // 1000 * 1000)


def _with_body(capture: NewCapture, payload: RecordedPayload) -> NewCapture:
    status = capture.status or payload.status
    headers = capture.headers if capture.status else payload.headers
    is_page = _OK <= status < 300 or status == _NOT_MODIFIED
    outcome = Outcome.NEW if is_page else Outcome.UNCHANGED if status < 400 else Outcome.UNAVAILABLE
    done = capture._replace(status=status, headers=headers, outcome=outcome, versioned=is_page)
    if payload.identity == _EMPTY and not is_page:
        return done
    return done._replace(body=b"", identity=payload.identity)


# Waiting


def waiting_row(arrival: Arrival, run: str) -> WaitingRevisit:
    """A revisit as it waits; `run` names the import that brought it."""
    capture, revisits = arrival.capture, arrival.revisits
    assert revisits is not None
    source = capture.source or CaptureSource(0, b"")
    facts = {
        "url": capture.url, "status": capture.status, "headers": capture.headers, "run": run,
        "refers": [revisits.url, revisits.time],
        "source": [source.record, source.data.decode("latin-1")], "request": capture.request,
    }  # fmt: skip
    data = zlib.compress(json.dumps(facts, separators=(",", ":")).encode())
    return WaitingRevisit(url_key(capture.url), capture.time, revisits.digest, data)


class WaitingFacts(NamedTuple):
    """What waits, read: the revisit, its record, and the import that brought it."""

    arrival: Arrival
    run: str


def read_waiting(row: WaitingRevisit) -> WaitingFacts:
    """The inverse of `waiting_row`."""
    facts = json.loads(zlib.decompress(row.data))
    record, data = facts["source"]
    capture = NewCapture(
        facts["url"], row.time, facts["status"], tuple(map(tuple, facts["headers"])), None, Outcome.UNCHANGED,
        versioned=False, dated=True, source=CaptureSource(record, data.encode("latin-1")) if data else None,
        request=_request(facts.get("request")),
    )  # fmt: skip
    url, time = facts["refers"]
    return WaitingFacts(Arrival(capture, Revisit(row.digest, url, time)), facts["run"])


def _request(values: list[Any] | None) -> SentRequest | None:
    if values is None:
        return None
    method, headers, version, address = values
    return SentRequest(method, tuple(map(tuple, headers)), version, address)


def complete_waiting(archive: Archive, report: ImportReport) -> None:
    """Records the waiting revisits whose bodies have come; names those of this run that go on waiting."""
    run = report.run
    for rows in waiting_revisits(archive):
        facts = [read_waiting(row) for row in rows]
        resolved = resolve_revisits(archive, [one.arrival for one in facts])
        left = {(one.capture.url, one.capture.time, one.revisits) for one in resolved.waiting}
        ready = [
            row
            for row, one in zip(rows, facts, strict=True)
            if (one.arrival.capture.url, one.arrival.capture.time, one.arrival.revisits) not in left
        ]
        if ready:
            wanted = unrecorded_captures(archive, resolved.captures).wanted
            for done in record_waiting(archive, ready, wanted):
                report.checks += 1
                report.versions += done.outcome in (Outcome.NEW, Outcome.CHANGED)
        for one in facts:
            key = (one.arrival.capture.url, one.arrival.capture.time, one.arrival.revisits)
            if one.run == run and key in left:
                report.refuse(NO_BODY, one.arrival.capture.url)
            elif one.run == run:
                report.waiting -= 1
