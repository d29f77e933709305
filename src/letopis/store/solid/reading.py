"""Reading versions out of frames: bounded work, and Damaged for anything that no encoder wrote.

The format is written down in docs/internals/solid-frames.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from letopis.errors import Damaged, UnknownVersion
from letopis.store.solid import marks, residue, stream, tokens, tokenwise
from letopis.store.solid.known import check_of
from letopis.store.solid.layout import MOST_BYTES, Flags, Head, flags_of, head_of
from letopis.store.solid.tokens import END_SETS
from letopis.store.values import Decoded

METHOD = "solid"
# Chains with so many bytes of scripts are worth arrays.
_MUCH = 1 << 17


class _Opened(NamedTuple):
    """A frame behind the entropy coder: the newest form and one script a version."""

    newest: bytes
    ends: bytes
    scripts: list[bytes]
    longest: int
    """No token has more bytes."""
    made: int


def needs_newest(data: bytes) -> bool:
    """Whether versions of this frame are differences from a newest version that the frame does not hold."""
    return not flags_of(data) & Flags.HOLDS_NEWEST


def newest_span(data: bytes) -> int:
    """How many leading bytes of a first frame suffice for `decode(..., 0)`; 16 bytes of the frame tell it."""
    head = head_of(data)
    if not head.holds_newest:
        raise Damaged("this frame does not hold the newest version; read the first frame of the document")
    return head.start + head.newest_part


def needs_known(data: bytes) -> bool:
    """Whether the frame can be read only with the known text of its site."""
    return bool(flags_of(data) & Flags.KNOWN)


def decode(data: bytes, slot: int, newest: bytes | None = None, known: bytes = b"") -> Decoded:
    """The version at `slot` of a frame; slot 0 of a first frame costs its own bytes only.

    `newest` is the body of the newest version, needed where `needs_newest`
    says so, and `known` the site's known text where `needs_known` does.
    Raises UnknownVersion for a slot outside the frame.
    """
    head = head_of(data)
    known = _fitting(head, known)
    if slot < 0:
        raise UnknownVersion(f"a frame has no version {slot}; count from 0")
    if slot == 0 and head.holds_newest:
        part = memoryview(data)[head.start : head.start + head.newest_part]
        form = stream.text_of(part, head.newest_length, known)
        return Decoded(_newest_body(head, form), len(form) + stream.overhead(known), METHOD)
    # In a later frame the newest stands outside, so its first version is number 1 too.
    index = slot if head.holds_newest else slot + 1
    opened = _open(data, head, newest, known, index)
    if index > len(opened.scripts):
        raise UnknownVersion(f"the frame holds no version {slot}; ask for a smaller number")
    return Decoded(_version(opened, index), opened.made, METHOD)


def decode_known(data: bytes) -> bytes:
    """The known text of a site; keep it at hand, each read of its documents needs it."""
    return decode(data, 0).body


def decode_all(data: bytes, newest: bytes | None = None, known: bytes = b"") -> list[bytes]:
    """All versions of a frame, newest first."""
    head = head_of(data)
    opened = _open(data, head, newest, _fitting(head, known), None)
    forms = [tokens.cut(opened.newest, opened.ends)]
    for index, script in enumerate(opened.scripts, 1):
        base, at = residue.base_of(script, index)
        forms.append(tokenwise.apply(list(forms[base]), script, at, opened.ends))
    return [_body(opened, form) for form in forms[0 if head.holds_newest else 1 :]]


def _fitting(head: Head, known: bytes) -> bytes:
    """The known text if the frame wants it; raises Damaged when it is not the one the frame was made with."""
    if not head.flags & Flags.KNOWN:
        return b""
    if head.check != check_of(known):
        raise Damaged("a frame was read with another text than its site's known text; run verify")
    return known


def _open(data: bytes, head: Head, newest: bytes | None, known: bytes, wanted: int | None) -> _Opened:
    """The frame behind the coder, as far as the wanted version; None wants all."""
    form = b""
    if not head.holds_newest:
        if newest is None:
            raise Damaged("a frame of old versions was read without the newest version; read that first")
        form = marks.opened(newest) if head.flags & Flags.OPENED else marks.escape(newest)
    text = _decoded(data, head, known, form, wanted)
    made = len(text) + stream.overhead(known, form)
    if head.holds_newest:
        form, text = text[: head.newest_length], text[head.newest_length :]
        form = form if head.flags & Flags.OPENED else marks.escape(form)
    *scripts, rest = text.split(residue.STOP)
    if rest and (wanted is None or len(scripts) < wanted):
        raise Damaged("a solid frame ends inside a version; restore this pack from a copy")
    longest = max(map(len, (form, *scripts))) + 1
    return _Opened(form, END_SETS[head.ends], scripts, longest, made)


def _decoded(data: bytes, head: Head, known: bytes, newest: bytes, wanted: int | None) -> bytes:
    """The frame's text up to the end of the wanted version or a little further."""
    out = []
    passed, stops = -head.newest_length, 0
    whole = memoryview(data)[head.start :]
    for piece in stream.pieces(whole, head.newest_length + head.residue_length, known, newest):
        out.append(piece)
        # NULs of the newest itself, which may be binary, do not count.
        stops += piece.count(residue.STOP, max(0, -passed))
        passed += len(piece)
        if wanted is not None and stops >= wanted:
            break
    return b"".join(out)


def _version(opened: _Opened, index: int) -> bytes:
    """The body of one version: its chain of bases is followed to the newest, then applied backwards."""
    chain: list[tuple[bytes, int]] = []
    while index:
        script = opened.scripts[index - 1]
        index, at = residue.base_of(script, index)
        chain.append((script, at))
    if sum(len(script) for script, _ in chain) > _MUCH:
        return _in_bulk(opened, [script[at:] for script, at in reversed(chain)])
    form = tokens.cut(opened.newest, opened.ends)
    for script, at in reversed(chain):
        form = tokenwise.apply(form, script, at, opened.ends)
    return _body(opened, form)


def _in_bulk(opened: _Opened, scripts: Sequence[bytes]) -> bytes:
    # Loaded late on purpose: numpy pays only where there is much to do.
    from letopis.store.solid.bulk import applied  # noqa: PLC0415

    return marks.restored(applied(opened.newest, scripts, opened.ends))


def _body(opened: _Opened, form: list[bytes]) -> bytes:
    # Usual pages are far below, however long each of their tokens might be: no need to measure them.
    if len(form) * opened.longest > MOST_BYTES and sum(map(len, form)) > MOST_BYTES:
        raise Damaged("a version unfolds to more than a gigabyte; restore this pack from a copy")
    return marks.restored(tokens.joined(form))


def _newest_body(head: Head, form: bytes) -> bytes:
    return marks.restored(form) if head.flags & Flags.OPENED else form
