"""Text to records, and records in chunks to stored bytes and back.

In a chunk hexadecimal digests are set aside, and all chunks have one dictionary.

Pieces of the dictionary are chosen greedily: from each stretch of the text the window whose 8-byte strings occur in
the most other records and are not covered yet. The best pieces stand last, where distances are shortest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence

from letopis import binary
from letopis.errors import Damaged, UsageError
from letopis.lazy import np, npt, regex
from letopis.zrec.header import BLOCK_TEXT, MAX_DICTIONARY, MAX_NAME_RULE, MAX_SEPARATOR, MAX_TEXT, KiB, MiB
from letopis.zstandard import CompressionParameter as Parameter
from letopis.zstandard import zstd

_DIGITS = (32, 40, 56, 64, 96, 128)
"""Lengths of MD5, SHA-1, SHA-224, SHA-256, SHA-384 and SHA-512, as digits."""

_RUN = re.compile(rb"(?<![0-9a-f])(?:" + b"|".join(b"[0-9a-f]{%d}" % n for n in reversed(_DIGITS)) + rb")(?![0-9a-f])")
_MARKER = re.compile(rb"[\x01-\x06]")
_MARKERS = {digits: bytes((number,)) for number, digits in enumerate(_DIGITS, 1)}


def set_digests_aside(text: bytes) -> tuple[bytes, bytes]:
    """(text with markers, tail of a multiple of 4 bytes); an empty tail means that the text is untouched."""
    if _MARKER.search(text):
        return text, b""
    tail: list[bytes] = []

    def mark(found: re.Match[bytes]) -> bytes:
        run = found[0]
        tail.append(bytes.fromhex(run.decode("ascii")))
        return _MARKERS[len(run)]

    return _RUN.sub(mark, text), b"".join(tail)


def put_digests_back(text: bytes, tail: bytes) -> bytes:
    """The text that `set_digests_aside` took apart; `Damaged` when markers and tail do not fit."""
    if not tail:
        return text
    at = 0

    def run(found: re.Match[bytes]) -> bytes:
        nonlocal at
        start, at = at, at + _DIGITS[found[0][0] - 1] // 2
        return tail[start:at].hex().encode("ascii")

    whole = _MARKER.sub(run, text)
    if at != len(tail):
        raise Damaged("The digits of a chunk do not fit its text; get a fresh copy.")
    return whole


ZSTD_LEVEL = 22
_STRING = 8
_TABLE_BITS = 22
_WINDOW = 1024
_SAMPLES = 1500
_TABLES = 64 * KiB
_LEAST = 16 * KiB
_TRAINING = 24 * MiB
_MOST_TEXTS = 1 << 17


def train_dictionary(texts: Sequence[bytes], size: int | None = None) -> bytes:
    """A dictionary for these texts, b"" when they are too few to pay for one. Same texts, same dictionary."""
    texts = _thinned(texts)
    total = sum(map(len, texts))
    size = min(MiB, total // 8) if size is None else min(size, MAX_DICTIONARY - _TABLES)
    if size < _LEAST or len(texts) < 64:
        return b""
    content = _chosen(texts, size)
    if len(content) < _STRING:
        return b""
    samples = texts[:: max(1, len(texts) // _SAMPLES)]
    raw = zstd.ZstdDict(content, is_raw=True)
    return bytes(zstd.finalize_dict(raw, samples, len(content) + _TABLES, ZSTD_LEVEL).dict_content)


def compress_dictionary(dictionary: bytes) -> bytes:
    """What stands in the file."""
    return zstd.compress(dictionary, ZSTD_LEVEL) if dictionary else b""


def decompress_dictionary(stored: bytes) -> bytes:
    """The dictionary itself; never unpacks more than the limit."""
    if not stored:
        return b""
    try:
        opened = zstd.ZstdDecompressor()
        dictionary = opened.decompress(stored, MAX_DICTIONARY)
    except zstd.ZstdError as wrong:
        raise Damaged(f"The dictionary of the zrec file cannot be unpacked ({wrong}); get a fresh copy.") from None
    if not opened.eof or opened.unused_data or len(dictionary) < _STRING:
        raise Damaged("The dictionary of the zrec file is cut short or over the limit; get a fresh copy.")
    return dictionary


def _thinned(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Every n-th text when there is more than training needs."""
    total = sum(map(len, texts))
    step = max(1, -(-total // _TRAINING), len(texts) // _MOST_TEXTS)
    return texts[::step]


def _chosen(texts: Sequence[bytes], size: int) -> bytes:
    joined = b"\n".join(texts)
    keys = _string_keys(joined)
    worth = _worth(keys, texts)
    pieces: list[tuple[float, int, bytes]] = []
    taken, idle, turn = 0, 0, 0
    stretch = max(_WINDOW, len(keys) * _WINDOW // size)
    starts = range(0, len(keys), stretch)
    while taken < size and idle < len(starts):
        start = starts[turn % len(starts)]
        low, high, gain = _best_window(worth[keys[start : start + stretch]])
        turn, idle = turn + 1, idle + 1
        if gain > 0:
            idle = 0
            worth[keys[start + low : start + high]] = 0
            piece = joined[start + low : start + high + _STRING - 1]
            pieces.append((gain / len(piece), turn, piece))
            taken += len(piece)
    return b"".join(piece for _, _, piece in sorted(pieces))[-size:]


def _string_keys(joined: bytes) -> npt.NDArray[np.int64]:
    """A 22-bit key for the 8 bytes at every position."""
    data = np.frombuffer(joined, np.uint8).astype(np.uint64)
    count = len(data) - _STRING + 1
    keys = np.zeros(count, np.uint64)
    for step in range(_STRING):
        keys |= data[step : step + count] << np.uint64(8 * step)
    keys *= np.uint64(0x9E3779B185EBCA87)
    keys >>= np.uint64(64 - _TABLE_BITS)
    return keys.astype(np.int64)


def _worth(keys: npt.NDArray[np.int64], texts: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """For each key the number of records it occurs in, less one."""
    counts = np.zeros(1 << _TABLE_BITS, np.int64)
    start = 0
    for text in texts:
        end = start + len(text) + 1
        counts[np.unique(keys[start:end])] += 1
        start = end
    return np.maximum(counts - 1, 0)


def _best_window(worth: npt.NDArray[np.int64]) -> tuple[int, int, int]:
    """(start, end, gain) of the best window, without worthless ends."""
    width = min(_WINDOW, len(worth))
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(worth)))
    gains = sums[width:] - sums[:-width]
    best = int(np.argmax(gains))
    if not gains[best]:
        return 0, 0, 0
    useful = np.flatnonzero(worth[best : best + width])
    return best + int(useful[0]), best + int(useful[-1]) + 1, int(gains[best])


_STORED, _FRAME, _BLOCK = 0, 1, 2
_TAIL_UNIT = 4
_FRAME_HEAD = b"\x28\xb5\x2f\xfd\x00\x38"
"""zstd's magic number, no content size, checksum or dictionary number, and a window of 128 KiB.

The compressor names a smaller window for a shorter text, which changes nothing else."""

_BLOCK_HEAD = 3
_OPTIONS: dict[int, int] = {
    Parameter.compression_level: ZSTD_LEVEL,
    Parameter.window_log: 17,
    Parameter.content_size_flag: 0,
    Parameter.checksum_flag: 0,
    Parameter.dict_id_flag: 0,
}


class ChunkCoder:
    """Codes chunks with one dictionary. Not for use by two threads at once."""

    def __init__(self, dictionary: bytes) -> None:
        try:
            self._dictionary = zstd.ZstdDict(dictionary) if dictionary else None
        except (ValueError, zstd.ZstdError) as wrong:
            raise Damaged(f"The dictionary of the zrec file is invalid ({wrong}); get a fresh copy.") from None
        self._compressor: zstd.ZstdCompressor | None = None

    def encode(self, text: bytes) -> bytes:
        """The shortest of the stored forms. Same text and dictionary, same bytes."""
        if len(text) > MAX_TEXT:
            raise UsageError(f"A chunk of records is over {MAX_TEXT} bytes; use another separator or smaller groups.")
        forms = [binary.encode_varint(_STORED) + text]
        block = self._block(text)
        forms.append(block if block else binary.encode_varint(_FRAME) + self._frame(text))
        return min(forms, key=len)

    def decode(self, stored: bytes) -> bytes:
        """The text; `Damaged` when the bytes are not a chunk of this dictionary."""
        form, at = binary.decode_canonical_varint(stored, 0)
        if form == _STORED:
            return stored[at:]
        if form == _FRAME:
            return self._unpacked(stored[at:], MAX_TEXT)
        return self._from_block(stored[at:], (form - _BLOCK) * _TAIL_UNIT)

    def _block(self, text: bytes) -> bytes:
        """The form without frame and block header, b"" when the text does not fit one compressed block."""
        marked, tail = set_digests_aside(text)
        if len(marked) > BLOCK_TEXT:
            return b""
        frame = self._frame(marked)
        start = len(_FRAME_HEAD)
        head = int.from_bytes(frame[start : start + _BLOCK_HEAD], "little")
        block = frame[start + _BLOCK_HEAD :]
        if frame[: start - 1] != _FRAME_HEAD[:-1] or head != _block_head(len(block)):
            return b""
        return binary.encode_varint(_BLOCK + len(tail) // _TAIL_UNIT) + block + tail

    def _from_block(self, rest: bytes, tail: int) -> bytes:
        size = len(rest) - tail
        if not 0 < size <= BLOCK_TEXT:
            raise Damaged("A chunk of the zrec file has no room for its text; get a fresh copy.")
        frame = _FRAME_HEAD + _block_head(size).to_bytes(_BLOCK_HEAD, "little") + rest[:size]
        return put_digests_back(self._unpacked(frame, BLOCK_TEXT), rest[size:])

    def _frame(self, text: bytes) -> bytes:
        if self._compressor is None:
            known = self._dictionary.as_undigested_dict if self._dictionary else None
            self._compressor = zstd.ZstdCompressor(options=_OPTIONS, zstd_dict=known)
        return bytes(self._compressor.compress(text, zstd.ZstdCompressor.FLUSH_FRAME))

    def _unpacked(self, frame: bytes, most: int) -> bytes:
        try:
            opened = zstd.ZstdDecompressor(self._dictionary)
            text = bytes(opened.decompress(frame, most))
        except zstd.ZstdError as wrong:
            raise Damaged(f"A chunk of the zrec file cannot be unpacked ({wrong}); get a fresh copy.") from None
        if not opened.eof or opened.unused_data:
            raise Damaged("A chunk of the zrec file is cut short or over the limit; get a fresh copy.")
        return text


def _block_head(size: int) -> int:
    """Last block of its frame, compressed, of this size."""
    return 1 | 2 << 1 | size << 3


BLANK_LINE = b"\n\n"
_NAME_SECONDS = 0.5
_SLOW_SECONDS = 0.001
_SLOW_IN_ALL = 2.0

_ESCAPE = re.compile(r"\\(n|r|t|0|\\|x[0-9a-fA-F]{2})")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
_VALUE = re.compile(rb"[A-Za-z0-9_.-]+:[ \t]*")

Namer = Callable[[bytes], bytes]


def parse_separator(text: str) -> bytes:
    r"""A separator as people type it: `\n`, `\t`, `\r`, `\0`, `\xHH` and `\\` are understood."""
    plain = _ESCAPE.sub(lambda found: _PLAIN.get(found[1]) or chr(int(found[1][1:], 16)), text)
    try:
        raw = plain.encode("latin-1") if _ESCAPE.search(text) else plain.encode()
    except UnicodeEncodeError:
        raw = plain.encode()
    return checked_separator(raw)


def checked_separator(separator: bytes) -> bytes:
    """The separator, if it is one."""
    if not 1 <= len(separator) <= MAX_SEPARATOR:
        raise UsageError(f"A separator has 1 to {MAX_SEPARATOR} bytes; give another one.")
    return separator


def split(text: bytes, separator: bytes) -> tuple[list[bytes], bool]:
    """(records, whether the text ends with a separator); `join` gives back the very same bytes.

    Empty records do not exist: separators in excess belong to the record
    before them (at the start of the text: to the one after them).
    """
    if not text:
        return [], False
    pieces = text.split(separator)
    ended = pieces[-1] == b"" and len(pieces) > 1
    if ended:
        pieces.pop()
    return _glued(pieces, separator), ended


def split_chunk(text: bytes, separator: bytes) -> list[bytes]:
    """The records of one chunk; a separator at its end belongs to the last of them."""
    records, ended = split(text, separator)
    if not records:
        return [b""]
    return [*records[:-1], records[-1] + separator] if ended else records


def _glued(pieces: list[bytes], separator: bytes) -> list[bytes]:
    if b"" not in pieces:
        return pieces
    records: list[bytes] = []
    excess = b""
    for piece in pieces:
        if piece:
            records.append(excess + piece)
            excess = b""
        elif records:
            records[-1] += separator
        else:
            excess += separator
    return records or [excess[len(separator) :]]


def join(records: Iterable[bytes], separator: bytes, ended: bool) -> bytes:
    """The text that `split` took apart."""
    return separator.join(records) + (separator if ended else b"")


def namer(rule: str | None) -> Namer:
    """What names a record: a regular expression (its first group, else the match), or the first line."""
    if rule is None:
        return first_value
    if len(rule.encode()) > MAX_NAME_RULE:
        raise UsageError(f"The expression for names is over {MAX_NAME_RULE} bytes; write a shorter one.")
    budget = _SlowSearches()
    try:
        pattern = regex.compile(rule.encode(), regex.MULTILINE)
    except (regex.error, RecursionError, OverflowError, MemoryError) as wrong:
        raise UsageError(f"The expression for names is not a regular expression ({wrong}); correct it.") from None

    def by_rule(record: bytes) -> bytes:
        found = budget.search(pattern, record)
        if found is None:
            start = record[:60].decode(errors="replace")
            raise UsageError(f"No name in the record that begins {start!r}; give an expression that fits every record.")
        return found[1] or b"" if pattern.groups else found[0]

    return by_rule


class _SlowSearches:
    """Expressions come from strangers, in the header of a file: a search has a time limit, slow ones one together.

    It is time of the processor: a busy machine makes no expression slow.
    """

    def __init__(self) -> None:
        self._spent = 0.0

    def search(self, pattern: regex.Pattern[bytes], record: bytes) -> regex.Match[bytes] | None:
        """The first match; `UsageError` when finding out takes too long."""
        started = time.thread_time()
        try:
            found = pattern.search(record, timeout=_NAME_SECONDS)
        except (TimeoutError, MemoryError):
            self._spent = _SLOW_IN_ALL
            found = None
        seconds = time.thread_time() - started
        self._spent += seconds if seconds > _SLOW_SECONDS else 0.0
        if self._spent >= _SLOW_IN_ALL:
            raise UsageError("The expression for names takes too long; write a simpler one.")
        return found


def first_value(record: bytes) -> bytes:
    """`Field: value` gives the value, any other first line itself."""
    line = record.lstrip(b"\r\n").split(b"\n", 1)[0].rstrip(b"\r")
    found = _VALUE.match(line)
    return line[found.end() :] if found else line
