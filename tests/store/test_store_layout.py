import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.binary import ByteReader, encode_varint, encode_zigzag
from letopis.errors import Damaged, NewerFormat
from letopis.store.pack_format import (
    PackRecord,
    RecordKind,
    RecordMethod,
    SharedTextRef,
    VersionHead,
    checked_record,
    encode_fact_head,
    encode_frame_head,
    encode_pack_header,
    encode_record,
    encode_version_head,
    is_known_record,
    parse_frame_head,
    parse_pack_header,
    parse_version_head,
    record_extent,
)

NUMBERS = st.integers(0, 2**63 - 1)
HEADS = st.builds(
    VersionHead,
    key=st.binary(max_size=40),
    time=st.integers(-(2**50), 2**50),
    digest=st.binary(min_size=20, max_size=20),
    note=st.binary(max_size=40),
    raw_bytes=st.integers(0, 2**40),
)


@given(NUMBERS, st.integers(-(2**62), 2**62 - 1))
def test_numbers_come_back(plain, signed):
    fields = ByteReader(encode_varint(plain) + encode_zigzag(signed))
    assert (fields.varint(), fields.zigzag(), fields.left) == (plain, signed, 0)


@given(st.binary(max_size=12))
def test_any_bytes_are_a_number_or_damaged(data):
    fields = ByteReader(data)
    try:
        assert fields.varint() >= 0
    except Damaged:
        assert all(byte >= 0x80 for byte in data[:9])


@given(HEADS, st.binary(max_size=200), st.integers(1, 2**20), st.integers(0, 2**40))
@settings(max_examples=60)
def test_records_come_back(head, body, pack, offset):
    data = encode_record(
        RecordKind.VERSION, RecordMethod.STORED, encode_version_head(head), body, pack=pack, offset=offset
    )
    record = checked_record(data, 0, record_extent(data), pack=pack, offset=offset)
    assert (record.body, record.end - record.offset) == (body, len(data))
    assert parse_version_head(record) == head


def test_record_bytes_are_the_documented_ones():
    data = encode_record(RecordKind.FACT, RecordMethod.STORED, b"head", b"body", pack=3, offset=16)
    assert data.hex() == "f5" + data[1:5].hex() + "02" + "00" + "04" + "04" + b"headbody".hex()
    assert encode_pack_header(1, 3)[:12].hex() == "894c504b0d0a" + "02" + "01" + "03000000"


@pytest.mark.parametrize("bit", range(8 * 17))
def test_a_flipped_bit_fails_the_check(bit):
    data = bytearray(encode_record(RecordKind.FACT, RecordMethod.STORED, b"head", b"body", pack=3, offset=16))
    data[bit // 8] ^= 1 << bit % 8
    found = record_extent(bytes(data))
    assert found is None or checked_record(bytes(data), 0, found, pack=3, offset=16) is None


@pytest.mark.parametrize(("pack", "offset"), [(3, 17), (4, 16)])
def test_a_record_is_sound_only_where_it_was_written(pack, offset):
    data = encode_record(RecordKind.FACT, RecordMethod.STORED, b"head", b"body", pack=3, offset=16)
    assert checked_record(data, 0, record_extent(data), pack=pack, offset=offset) is None


def test_fields_behind_the_known_ones_are_ignored():
    head = VersionHead(b"key", 5, b"d" * 20, b"note", 7)
    record = PackRecord(
        16, 99, RecordKind.VERSION, RecordMethod.STORED, encode_version_head(head) + b"later fields", b""
    )
    assert parse_version_head(record) == head
    assert parse_version_head(PackRecord(16, 99, RecordKind.FACT, 0, encode_fact_head(head) + b"x", b"")).raw_bytes == 0


def test_unknown_kinds_are_skipped_or_refused_by_their_top_bit():
    assert not is_known_record(PackRecord(0, 9, 0x93, 0, b"", b""), "x.log")
    with pytest.raises(NewerFormat, match="later release"):
        is_known_record(PackRecord(0, 9, 0x13, 0, b"", b""), "x.log")


@given(NUMBERS, NUMBERS, st.binary(max_size=9), st.none() | st.builds(SharedTextRef, NUMBERS, NUMBERS))
@settings(max_examples=60)
def test_heads_of_frames_come_back_and_are_damaged_when_cut_short(back, slots, key, text):
    data = encode_frame_head(back, slots, key, text)
    head = parse_frame_head(data)
    assert (head.back, head.slots, head.text) == (back, slots, None if back else text)
    assert parse_frame_head(data + encode_varint(5) if text is not None else data) == head
    whole = len(encode_frame_head(back, slots, key))
    for end in {*range(len(data))} - {whole}:
        with pytest.raises(Damaged):
            parse_frame_head(data[:end])


def test_header_tells_flags_and_refuses_what_is_newer():
    assert parse_pack_header(encode_pack_header(1, 9), 9, "x") == 1
    with pytest.raises(NewerFormat):
        parse_pack_header(encode_pack_header(0x10, 9), 9, "x")
    with pytest.raises(Damaged, match="carries the number 9"):
        parse_pack_header(encode_pack_header(0, 9), 8, "x")
    with pytest.raises(Damaged, match="header of x"):
        parse_pack_header(encode_pack_header(0, 9)[:15], 9, "x")


@given(st.binary(max_size=64))
def test_any_bytes_are_no_record_or_a_claim(data):
    found = record_extent(data)
    assert found is None or found.end >= found.body_at >= found.head_at
