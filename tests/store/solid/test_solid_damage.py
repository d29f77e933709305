"""Frames that no encoder wrote: noticed or harmless, never a crash, a hang or unbounded memory."""

import os
import random
import tracemalloc
from contextlib import suppress

import brotli
import pytest

from letopis.errors import Damaged, LetopisError, NewerFormat
from letopis.store import solid
from letopis.store.solid import frame_format, stream
from letopis.store.solid.frame_writer import encode_solid
from letopis.store.solid.stream import SolidFlags, SolidHead

ROUNDS = 20_000 if os.environ.get("LETOPIS_LONG") else 400
PAGE = b'<html>\n<p class="a">one</p>\n<p>two</p>\n'


def frame(scripts, newest=PAGE, residue_length=None, newest_length=None):
    """A first frame with these bytes as its residue."""
    parts = stream.encode_stream([newest, scripts] if scripts else [newest])
    lengths = newest_length or len(newest), len(scripts) if residue_length is None else residue_length
    return stream.encode_head(SolidHead(SolidFlags.HOLDS_NEWEST, 0, len(parts[0]), *lengths)) + b"".join(parts)


def operation(copied, count, seek, text=b""):
    return (
        frame_format.encode_number(copied) + frame_format.encode_number(count) + frame_format.encode_signed(seek) + text
    )


BROKEN = {
    "empty": b"",
    "head only": b"\x21",
    "number cut off": b"\x21\xfa",
    "number is no number": b"\x21\x00\x00\x00",
    "stream is noise": stream.encode_head(SolidHead(SolidFlags.HOLDS_NEWEST, 0, 4, 40, 40)) + b"\xff" * 20,
    "stream shorter than told": frame(b"\x01\0", newest_length=len(PAGE) + 5),
    "stream longer than told": frame(b"\x01" * 50 + b"\0", residue_length=3),
    "lengths beyond all reason": stream.encode_head(SolidHead(SolidFlags.HOLDS_NEWEST, 0, 4, 1 << 40, 0)) + b"\x03",
    "version without end": frame(b"\x01\x01"),
    "base outside the frame": frame(frame_format.encode_number(5) + b"\0"),
    "no reference": frame(b"\0"),
    "copies past its base": frame(frame_format.encode_number(0) + operation(200, 0, 0) + b"\0"),
    "seeks before its base": frame(frame_format.encode_number(0) + operation(0, 0, -3) + b"\0"),
    "seeks behind its base": frame(frame_format.encode_number(0) + operation(0, 0, 300) + b"\0"),
    "literal cut off": frame(frame_format.encode_number(0) + operation(0, 3, 0, b"one\ntwo") + b"\0"),
    "opened run without end": frame(frame_format.encode_number(0) + operation(0, 1, 0, b"\x01\x04abc\n") + b"\0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_frames_raise_damaged(name):
    with pytest.raises(Damaged):
        solid.decode(BROKEN[name], 1)
    with pytest.raises(Damaged):
        solid.decode_all(BROKEN[name])


@pytest.mark.parametrize("first", [0x00, 0x39, 0x41, 0xFF])
def test_unknown_formats_are_named_as_newer(first):
    with pytest.raises(NewerFormat):
        solid.needs_newest(bytes((first, 5, 5, 5)))


def test_later_frame_without_newest_raises_damaged():
    rng = random.Random(1)
    later = encode_solid([rng.randbytes(4000).hex().encode() for _ in range(8)], bound=10_000)[1]
    with pytest.raises(Damaged):
        solid.decode(later.data, 0)
    with pytest.raises(Damaged):
        solid.newest_span(later.data)


def test_a_bomb_costs_what_the_frame_declares():
    bomb = brotli.compress(bytes(50_000_000), quality=1)
    data = stream.encode_head(SolidHead(SolidFlags.HOLDS_NEWEST, 0, len(bomb), 1000, 0)) + bomb
    tracemalloc.start()
    with pytest.raises(Damaged):
        solid.decode(data, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_copies_of_copies_do_not_grow_without_bound():
    # Each version holds its base twice: after forty of them it would have 10^12 tokens.
    twice = frame_format.encode_number(0) + b"%s" + b"\0"
    scripts, count = b"", 4
    for _ in range(40):
        scripts += twice % operation(count, 0, -count)
        count *= 2
    with pytest.raises(Damaged):
        solid.decode(frame(scripts), 40)


def test_flipped_bytes_raise_or_give_some_bytes():
    rng = random.Random(5)
    bodies = [b"<p>%d</p>\n" % (number * 7919) * 30 for number in range(8)]
    data = encode_solid(bodies)[0].data
    for _ in range(ROUNDS):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        try:
            solid.decode(bytes(broken), rng.randrange(9))
            solid.decode_all(bytes(broken), b"newest", b"known")
        except LetopisError:
            continue


def test_every_cut_of_a_frame_raises_or_takes_nothing_but_padding():
    bodies = [b"<p>%d</p>\n" % (number * 7919) * 30 for number in range(4)]
    data = encode_solid(bodies)[0].data
    for end in range(len(data) - 2):
        with pytest.raises(Damaged):
            solid.decode(data[:end], 3)
    for end in (len(data) - 2, len(data) - 1):
        with suppress(Damaged):
            assert solid.decode(data[:end], 3).body == bodies[3]
