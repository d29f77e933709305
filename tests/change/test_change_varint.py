"""Numbers in few bytes: one by one and many at once give the same."""

from hypothesis import given
from hypothesis import strategies as st

from letopis.binary import ByteReader, append_varint, encode_varints

NUMBERS = st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 300), max_size=60)


@given(NUMBERS)
def test_many_numbers_are_written_as_one_by_one(numbers):
    out = bytearray()
    for number in numbers:
        append_varint(out, number)
    assert encode_varints(numbers) == bytes(out)


@given(NUMBERS)
def test_numbers_come_back(numbers):
    reader = ByteReader(encode_varints(numbers), what="list")
    assert [reader.varint(2**63) for _ in numbers] == numbers
    reader.finish()


def test_numbers_are_written_as_ever():
    numbers = [0, 1, 127, 128, 300, 16383, 16384, 2**40, 2**63 - 1]
    assert encode_varints(numbers).hex() == "00017f8001ac02ff7f808001808080808020ffffffffffffffff7f"
