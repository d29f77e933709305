"""Content codings (gzip, deflate, br, zstd) undone piece by piece, never yielding more than was allowed."""

from __future__ import annotations

import zlib
from typing import Protocol

import brotli

from letopis.model.web import Failure, FailureKind
from letopis.zstandard import zstd

ACCEPTED = "gzip, deflate, br, zstd"
"""The supported codings, as the value of Accept-Encoding."""

BOMB_RATIO = 250
"""Growth that every bomb reaches. Long tables do as well, so that it only counts beyond `BOMB_BYTES`."""
BOMB_BYTES = 64 * 1024 * 1024
_STEP = 256 * 1024
_MAX_CODINGS = 3
_MAX_MEMBERS = 1000
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_ZSTD_WINDOW = 23
"""8 MiB, the most that RFC 9659 allows a server to ask of a client."""


class DecodingStopped(Exception):
    """Decoding came to an end that is not the end of the body."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(kind, message)


class _Step(Protocol):
    """One coding: give bytes in, take about `limit` bytes out at a time, until nothing comes.

    `unread` counts the bytes given that played no part in what came out yet.
    """

    @property
    def mislabelled(self) -> bool: ...
    @property
    def unread(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    def feed(self, data: bytes, limit: int) -> bytes: ...


class _ZlibEngine(Protocol):
    """What zlib.decompressobj gives; its class has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """gzip of one or several members; bytes that never were gzip pass through unchanged."""

    def __init__(self) -> None:
        self._engine = zlib.decompressobj(31)
        self._held = b""
        self._members = 0
        self.mislabelled = False

    @property
    def unread(self) -> int:
        return len(self._held)

    @property
    def finished(self) -> bool:
        return self._engine.eof or self.mislabelled

    def feed(self, data: bytes, limit: int) -> bytes:
        data = self._held + data if self._held else data
        self._held = b""
        if self.mislabelled:
            return data
        while data or (self._members and not self._engine.eof):
            if (not self._members or self._engine.eof) and not self._begin(data):
                return data if self.mislabelled else b""
            out = self._engine.decompress(data, limit)
            data = self._engine.unconsumed_tail or self._engine.unused_data
            if out or not self._engine.eof:
                self._held = data
                return out
        return b""

    def _begin(self, data: bytes) -> bool:
        """Whether a member begins here. Without one, all that follows is set aside."""
        if data.startswith(_GZIP_MAGIC):
            self._members += 1
            if self._members > _MAX_MEMBERS:
                raise zlib.error("too many members")
            self._engine = zlib.decompressobj(31)
            return True
        self._held = data if len(data) < len(_GZIP_MAGIC) and _GZIP_MAGIC.startswith(data) else b""
        self.mislabelled = not self._members and not self._held
        return False


class _Deflate:
    """deflate with or without its zlib header, as servers disagree about it."""

    mislabelled = False

    def __init__(self) -> None:
        self._engine: _ZlibEngine | None = None
        self._held = b""

    @property
    def unread(self) -> int:
        return len(self._held)

    @property
    def finished(self) -> bool:
        return self._engine is not None and self._engine.eof

    def feed(self, data: bytes, limit: int) -> bytes:
        data = self._held + data if self._held else data
        if not data and self._engine is None:
            return b""
        if self._engine is None:
            self._engine = zlib.decompressobj(15 if data[0] & 0x0F == 8 else -15)
        if self._engine.eof:
            return b""
        out = self._engine.decompress(data, limit)
        self._held = self._engine.unconsumed_tail
        return out


class _Brotli:
    mislabelled = False
    unread = 0

    def __init__(self) -> None:
        self._engine = brotli.Decompressor()

    @property
    def finished(self) -> bool:
        return bool(self._engine.is_finished())

    def feed(self, data: bytes, limit: int) -> bytes:
        if self._engine.is_finished():
            return b""
        return bytes(self._engine.process(data, output_buffer_limit=limit))


