"""Inside a solid frame: tokens, numbers, and the operations that make an old version from its base.

A token ends with one byte of a set of ends; numbers are written in bytes that end neither a token nor a version. A
version is a reference to its base, then operations (copy N tokens, insert K, move the cursor), then NUL.
The format is written down in docs/internals/solid-frames.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from letopis.errors import Damaged

TOKEN_END = b"\n"
TOKEN_END_SETS = (b'\n>"', b'\n>"/', b'\n>"/?&')


def cut_tokens(form: bytes, ends: bytes) -> list[bytes]:
    """All tokens of a form, which has no NUL, with the closing newline added."""
    cut = split_tokens(form + TOKEN_END, ends)
    cut.pop()
    return cut


def split_tokens(text: bytes, ends: bytes) -> list[bytes]:
    """The tokens of a text without NUL, and at last what follows them, be it empty."""
    # Three times as fast as a regular expression, and old versions are read through here.
    for value in ends:
        end = bytes((value,))
        text = text.replace(end, end + b"\0")
    return text.split(b"\0")


def join_tokens(tokens: list[bytes]) -> bytes:
    """The form that these tokens were cut from."""
    return b"".join(tokens)[:-1]


_DIGITS = bytes(value for value in range(256) if value not in b'\0\n"&/>?')
_BASE = len(_DIGITS)
SHORT_NUMBERS, _LONG_NUMBERS = 185, 241
_TWO_FROM = SHORT_NUMBERS
_LONG_FROM = SHORT_NUMBERS + (_LONG_NUMBERS - SHORT_NUMBERS) * _BASE
# The lengths of most pages are three bytes long: read without a loop.
_THREE_BYTES = _LONG_NUMBERS + 1
# Bytes that are no digit rank so high that reading stumbles over them.
_NO_DIGIT = 1 << 80
DIGIT_RANK = [_DIGITS.index(value) if value in _DIGITS else _NO_DIGIT for value in range(256)]


def _encoded_number(value: int) -> bytes:
    if value < SHORT_NUMBERS:
        return bytes((_DIGITS[value],))
    if value < _LONG_FROM:
        high, low = divmod(value - _TWO_FROM, _BASE)
        return bytes((_DIGITS[SHORT_NUMBERS + high], _DIGITS[low]))
    digits = bytearray()
    rest = value - _LONG_FROM
    while rest or not digits:
        rest, digit = divmod(rest, _BASE)
        digits.append(_DIGITS[digit])
    digits.append(_DIGITS[_LONG_NUMBERS + len(digits) - 1])
    return bytes(reversed(digits))


_TABLE = tuple(_encoded_number(value) for value in range(4096))


def encode_number(value: int) -> bytes:
    """The bytes of a number from 0 to about 10^19."""
    return _TABLE[value] if value < len(_TABLE) else _encoded_number(value)


def encode_signed(value: int) -> bytes:
    """The bytes of a number that may be negative; small ones either side of zero stay short."""
    return encode_number(value * 2 if value >= 0 else -value * 2 - 1)


def decode_signed(value: int) -> int:
    """The number whose `signed` form reads as `value`."""
    return -((value + 1) >> 1) if value & 1 else value >> 1


def read_number(text: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; raises Damaged where the text has none."""
    try:
        rank = DIGIT_RANK[text[at]]
        if rank < SHORT_NUMBERS:
            return rank, at + 1
        if rank < _LONG_NUMBERS:
            low = DIGIT_RANK[text[at + 1]]
            if low < _BASE:
                return _TWO_FROM + (rank - SHORT_NUMBERS) * _BASE + low, at + 2
        elif rank == _THREE_BYTES:
            value = DIGIT_RANK[text[at + 1]] * _BASE + DIGIT_RANK[text[at + 2]]
            if value < _NO_DIGIT:
                return value + _LONG_FROM, at + 3
        elif rank < _NO_DIGIT:
            end = at + 2 + rank - _LONG_NUMBERS
            value = 0
            for digit in text[at + 1 : end]:
                value = value * _BASE + DIGIT_RANK[digit]
            if value < _NO_DIGIT and end <= len(text):
                return value + _LONG_FROM, end
    except IndexError:
        pass
    raise Damaged("a number is invalid in a solid frame; restore this pack from a copy")


