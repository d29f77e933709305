"""One hop as libcurl delivers it: header lines and body pieces, held to limits of size and time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime

from letopis.fetch.content_coding import Decoder, DecodingStopped, content_codings
from letopis.fetch.headers import DIGEST_FIELDS, digest_mismatches, parse_header_block, repeats_known_digests
from letopis.model.web import Failure, FailureKind, Headers, Request

_GO_ON = None
_STOP = -1
_REDIRECT_BODY = 64 * 1024
_MAX_INFORMATIONAL = 100


class Transfer:
    """Collects one answer; `on_header` and `on_body` are libcurl's callbacks.

    A limit that is reached leaves its sentence in `failure` and stops the
    transfer. All times are of `time.monotonic`, `header_at` of the clock.
    """

    __slots__ = (
        "_clock",
        "_decoder",
        "_has_digest",
        "_informational",
        "_lines",
        "_max_bytes",
        "_max_header_bytes",
        "_pieces",
        "_sink",
        "_window_bytes",
        "_window_start",
        "_wire",
        "body_bytes",
        "cookies",
        "deadline",
        "failure",
        "first_byte_by",
        "header_at",
        "header_bytes",
        "headers",
        "http_version",
        "request",
        "skipped",
        "started",
        "status",
        "warnings",
    )

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self.begin(Request(""))

    def begin(self, request: Request) -> None:
        """Drops the previous answer; the same object serves many hops of one handle."""
        limits = request.limits
        self.request = request
        self.failure: Failure | None = None
        self.skipped = False
        self.status = 0
        self.http_version = "1.1"
        self.headers: Headers = ()
        self.header_at: datetime | None = None
        self.header_bytes = 0
        self.body_bytes = 0
        self.warnings: tuple[str, ...] = ()
        self.cookies = 0
        self.started = time.monotonic()
        self.deadline = self.started + limits.total_seconds
        self.first_byte_by = self.started + limits.connect_seconds + limits.first_byte_seconds
        self._lines: list[bytes] = []
        self._informational = 0
        self._max_header_bytes = limits.max_header_bytes
        self._max_bytes = limits.max_bytes
        self._sink = request.sink
        self._pieces: list[bytes] = []
        self._wire: list[bytes] | None = None
        self._decoder: Decoder | None = None
        self._has_digest = False
        self._window_start = 0.0
        self._window_bytes = 0

    @property
    def received(self) -> int:
        """Bytes that came in so far, as far as libcurl shows them."""
        return self.header_bytes + self.body_bytes

    def on_header(self, line: bytes) -> int | None:
        """One header line, status line and closing blank line included."""
        length = len(line)
        self.header_bytes = size = self.header_bytes + length
        if size > self._max_header_bytes:
            return self._fail(FailureKind.PROTOCOL, f"the header is larger than {self._max_header_bytes} bytes")
        if self.header_at is not None:
            return _GO_ON  # a trailer: counted, not kept
        if length > 2:
            if not self._lines:
                self._window_start = time.monotonic()
            self._lines.append(line)
            return _GO_ON
        return self._block_ended()

    def on_body(self, piece: bytes) -> int | None:
        """A piece of the body; transfer codings are undone, content codings are not."""
        self.body_bytes += len(piece)
        if self.body_bytes > self._max_bytes:
            if self._decoder is None:
                self._pieces.append(piece[: self._max_bytes - self.body_bytes])
            return self._too_large()
        if self._wire is not None:
            self._wire.append(piece)
        if self._decoder is None:
            self._pieces.append(piece)
        else:
            try:
                self._pieces += self._decoder.feed(piece)
            except DecodingStopped as stop:
                self.failure = stop.failure
                return _STOP
        if self._sink is not None and self.status == 200:
            self._hand_on(self._sink)
        return _GO_ON

    def _hand_on(self, sink: Callable[[bytes], object]) -> None:
        for piece in self._pieces:
            sink(piece)
        self._pieces.clear()

    def too_slow(self, now: float) -> bool:
        """Judges the watch times; leaves the sentence when one has passed."""
        limits = self.request.limits
        if now >= self.deadline:
            self._fail(FailureKind.TIMEOUT, f"the answer took longer than {limits.total_seconds:g} s in all")
        elif not self.received:
            if now >= self.first_byte_by:
                self._fail(FailureKind.TIMEOUT, f"no answer came within {limits.first_byte_seconds:g} s")
        elif now >= self._window_start + limits.slow_seconds:
            self._judge_window(now)
        return self.failure is not None

    def next_watch(self) -> float:
        """When `too_slow` should be called next."""
        due = self._window_start + self.request.limits.slow_seconds if self.received else self.first_byte_by
        return min(due, self.deadline)

    def body(self) -> bytes:
        """The decoded body, with its digests checked; what had come of it when it failed and that was wanted."""
        if self.failure is None and self._decoder is not None:
            self._finish_decoding(self._decoder)
        if self.failure is not None and not self.request.keep_partial:
            return b""
        pieces = self._pieces
        whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self.failure is None and self._has_digest and self.status == 200 and self._sink is None:
            forms = (whole, b"".join(self._wire)) if self._wire is not None else (whole,)
            self.warnings += digest_mismatches(self.headers, *forms)
        return whole

    def release(self) -> None:
        """Lets go of the answer, so that an idle handle holds no page."""
        self._pieces, self._wire, self._decoder, self._sink = [], None, None, None
        self.headers, self.warnings = (), ()

    def _block_ended(self) -> int | None:
        block = parse_header_block(self._lines)
        self._lines = []
        if 100 <= block.status < 200:
            self._informational += 1
            if self._informational > _MAX_INFORMATIONAL:
                return self._fail(FailureKind.PROTOCOL, "the server sends endless interim responses")
            return _GO_ON
        self.status, self.http_version, self.headers, first = block
        self.header_at = self._clock()
        if "set-cookie" in first:
            self.cookies = sum(name.lower() == "set-cookie" for name, _ in self.headers)
        if self.request.method == "HEAD" or self.status in (204, 304):
            return _GO_ON
        return self._judge_header(first)

    def _judge_header(self, first: dict[str, str]) -> int | None:
        """Decides before the body comes: skip it, refuse it, or how to read it."""
        request = self.request
        if request.unchanged_if and self.status == 200 and repeats_known_digests(first, request.unchanged_if):
            self.skipped = True
            return _STOP
        if 300 <= self.status < 400:
            self._max_bytes = min(self._max_bytes, _REDIRECT_BODY)
        length = first.get("content-length", "")
        if not request.keep_partial and length.isdecimal() and int(length[:20]) > self._max_bytes:
            return self._too_large()
        self._has_digest = not DIGEST_FIELDS.isdisjoint(first)
        coding = first.get("content-encoding")
        return self._prepare_decoding(content_codings(coding)) if coding else self._prepare_decoding(())

    def _prepare_decoding(self, names: tuple[str, ...]) -> int | None:
        if names and self._has_digest and self._sink is None:
            self._wire = []
        if not names:
            return _GO_ON
        try:
            self._decoder = Decoder(names, self._max_bytes)
        except DecodingStopped as stop:
            self.failure = stop.failure
            return _STOP
        return _GO_ON

    def _finish_decoding(self, decoder: Decoder) -> None:
        try:
            decoder.finish()
        except DecodingStopped as stop:
            self.failure = stop.failure
        if decoder.mislabelled:
            self.warnings += ("the header Content-Encoding names a coding that the body does not have",)

    def _judge_window(self, now: float) -> None:
        limits = self.request.limits
        came = self.received - self._window_bytes
        if came < limits.min_bytes_per_second * (now - self._window_start):
            self._fail(FailureKind.TIMEOUT, f"less than {limits.min_bytes_per_second} bytes a second arrived")
        self._window_start, self._window_bytes = now, self.received

    def _too_large(self) -> int:
        return self._fail(FailureKind.TOO_LARGE, f"the document is larger than {self._max_bytes} bytes")

    def _fail(self, kind: FailureKind, message: str) -> int:
        self.failure = Failure(kind, message)
        return _STOP


class TransferTimeouts:
    """Ends transfers whose time has passed, with one timer for all of them.

    The timer stands at the earliest moment at which any transfer can be too
    slow; starting a transfer costs a comparison, finishing one nothing.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, expire: Callable[[Transfer], None]) -> None:
        self._loop = loop
        self._expire = expire
        self._watched: set[Transfer] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def add(self, transfer: Transfer) -> None:
        """Watches a transfer that begins until `discard`."""
        self._watched.add(transfer)
        slow = transfer.started + transfer.request.limits.slow_seconds
        due = min(transfer.first_byte_by, transfer.deadline, slow)
        if self._timer is None or due < self._due:
            self._set(due)

    def discard(self, transfer: Transfer) -> None:
        """Watches it no longer."""
        self._watched.discard(transfer)

    def close(self) -> None:
        """Stops watching."""
        self._watched.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._look)

    def _look(self) -> None:
        self._timer = None
        now = time.monotonic()
        for transfer in [each for each in self._watched if each.too_slow(now)]:
            self._watched.discard(transfer)
            self._expire(transfer)
        if self._watched:
            self._set(min(each.next_watch() for each in self._watched))
