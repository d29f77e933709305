"""Reading versions out of solid frames: bounded work, and `Damaged` for anything that no encoder wrote.

The format is written down in docs/internals/solid-frames.md. Where the package letopis-fast is installed, chains of
differences are applied in C; what does not fit there is read again here, which tells why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from letopis.errors import Damaged
from letopis.lazy import lazy
from letopis.store.solid import frame_format, stream
from letopis.store.solid.frame_format import MAX_TOKENS, TOKEN_END_SETS
from letopis.store.solid.stream import MAX_BODY_BYTES, SolidFlags, SolidHead, frame_flags, known_text_check, parse_head
from letopis.store.values import DecodedContent
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.store.solid import bulk
else:
    bulk = lazy("letopis.store.solid.bulk")

unfold: Callable[[bytes, bytes, int, bytes, int, int], bytes | None] | None
try:
    from letopis_fast.versions import unfold
except ImportError:
    unfold = None

METHOD_LABEL = "solid"
# Chains with so many bytes of scripts are worth arrays.
_BULK_SCRIPT_BYTES = 1 << 17


class _FrameText(NamedTuple):
    """A frame behind the entropy coder: the newest form, and the scripts of versions, each ended by a stop."""

    newest: bytes
    scripts: bytes
    made: int
    """Bytes of coder output."""


class _OpenedFrame(NamedTuple):
    """The same with one script a version."""

    newest: bytes
    ends: bytes
    scripts: list[bytes]
    longest: int
    """No token has more bytes."""


def needs_newest(data: bytes) -> bool:
    """Whether versions of this frame are differences from a newest version that the frame does not hold."""
    return not frame_flags(data) & SolidFlags.HOLDS_NEWEST


def newest_span(data: bytes) -> int:
    """How many leading bytes of a first frame suffice for `decode(..., 0)`; 16 bytes of the frame tell it."""
    head = parse_head(data)
    if not head.holds_newest:
        raise Damaged("this frame does not hold the newest version; read the first frame of the document")
    return head.start + head.newest_part


def needs_known(data: bytes) -> bool:
    """Whether the frame can be read only with the known text of its site."""
    return bool(frame_flags(data) & SolidFlags.KNOWN)


def decode(data: bytes, slot: int, newest: bytes | None = None, known: bytes = b"") -> DecodedContent:
    """The version at `slot` of a frame; slot 0 of a first frame costs its own bytes only.

    `newest` is the body of the newest version, needed where `needs_newest` says so, and `known` the site's known text
    where `needs_known` does. Raises Damaged for a slot outside the frame.
    """
    head = parse_head(data)
    known = _fitting(head, known)
    if slot < 0:
        raise _no_slot(slot)
    if slot == 0 and head.flags & SolidFlags.HOLDS_NEWEST:
        part = memoryview(data)[head.start : head.start + head.newest_part]
        form = stream.decode_whole_stream(part, head.newest_length, known)
        made = head.newest_length + (stream.stream_overhead(known) if known else 0)
        return DecodedContent(_newest_body(head, form), made, METHOD_LABEL)
    # In a later frame the newest stands outside, so its first version is number 1 too.
    index = slot if head.holds_newest else slot + 1
    text = _frame_text(data, head, newest, known, index)
    if unfold is not None:
        unfolded = unfold(text.newest, text.scripts, index, TOKEN_END_SETS[head.ends], MAX_TOKENS, MAX_BODY_BYTES)
        if unfolded is not None:
            return DecodedContent(stream.restored_body(unfolded), text.made, METHOD_LABEL)
    opened = _opened(text, head, index)
    if index > len(opened.scripts):
        raise _no_slot(slot)
    return DecodedContent(_version(opened, index), text.made, METHOD_LABEL)


def _no_slot(slot: int) -> Damaged:
    return Damaged(f"a solid frame has no slot {slot}; run verify")


def decode_all(data: bytes, newest: bytes | None = None, known: bytes = b"") -> list[bytes]:
    """All versions of a frame, newest first."""
    head = parse_head(data)
    opened = _opened(_frame_text(data, head, newest, _fitting(head, known), None), head, None)
    forms = [frame_format.cut_tokens(opened.newest, opened.ends)]
    for index, script in enumerate(opened.scripts, 1):
        base, at = frame_format.base_version(script, index)
        forms.append(frame_format.apply_script(list(forms[base]), script, at, opened.ends))
    return [_body(opened, form) for form in forms[0 if head.holds_newest else 1 :]]


def _fitting(head: SolidHead, known: bytes) -> bytes:
    """The known text if the frame wants it; raises Damaged when it is not the one the frame was made with."""
    if not head.flags & SolidFlags.KNOWN:
        return b""
    if head.check != known_text_check(known):
        raise Damaged("a frame was read with another text than its site's known text; run verify")
    return known


def _frame_text(data: bytes, head: SolidHead, newest: bytes | None, known: bytes, wanted: int | None) -> _FrameText:
    """The frame behind the coder, as far as the wanted version; None wants all."""
    form = b""
    if not head.holds_newest:
        if newest is None:
            raise Damaged("a frame of old versions was read without the newest version; read that first")
        form = stream.opened_form(newest) if head.flags & SolidFlags.OPENED else stream.escape_marks(newest)
    text = _decoded(data, head, known, form, wanted)
    made = len(text) + stream.stream_overhead(known, form)
    if head.holds_newest:
        form, text = text[: head.newest_length], text[head.newest_length :]
        form = form if head.flags & SolidFlags.OPENED else stream.escape_marks(form)
    return _FrameText(form, text, made)


def _opened(text: _FrameText, head: SolidHead, wanted: int | None) -> _OpenedFrame:
    """One script a version; raises Damaged where one that is wanted is cut off."""
    *scripts, rest = text.scripts.split(frame_format.VERSION_STOP)
    if rest and (wanted is None or len(scripts) < wanted):
        raise Damaged("a solid frame ends inside a version; restore this pack from a copy")
    longest = max(map(len, (text.newest, *scripts))) + 1
    return _OpenedFrame(text.newest, TOKEN_END_SETS[head.ends], scripts, longest)


def _decoded(data: bytes, head: SolidHead, known: bytes, newest: bytes, wanted: int | None) -> bytes:
    """The frame's text up to the end of the wanted version or a little further."""
    out = []
    passed, stops = -head.newest_length, 0
    whole = memoryview(data)[head.start :]
    for piece in stream.decode_stream(whole, head.newest_length + head.residue_length, known, newest):
        out.append(piece)
        # NULs of the newest itself, which may be binary, do not count.
        stops += piece.count(frame_format.VERSION_STOP, max(0, -passed))
        passed += len(piece)
        if wanted is not None and stops >= wanted:
            break
    return b"".join(out)