class _Zstd:
    """zstd of one or several frames, with the window that RFC 9659 allows."""

    mislabelled = False
    unread = 0

    def __init__(self) -> None:
        self._frames = 0
        self._engine = self._begin()
        self._held = b""

    @property
    def finished(self) -> bool:
        return bool(self._engine.eof)

    def feed(self, data: bytes, limit: int) -> bytes:
        data = self._held + data if self._held else data
        self._held = b""
        while data or not self._engine.eof:
            if self._engine.eof:
                self._engine = self._begin()
            out = bytes(self._engine.decompress(data, limit))
            data = self._engine.unused_data if self._engine.eof else b""
            if out or not data:
                self._held = data
                return out
        return b""

    def _begin(self) -> zstd.ZstdDecompressor:
        self._frames += 1
        if self._frames > _MAX_MEMBERS:
            raise zstd.ZstdError("too many frames")
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _MAX_ZSTD_WINDOW})


def content_codings(value: str) -> tuple[str, ...]:
    """The codings of a Content-Encoding value in the order they were applied; identity left out."""
    names = (part.strip().lower() for part in value.split(","))
    return tuple({"x-gzip": "gzip"}.get(name, name) for name in names if name not in ("", "identity", "none", "utf-8"))


class Decoder:
    """Undoes all codings of one body; `feed` returns what each piece yields.

    Never returns more than `max_bytes` in all, never holds more than a step beyond it, and raises DecodingStopped for
    bombs, bodies that grow beyond the limit, and bytes that do not fit their coding.
    """

    def __init__(self, names: tuple[str, ...], max_bytes: int) -> None:
        if len(names) > _MAX_CODINGS:
            raise DecodingStopped(FailureKind.BOMB, f"the body has {len(names)} content codings")
        self._steps = [_step(name) for name in reversed(names)]
        self._names = ", ".join(names)
        self._max = max_bytes
        self._taken = 0
        self._given = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The decoded pieces that these coded bytes complete."""
        self._taken += len(data)
        try:
            return self._through(0, data)
        except (zlib.error, brotli.error, zstd.ZstdError) as error:
            raise DecodingStopped(FailureKind.PROTOCOL, f"the body is not valid {self._names}: {error}") from None

    def finish(self) -> None:
        """Raises DecodingStopped when the coded body has not come to its end."""
        if self._taken and not all(step.finished for step in self._steps):
            raise DecodingStopped(FailureKind.PROTOCOL, f"the {self._names} body is truncated")

    @property
    def mislabelled(self) -> bool:
        """The body came without the coding that its header names."""
        return any(step.mislabelled for step in self._steps)

    def _through(self, depth: int, data: bytes) -> list[bytes]:
        """Pushes data through the steps from `depth` on, a bounded piece at a time."""
        if depth == len(self._steps):
            self._count(len(data))
            return [data]
        pieces: list[bytes] = []
        out = self._steps[depth].feed(data, _STEP)
        while out:
            pieces += self._through(depth + 1, out)
            out = self._steps[depth].feed(b"", _STEP)
        return pieces

    def _count(self, size: int) -> None:
        self._given += size
        if self._given > self._max:
            raise DecodingStopped(FailureKind.TOO_LARGE, f"the document is larger than {self._max} bytes")
        if self._given > BOMB_BYTES and self._given > BOMB_RATIO * (self._taken - self._steps[0].unread):
            why = f"the {self._names} body grows over {BOMB_RATIO}-fold and past {BOMB_BYTES >> 20} MiB"
            raise DecodingStopped(FailureKind.BOMB, f"{why}; it is not decoded further, not even when forced")


_STEPS: dict[str, type[_Step]] = {"gzip": _Gzip, "deflate": _Deflate, "br": _Brotli, "zstd": _Zstd}


def _step(name: str) -> _Step:
    made = _STEPS.get(name)
    if made is not None:
        return made()
    raise DecodingStopped(FailureKind.PROTOCOL, f"the body has the content coding '{name}', which was not requested")
