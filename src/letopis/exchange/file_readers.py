"""Readers of single files that are read whole: each knows its format by how a file begins.

Whatever the format, a file is a plain one, is not larger than its bound, and may be compressed with gzip.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from letopis.archive.outside_values import parse_json
from letopis.errors import UsageError
from letopis.exchange.sources import ImportedCapture, ImportedWatch, ImportReport, SourceHints

_MIB = 1024 * 1024
MOST_READ = 128 * _MIB
"""Largest file that is read whole, unpacked."""
MOST_HEAD = 64 * 1024
_GZIP = b"\x1f\x8b"
_PIECE = 64 * 1024
_BLANK = b"\xef\xbb\xbf \t\r\n"

CaptureSourceReader = Callable[[Path, SourceHints, ImportReport], Iterator[ImportedCapture]]
WatchSourceReader = Callable[[Path], Iterator[ImportedWatch]]


@dataclass(frozen=True, slots=True)
class FileReader:
    """One format of files: `fits` looks at how a file begins; it reads captures, or names pages to watch, or both."""

    kind: str
    rank: int
    fits: Callable[[bytes], bool]
    read: CaptureSourceReader | None = None
    read_watches: WatchSourceReader | None = None
    with_warcs: bool = False

    def recognises(self, source: Path) -> bool:
        """Whether a plain file begins like one of this format."""
        return source.is_file() and self.fits(file_head(source))

    def lists_only(self, source: Path) -> bool:
        """Whether the format names pages and has no captures."""
        return self.read is None

    def captures(
        self, source: Path, hints: SourceHints, report: ImportReport, is_recorded: Callable[[str], bool]
    ) -> Iterator[ImportedCapture]:
        """Captures of the file."""
        return self.read(source, hints, report) if self.read is not None else iter(())

    def watches(self, source: Path, hints: SourceHints) -> Iterator[ImportedWatch]:
        """The pages that it names."""
        if self.read_watches is None:
            raise UsageError(f"{source} has no watches; import it without them")
        return self.read_watches(source)


def file_head(file: Path) -> bytes:
    """How a file begins, unpacked and without blanks before it; empty when it cannot be read."""
    try:
        return next(_unpacked(file, MOST_HEAD), b"")[:MOST_HEAD].lstrip(_BLANK)
    except (OSError, UsageError):
        return b""


def read_whole(file: Path, most: int = MOST_READ) -> bytes:
    """The bytes of a plain file, unpacked; UsageError for what is none, cannot be read, or is too large."""
    if not file.is_file():
        raise UsageError(f"there is no file {file}; check the path")
    try:
        return b"".join(_unpacked(file, most))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; give a readable file") from None


def read_json(file: Path) -> Any:
    """What a file of JSON says; UsageError when it is none."""
    try:
        return parse_json(read_whole(file).lstrip(_BLANK))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not valid JSON ({str(error)[:100]}); correct it") from None


def _unpacked(file: Path, most: int) -> Iterator[bytes]:
    """Pieces of a file up to a bound; one more byte than that is an error."""
    with file.open("rb") as stream:
        first = stream.read(_PIECE)
        inflate = zlib.decompressobj(31) if first.startswith(_GZIP) else None
        left = most
        while first:
            try:
                piece = inflate.decompress(first, left + 1) if inflate else first
            except zlib.error as error:
                raise UsageError(f"{file} is damaged ({error}); fetch it again") from None
            left -= len(piece)
            yield piece
            if left < 0:
                raise UsageError(f"{file} is larger than {most // _MIB} MiB; split it")
            first = inflate.unconsumed_tail if inflate and inflate.unconsumed_tail else stream.read(_PIECE)
