"""Progress of long work: one moving line on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_PLAIN_SECONDS = 10.0
_MOVING_SECONDS = 0.2


class Progress:
    """Says how far the work is, on standard error, not more often than is pleasant."""

    def __init__(self, what: str, *, total: int | None = None, quiet: bool = False) -> None:
        self._what = what
        self._total = total
        self._quiet = quiet
        self._moving = sys.stderr.isatty()
        self._started = time.monotonic()
        self._said = self._started
        self._dirty = False

    def __enter__(self) -> Progress:
        """For use in a with statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the terminal with a clean line."""
        if self._dirty:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def show(self, done: int, remark: str = "") -> None:
        """Tells how many items are done."""
        now = time.monotonic()
        if self._quiet or now - self._said < (_MOVING_SECONDS if self._moving else _PLAIN_SECONDS):
            return
        self._said = now
        line = self._line(done, remark, now - self._started)
        sys.stderr.write(f"\r\x1b[2K{line}" if self._moving else line + "\n")
        sys.stderr.flush()
        self._dirty = self._moving

    def _line(self, done: int, remark: str, seconds: float) -> str:
        rate = done / seconds if seconds else 0.0
        parts = [
            f"{done} {self._what}" if self._total is None else f"{done}/{self._total} {self._what}",
            f"{rate:.1f}/s",
        ]
        if self._total and rate:
            parts.append(f"{(self._total - done) / rate:.0f} s left")
        return "  ".join([*parts, remark] if remark else parts)
