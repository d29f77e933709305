"""One chunk: text to stored bytes and back, with the dictionary and nothing else."""

from __future__ import annotations

from backports import zstd
from backports.zstd import CompressionParameter as Parameter

from letopis.errors import Damaged, UsageError
from letopis.zrec import digits, varint
from letopis.zrec.dictionary import LEVEL
from letopis.zrec.limits import BLOCK_TEXT, MAX_TEXT

_STORED, _FRAME, _BLOCK = 0, 1, 2
_TAIL_UNIT = 4
_FRAME_HEAD = b"\x28\xb5\x2f\xfd\x00\x38"
"""zstd's magic number, no content size, checksum or dictionary number, and a window of 128 KiB.

The compressor names a smaller window for a shorter text, which changes nothing else."""

_BLOCK_HEAD = 3
_OPTIONS: dict[int, int] = {
    Parameter.compression_level: LEVEL,
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
            raise Damaged(f"The dictionary of the zrec file is none ({wrong}); get a fresh copy.") from None
        self._compressor: zstd.ZstdCompressor | None = None

    def encode(self, text: bytes) -> bytes:
        """The shortest of the stored forms. Same text and dictionary, same bytes."""
        if len(text) > MAX_TEXT:
            raise UsageError(f"A chunk of records is over {MAX_TEXT} bytes; use another separator or smaller groups.")
        forms = [varint.encode(_STORED) + text]
        block = self._block(text)
        forms.append(block if block else varint.encode(_FRAME) + self._frame(text))
        return min(forms, key=len)

    def decode(self, stored: bytes) -> bytes:
        """The text; `Damaged` when the bytes are not a chunk of this dictionary."""
        form, at = varint.decode(stored, 0)
        if form == _STORED:
            return stored[at:]
        if form == _FRAME:
            return self._unpacked(stored[at:], MAX_TEXT)
        return self._from_block(stored[at:], (form - _BLOCK) * _TAIL_UNIT)

    def _block(self, text: bytes) -> bytes:
        """The form without frame and block header, b"" when the text does not fit one compressed block."""
        marked, tail = digits.set_aside(text)
        if len(marked) > BLOCK_TEXT:
            return b""
        frame = self._frame(marked)
        start = len(_FRAME_HEAD)
        head = int.from_bytes(frame[start : start + _BLOCK_HEAD], "little")
        block = frame[start + _BLOCK_HEAD :]
        if frame[: start - 1] != _FRAME_HEAD[:-1] or head != _block_head(len(block)):
            return b""
        return varint.encode(_BLOCK + len(tail) // _TAIL_UNIT) + block + tail

    def _from_block(self, rest: bytes, tail: int) -> bytes:
        size = len(rest) - tail
        if not 0 < size <= BLOCK_TEXT:
            raise Damaged("A chunk of the zrec file has no room for its text; get a fresh copy.")
        frame = _FRAME_HEAD + _block_head(size).to_bytes(_BLOCK_HEAD, "little") + rest[:size]
        return digits.put_back(self._unpacked(frame, BLOCK_TEXT), rest[size:])

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
