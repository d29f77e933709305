"""The form in which bodies are coded: free of NUL, with base64 text opened.

Byte 1 announces a mark; no other byte of a body changes. NUL is kept out of
the form because it ends a version in the residue. Pages that embed HTML as
base64 hide it from every coder, so such runs stand opened in the form; only
runs that encode back to the very same text are opened, so the way back is exact.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from letopis.errors import Damaged

_MARK = b"\x01"
_NUL = b"\x01\x02"
_ONE = b"\x01\x03"
_OPEN = b"\x01\x04"
_SHUT = b"\x01\x05"
_MEANT = {_NUL: b"\0", _ONE: _MARK}
_MANY, _BEGINNING = 500, 1 << 16

_RUN = re.compile(rb"[A-Za-z0-9+/]{64,}={0,2}")
# Runs are found in a copy that tells only which bytes may stand in one: ten times as fast as the expression.
_KINDS = bytes(1 if _RUN.fullmatch(bytes((value,)) * 64) else 0 for value in range(256))
_LONG = b"\x01" * 64
_TEXT = bytes(range(32, 127)) + b"\t\n\r"


def escape(body: bytes) -> bytes:
    """The body with NUL and byte 1 marked and nothing opened."""
    if b"\0" not in body and _MARK not in body:
        return body
    return body.replace(_MARK, _ONE).replace(b"\0", _NUL)


def opened(body: bytes) -> bytes:
    """The body in coded form; `restored` gives the body back exactly."""
    form = escape(body)
    return b"".join(_opened_parts(form, form.translate(_KINDS)))


def _opened_parts(form: bytes, kinds: bytes) -> Iterator[bytes | memoryview]:
    view, start = memoryview(form), 0
    while (at := kinds.find(_LONG, start)) >= 0:
        yield view[start:at]
        found = _RUN.match(form, at)
        assert found is not None
        yield _open_run(found)
        start = found.end()
    yield view[start:]


def restored(form: bytes) -> bytes:
    """The body whose form this is; raises Damaged for what no body gives."""
    if _MARK not in form:
        return form
    if _is_full_of_marks(form):
        first, *runs = form.split(_OPEN)
        return _plain(first) + b"".join(map(_shut_run, runs))
    return b"".join(_parts(form))


def _is_full_of_marks(form: bytes) -> bool:
    """Whether the body is no text: such bodies have marks everywhere, from their beginning on."""
    at = -1
    for _ in range(_MANY):
        # Counting them all takes ten times as long where there are few.
        at = form.find(_MARK, at + 1, _BEGINNING)
        if at < 0:
            return False
    return True


def _parts(form: bytes) -> Iterator[bytes | memoryview]:
    """Mark by mark: what stands between few marks is never looked at, nor copied twice."""
    view, start = memoryview(form), 0
    while (at := form.find(_MARK, start)) >= 0:
        yield view[start:at]
        mark, start = form[at : at + 2], at + 2
        if mark == _OPEN:
            end = form.find(_SHUT, start)
            if end < 0:
                raise _endless()
            yield binascii.b2a_base64(_plain(form[start:end]), newline=False)
            start = end + 2
        elif mark in _MEANT:
            yield _MEANT[mark]
        else:
            raise Damaged("a mark in a solid frame means nothing; restore this pack from a copy")
    yield view[start:]


def _open_run(found: re.Match[bytes]) -> bytes:
    run = found.group()
    try:
        inner = binascii.a2b_base64(run, strict_mode=True)
    except binascii.Error:
        return run
    # Pictures and keys gain nothing from being opened: only text is.
    legible = len(inner) - len(inner.translate(None, _TEXT))
    if legible * 10 < len(inner) * 9 or binascii.b2a_base64(inner, newline=False) != run:
        return run
    return _OPEN + escape(inner) + _SHUT


def _shut_run(part: bytes) -> bytes:
    inner, shut, after = part.partition(_SHUT)
    if not shut:
        raise _endless()
    return binascii.b2a_base64(_plain(inner), newline=False) + _plain(after)


def _endless() -> Damaged:
    return Damaged("an opened base64 run has no end; restore this pack from a copy")


def _plain(form: bytes) -> bytes:
    if _MARK not in form:
        return form
    return form.replace(_NUL, b"\0").replace(_ONE, _MARK)
