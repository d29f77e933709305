"""Numbers in few bytes: one by one and many at once give the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from letopis.change.varint import Reader, packed, put_varint

NUMBERS = st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 300), max_size=60)


@given(NUMBERS)
def test_many_numbers_are_written_as_one_by_one(numbers):
    out = bytearray()
    for number in numbers:
        put_varint(out, number)
    assert packed(np.array(numbers, np.uint64)) == bytes(out)


@given(NUMBERS)
def test_numbers_come_back(numbers):
    reader = Reader(packed(np.array(numbers, np.uint64)), "list")
    assert [reader.varint(2**63) for _ in numbers] == numbers
    reader.finish()
