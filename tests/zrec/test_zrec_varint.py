from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis import binary
from letopis.errors import Damaged
from letopis.zrec import chunk_index

numbers = st.integers(0, 2**63 - 1)


@given(st.lists(numbers), st.binary(max_size=5))
@settings(max_examples=100)
def test_column_reads_what_was_written_and_stops_there(values: list[int], rest: bytes) -> None:
    data = binary.encode_varints(values)
    assert chunk_index.decode_varint_column(data + rest, 0, len(values))[0].tolist() == values
    assert binary.decode_canonical_varints(data + rest, 0, len(values)) == (values, len(data))
    assert chunk_index.decode_varint_column(data + rest, 0, len(values))[1] == len(data)


@given(st.binary(max_size=40), st.integers(0, 12))
@settings(max_examples=200)
def test_column_and_single_numbers_agree_on_any_bytes(data: bytes, count: int) -> None:
    def read(function: object) -> object:
        try:
            values, end = function(data, 0, count)  # type: ignore[operator]
        except Damaged:
            return None
        return list(values), end

    assert read(chunk_index.decode_varint_column) == read(binary.decode_canonical_varints)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x00", b"\xff" * 9, b"\xff" * 20])
def test_refuses_cut_long_and_superfluous_forms(data: bytes) -> None:
    with pytest.raises(Damaged):
        binary.decode_canonical_varint(data, 0)