def _version(opened: _OpenedFrame, index: int) -> bytes:
    """The body of one version: its chain of bases is followed to the newest, then applied backwards."""
    chain: list[tuple[bytes, int]] = []
    while index:
        script = opened.scripts[index - 1]
        index, at = frame_format.base_version(script, index)
        chain.append((script, at))
    if sum(len(script) for script, _ in chain) > _BULK_SCRIPT_BYTES:
        return _in_bulk(opened, [script[at:] for script, at in reversed(chain)])
    form = frame_format.cut_tokens(opened.newest, opened.ends)
    for script, at in reversed(chain):
        form = frame_format.apply_script(form, script, at, opened.ends)
    return _body(opened, form)


def _in_bulk(opened: _OpenedFrame, scripts: Sequence[bytes]) -> bytes:
    return stream.restored_body(bulk.apply_scripts(opened.newest, scripts, opened.ends))


def _body(opened: _OpenedFrame, form: list[bytes]) -> bytes:
    # Usual pages are far below, however long each of their tokens might be: no need to measure them.
    if len(form) * opened.longest > MAX_BODY_BYTES and sum(map(len, form)) > MAX_BODY_BYTES:
        raise Damaged("a version unfolds to more than a gigabyte; restore this pack from a copy")
    return stream.restored_body(frame_format.join_tokens(form))


def _newest_body(head: SolidHead, form: bytes) -> bytes:
    return stream.restored_body(form) if head.flags & SolidFlags.OPENED else form
