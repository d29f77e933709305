"""One content as the body of a record: the quick way in, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import brotli
from backports.zstd import ZstdCompressor, ZstdError, compress, decompress

from letopis.errors import Damaged
from letopis.store.layout import Method

LARGE = 4 << 20
"""Contents above this size are kept in pieces."""
PIECE = 1 << 20
_LEVEL = 3
_WHOLE: Final = ZstdCompressor.FLUSH_FRAME
# Looking a member up in its enumeration is slow in Python 3.11: done once.
_STORED, _ZSTD, _BROTLI, _CODEC = Method.STORED, Method.ZSTD, Method.BROTLI, Method.CODEC
_LABELS = {int(method): method.label for method in Method}
_OWN = ("stored", "zstd", "brotli")


class Squeezed(NamedTuple):
    """A body as it is kept, and the name of what made it so small."""

    method: Method
    body: bytes
    label: str


class Squeezer:
    """Compresses single contents; keeps one zstd context, since making one costs as much as a small page.

    Of the methods named, brotli is left to compaction, and lossy ones never
    take part: what comes in is the newest version. Any others slow down
    putting by as much as they take.
    """

    def __init__(self, methods: Sequence[str] = ("zstd",)) -> None:
        self._zstd = ZstdCompressor(_LEVEL) if "zstd" in methods else None
        self._others = [name for name in methods if name not in _OWN]
        if self._others:
            _codecs().contest(b"", self._others)

    def squeeze(self, body: bytes) -> Squeezed:
        """The smallest form; the stored one takes part in any case."""
        best = Squeezed(_STORED, body, "stored")
        if self._zstd is not None:
            self._zstd.set_pledged_input_size(len(body))
            packed = self._zstd.compress(body, _WHOLE)
            best = Squeezed(_ZSTD, packed, "zstd") if len(packed) < len(body) else best
        if self._others:
            won = _codecs().contest(body, self._others)
            form = Squeezed(Method.CODEC, bytes((won.codec.id,)) + won.encoded, won.codec.name)
            best = form if len(form.body) < len(best.body) else best
        return best


def _codecs() -> Any:
    # Late on purpose: the codecs take long to load, and few archives name any of them.
    from letopis import codec  # noqa: PLC0415

    return codec


def label_of(method: int, body: bytes) -> str:
    """The name of the method of a body, as people see it."""
    return str(_codecs().by_id(body[0]).name) if method == _CODEC and body else _LABELS[method]


def expand(method: int, body: bytes) -> bytes:
    """The content of a body that stands for itself."""
    if method == _STORED:
        return body
    if method == _CODEC:
        return bytes(_codecs().by_id(body[0] if body else 0).decode(body[1:]))
    if method not in (_ZSTD, _BROTLI):
        raise Damaged(f"a record names the method {method}, which does not stand alone; run verify")
    try:
        return decompress(body) if method == _ZSTD else bytes(brotli.decompress(body))
    except (ZstdError, brotli.error) as error:
        raise Damaged(f"a record cannot be decompressed ({error}); run verify") from error


def smallest(body: bytes) -> tuple[Method, bytes]:
    """The shortest form that stands for itself, whatever it costs to make."""
    forms = [(Method.STORED, body), (Method.ZSTD, compress(body, 19)), (Method.BROTLI, brotli.compress(body))]
    return min(forms, key=lambda form: len(form[1]))
