from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.change.diff_formats import apply_binary_delta, make_binary_delta, read_delta_header
from letopis.errors import Damaged, DocumentTooLarge, LetopisError, NewerFormat, UsageError

GOLDEN = Path(__file__).parent / "golden"
OLD = b"".join(b"line %d of the old file\n" % n for n in range(60))
NEW = OLD.replace(b"line 7 of the old", b"line 7 of the new").replace(b"line 30 of the old file\n", b"")


@given(st.binary(max_size=200), st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_bytes_survive(old: bytes, new: bytes) -> None:
    assert apply_binary_delta(old, make_binary_delta(old, new)) == new


@given(st.integers(0, 400), st.integers(1, 255))
@settings(max_examples=200, deadline=None)
def test_a_flipped_byte_is_noticed(at: int, flip: int) -> None:
    delta = bytearray(make_binary_delta(OLD, NEW))
    delta[at % len(delta)] ^= flip
    with contextlib.suppress(LetopisError):
        assert apply_binary_delta(OLD, bytes(delta)) == NEW


def test_a_difference_that_promises_too_much_is_refused() -> None:
    with pytest.raises(DocumentTooLarge):
        apply_binary_delta(OLD, make_binary_delta(OLD, NEW), max_bytes=100)


def test_golden_files_of_earlier_releases_are_read() -> None:
    """Written once by the first release; never to be made again."""
    assert apply_binary_delta(OLD, (GOLDEN / "binary-v1.delta").read_bytes()) == NEW


def test_binary_differences_of_like_files_are_small() -> None:
    old = random.Random(1).randbytes(200_000)
    new = old[:90_000] + b"inserted" + old[95_000:]
    delta = make_binary_delta(old, new)
    assert len(delta) < 300
    assert read_delta_header(delta).method == 2


def test_the_whole_file_is_kept_when_that_is_smaller() -> None:
    rand = random.Random(2)
    assert read_delta_header(make_binary_delta(rand.randbytes(1000), rand.randbytes(1000))).method == 0
    assert read_delta_header(make_binary_delta(b"", b"abc " * 1000)).method == 1


def test_a_difference_is_not_applied_to_another_file() -> None:
    with pytest.raises(UsageError, match="another old file"):
        apply_binary_delta(OLD + b"x", make_binary_delta(OLD, NEW))


BROKEN = {
    "empty": b"",
    "not-a-difference": b"GIF89a" + bytes(100),
    "header-cut": make_binary_delta(OLD, NEW)[:40],
    "unknown-method": make_binary_delta(OLD, NEW)[:5] + b"\x09" + make_binary_delta(OLD, NEW)[6:],
    "version-zero": make_binary_delta(OLD, NEW)[:4] + b"\x00" + make_binary_delta(OLD, NEW)[5:],
    "payload-cut": make_binary_delta(OLD, NEW)[:-3],
    "payload-tail": make_binary_delta(OLD, NEW) + b"tail",
    "payload-garbage": make_binary_delta(OLD, NEW)[:78] + b"garbage",
    "wrong-result": make_binary_delta(OLD, NEW)[:38] + bytes(32) + make_binary_delta(OLD, NEW)[70:],
    "wrong-size": make_binary_delta(OLD, NEW)[:70] + (5).to_bytes(8, "little") + make_binary_delta(OLD, NEW)[78:],
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_differences_are_named_damaged(fault: str) -> None:
    with pytest.raises(Damaged):
        apply_binary_delta(OLD, BROKEN[fault])


def test_a_later_format_is_told_apart() -> None:
    delta = make_binary_delta(OLD, NEW)
    with pytest.raises(NewerFormat):
        apply_binary_delta(OLD, delta[:4] + b"\x02" + delta[5:])
