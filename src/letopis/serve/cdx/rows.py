"""Captures as rows of text: what CDX says of each, made in whole batches."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from letopis.catalog import OUTCOME_CODES, Catalog
from letopis.catalog.captures import IS_VERSION, CaptureTuple
from letopis.model import Outcome, header
from letopis.serve.stamps import stamp

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""The fields of a row, in the order of its places; the time in milliseconds follows them."""

Row = tuple[str, str, str, str, str, str, str, int]

URLKEY, TIMESTAMP, ORIGINAL, MIMETYPE, STATUSCODE, DIGEST, LENGTH, TIME = range(8)
REVISIT = "warc/revisit"
EMPTY_DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""SHA-1 of nothing: what a redirect carried of its own."""

_UNCHANGED = OUTCOME_CODES[Outcome.UNCHANGED]
_TOO_LARGE = OUTCOME_CODES[Outcome.TOO_LARGE]
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)
_SHIFTS = np.arange(35, -1, -5, dtype=np.uint64)
_BYTES = np.array([1 << 32, 1 << 24, 1 << 16, 1 << 8, 1], np.uint64)
_NOTHING = bytes(20)
_MOST_TYPES = 200_000


def digests(hashes: Sequence[bytes]) -> list[str]:
    """Base32 of many SHA-1 at once."""
    groups = np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 5).astype(np.uint64) @ _BYTES
    places = (groups[:, None] >> _SHIFTS) & np.uint64(31)
    text = _ALPHABET[places.astype(np.intp)].tobytes().decode("ascii")
    return [text[start : start + 32] for start in range(0, len(text), 32)]


def has_hops(extra: str | None) -> bool:
    """Whether a check was redirected; quotes inside texts are escaped, so the mark cannot be forged."""
    return extra is not None and ('{"hops":[' in extra or ',"hops":[' in extra)


class Types:
    """Media types by the id of their headers, remembered across questions."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[int | None, str] = {None: "unk"}

    def of(self, batch: Sequence[CaptureTuple]) -> dict[int | None, str]:
        """The types of all headers in a batch; texts without one are `unk`."""
        missing = {capture[4] for capture in batch} - self._known.keys()
        if missing:
            if len(self._known) > _MOST_TYPES:
                self._known = {None: "unk"}
                missing |= {capture[4] for capture in batch if capture[4] is not None}
            found = self._catalog.heads.types({number for number in missing if number is not None})
            self._known.update((number, found.get(number or 0) or "unk") for number in missing)
        return self._known


def rows_of(batch: Sequence[CaptureTuple], types: Types, revisit_status: str) -> list[Row]:
    """The rows of a batch. A check that found nothing new is a revisit, a redirected one a redirect."""
    kinds = types.of(batch)
    texts = digests([capture[5] or _NOTHING for capture in batch])
    rows: list[Row] = []
    add = rows.append
    for capture, digest in zip(batch, texts, strict=True):
        name, url, time, status, head, sha1, length, extra, outcome = capture
        if outcome == IS_VERSION and extra is None:
            add((name, stamp(time), url, kinds[head], str(status), digest, str(length), time))
        elif has_hops(extra):
            code, kind = _redirect(extra)
            add((name, stamp(time), url, kind, code, EMPTY_DIGEST, "0", time))
        elif outcome == _UNCHANGED and (status < 300 or status == 304):
            told = digest if sha1 is not None else "-"
            add((name, stamp(time), url, REVISIT, revisit_status, told, str(length or 0), time))
        elif sha1 is None:
            told = "-" if outcome == _TOO_LARGE else EMPTY_DIGEST
            add((name, stamp(time), url, kinds[head], str(status), told, "0", time))
        else:
            add((name, stamp(time), url, kinds[head], str(status), digest, str(length), time))
    return rows


def _redirect(extra: str | None) -> tuple[str, str]:
    hop = json.loads(extra or "{}")["hops"][0]
    kind = header(tuple((name, value) for name, value in hop[4]), "content-type")
    words = kind.partition(";")[0].split()
    return str(hop[1]), words[0].lower() if words else "unk"