VERSION_STOP = b"\0"
# References 0-7 name the versions before this one, 8 the newest, 9 and up versions from the eighth back on.
NEWEST_REFERENCE = 8


def encode_reference(back: int, newest_back: int) -> bytes:
    """The number that names a base `back` versions before the last one; the newest is `newest_back` before it."""
    if back == newest_back and back:
        return encode_number(NEWEST_REFERENCE)
    return encode_number(back if back < NEWEST_REFERENCE else back + 1)


def base_version(script: bytes, index: int) -> tuple[int, int]:
    """The number of the version that version `index` is written against, and where its operations begin.

    Version 0 is the newest. Raises Damaged for a base that does not come before.
    """
    named, at = read_number(script, 0)
    base = 0 if named == NEWEST_REFERENCE else index - 1 - named + (named > NEWEST_REFERENCE)
    if base < 0:
        raise Damaged("a version refers to one outside its frame; restore this pack from a copy")
    return base, at


def script_misfit() -> Damaged:
    """The error for operations that their base cannot satisfy."""
    return Damaged("a difference does not fit its base; restore this pack from a copy")


# From so many pieces on, building anew is faster than changing in place.
_MANY_PIECES = 200
_NO_TOKENS: list[bytes] = []
# A hostile frame may copy copies of copies; a list of tokens never grows past this. Versions are written in tokens
# only while they have at most half of it, so that changing one into another in place never meets the limit.
MAX_TOKENS = 1 << 23
MAX_WRITTEN_TOKENS = MAX_TOKENS // 2


def apply_script(form: list[bytes], script: bytes, at: int, ends: bytes) -> list[bytes]:
    """The version that the operations from `at` on make of the base; raises Damaged when they do not fit.

    The base itself is changed into the version where that is possible, since
    a long chain of small differences is then cheap.
    """
    # Numbers hold no token end, so one cut finds all inserted tokens; numbers stand before the first of each run.
    pieces = split_tokens(script[at:], ends)
    if len(pieces) > _MANY_PIECES:
        return _rebuilt(form, pieces)
    cursor = 0
    operations = list(_read_operations(pieces))
    if any(seek < 0 for _, _, seek in operations):
        return _rebuilt(form, pieces)
    for copied, literal, seek in operations:
        cursor += copied
        if cursor + seek > len(form) or len(form) > MAX_TOKENS:
            raise script_misfit()
        form[cursor : cursor + seek] = literal
        cursor += len(literal)
    return form


def _rebuilt(form: list[bytes], pieces: list[bytes]) -> list[bytes]:
    out: list[bytes] = []
    cursor, have = 0, len(form)
    for copied, literal, seek in _read_operations(pieces):
        stop = cursor + copied
        out += form[cursor:stop]
        out += literal
        cursor = stop + seek
        if stop > have or not 0 <= cursor <= have or len(out) > MAX_TOKENS:
            raise script_misfit()
    out += form[cursor:]
    return out


def _read_operations(pieces: list[bytes]) -> Iterator[tuple[int, list[bytes], int]]:
    """Tokens to copy, tokens to insert, and how far the base's cursor moves after that."""
    index = at = 0
    piece = pieces[0]
    last = len(pieces) - 1
    rank, short, read, unsign = DIGIT_RANK, SHORT_NUMBERS, read_number, decode_signed
    while index < last or at < len(piece):
        # The three reads are spelled out for one-byte numbers: this loop is where old versions spend their time.
        head = piece[at : at + 3]
        if len(head) == 3 and (copied := rank[head[0]]) < short and (count := rank[head[1]]) < short:
            seek, at = (rank[head[2]], at + 3) if rank[head[2]] < short else read(piece, at + 2)
        else:
            copied, at = read(piece, at)
            count, at = read(piece, at)
            seek, at = read(piece, at)
        literal = _NO_TOKENS
        if count:
            literal = pieces[index : index + count]
            literal[0] = piece[at:]
            index, at = index + count, 0
            if index > last:
                raise Damaged("inserted text is truncated in a difference; restore this pack from a copy")
            piece = pieces[index]
        yield copied, literal, (unsign(seek) if seek else 0) + count
