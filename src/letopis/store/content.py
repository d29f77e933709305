"""One content as the body of a record: the quick way in, and the way back."""

from __future__ import annotations

import brotli
from backports.zstd import ZstdCompressor, ZstdError, compress, decompress

from letopis.errors import Damaged
from letopis.store.layout import Method

LARGE = 4 << 20
"""Contents above this size are kept in pieces."""
PIECE = 1 << 20
_LEVEL = 3


class Squeezer:
    """Compresses single contents; keeps one zstd context, since making one costs as much as a small page."""

    def __init__(self, level: int = _LEVEL) -> None:
        self._zstd = ZstdCompressor(level)

    def squeeze(self, body: bytes) -> tuple[Method, bytes]:
        """The smaller of the stored and the compressed form."""
        self._zstd.set_pledged_input_size(len(body))
        packed = self._zstd.compress(body, ZstdCompressor.FLUSH_FRAME)
        return (Method.ZSTD, packed) if len(packed) < len(body) else (Method.STORED, body)


def expand(method: int, body: bytes) -> bytes:
    """The content of a body that stands for itself."""
    if method == Method.STORED:
        return body
    if method not in (Method.ZSTD, Method.BROTLI):
        raise Damaged(f"a record names the method {method}, which does not stand alone; run verify")
    try:
        return decompress(body) if method == Method.ZSTD else bytes(brotli.decompress(body))
    except (ZstdError, brotli.error) as error:
        raise Damaged(f"a record cannot be decompressed ({error}); run verify") from error


def smallest(body: bytes) -> tuple[Method, bytes]:
    """The shortest form that stands for itself, whatever it costs to make."""
    forms = [(Method.STORED, body), (Method.ZSTD, compress(body, 19)), (Method.BROTLI, brotli.compress(body))]
    return min(forms, key=lambda form: len(form[1]))
