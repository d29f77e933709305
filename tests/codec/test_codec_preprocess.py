"""The two static dictionaries and the adaptive one, byte by byte."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import CodecRefused, Damaged
from letopis_codecs import (
    HTML_WORDS,
    HTML_WORDS_BOTH_CASES,
    WORDS_1,
    WORDS_1I,
    WORDS_2,
    WORDS_2I,
    FrequentWords,
    StaticWords,
    word_pattern,
)

BOUND = 1 << 20
STATIC = {"1": WORDS_1, "1i": WORDS_1I, "2": WORDS_2, "2i": WORDS_2I}
pieces = st.sampled_from(
    [*HTML_WORDS_BOTH_CASES, b"<bo", b"<B", b"<bODY", b"clas=", b"=", b"<", b" ", b"text", b"\xc3\xa1", b"\0"]
)
documents = st.lists(st.one_of(pieces, st.binary(max_size=6)), max_size=60).map(b"".join)


def test_the_dictionary_has_56_words_in_the_order_of_the_format() -> None:
    assert len(HTML_WORDS) == 56
    assert len(HTML_WORDS_BOTH_CASES) == len(set(HTML_WORDS_BOTH_CASES)) == 112
    assert HTML_WORDS[:3] == (b"</a>", b"</b>", b"</body>")
    assert HTML_WORDS[17:21] == (b"</ul>", b"<a", b"<b", b"<body")
    assert HTML_WORDS[27] == b"<img "
    assert HTML_WORDS[38] == b"<title>"
    assert HTML_WORDS[41] == b"align="
    assert HTML_WORDS[-1] == b"width="
    assert HTML_WORDS_BOTH_CASES[56] == b"</A>"


def test_the_longest_word_wins_at_the_leftmost_place() -> None:
    found = word_pattern([b"<h", b"<html", b"html>", b"a"]).split(b"<htm<html>a")
    assert found == [b"", b"<h", b"tm", b"<html", b">", b"a", b""]


def test_golden_bytes_of_preprocessing_1() -> None:
    # '>' 'x' are used: bits 62 and 120. Words: </p> (11), <p (33), class= (43), </P> (56 + 11).
    data = b"<p class=x></p>x</P>x"
    byte_map = bytearray(32)
    for value in b" >x":
        byte_map[value // 8] |= 0x80 >> value % 8
    word_map = bytearray(14)
    for word in (11, 33, 43, 67):
        word_map[word // 8] |= 0x80 >> word % 8
    expected = bytes(byte_map + word_map) + b"\x01 \x02x>\x00x\x03x"
    assert WORDS_1.forward(data) == expected
    assert expected.hex() == (
        "0000000080000002000000000000008000000000000000000000000000000000"
        "0010000040100000100000000000" + "01200278" + "3e0078" + "0378"
    )
    assert WORDS_1.backward(expected, BOUND) == data


def test_golden_bytes_of_preprocessing_2_ignoring_case() -> None:
    data = b"<P ID=1>"
    made = WORDS_2I.forward(data)
    assert made.hex() == "00000000800040020000000000000000" + "00000000400100" + "00200131" + "3e"
    assert WORDS_2I.backward(made, BOUND) == b"<p id=1>"


def test_golden_bytes_of_frequent_words() -> None:
    made = FrequentWords().forward(b"abc de abc;abcd abcd,abc")
    symbols = "c0" + "00" * 31
    assert made.hex() == symbols + b"abc abcd \x00 de \x00;\x01 \x01,\x00".hex()
    assert FrequentWords().backward(made, BOUND) == b"abc de abc;abcd abcd,abc"


@pytest.mark.parametrize("variant", ["1", "2"])
@given(data=documents)
@settings(max_examples=150, deadline=None)
def test_static_words_give_every_byte_back(variant: str, data: bytes) -> None:
    transform = STATIC[variant]
    try:
        made = transform.forward(data)
    except CodecRefused:
        assert variant == "2" or len(set(data)) > 100
        return
    assert transform.backward(made, len(data)) == data
    assert len(made) <= transform.widest(len(data))


@pytest.mark.parametrize("variant", ["1i", "2i"])
@given(data=documents)
@settings(max_examples=150, deadline=None)
def test_ignoring_case_loses_the_case_of_words_alone(variant: str, data: bytes) -> None:
    transform = STATIC[variant]
    try:
        made = transform.forward(data)
    except CodecRefused:
        return
    back = transform.backward(made, len(data))
    assert back.lower() == data.lower()
    assert WORDS_1I.pattern.split(data.lower())[0::2] == [
        text.lower() for text in WORDS_1I.pattern.split(back.lower())[0::2]
    ]
    assert back == transform.backward(transform.forward(back), len(data))


@given(data=st.one_of(documents, st.text("ab cd", max_size=200).map(str.encode)))
@settings(max_examples=150, deadline=None)
def test_frequent_words_give_every_byte_back(data: bytes) -> None:
    made = FrequentWords().forward(data)
    assert FrequentWords().backward(made, len(data)) == data
    assert len(made) <= FrequentWords().widest(len(data))


def test_too_few_free_symbols_is_refused() -> None:
    everything = bytes(range(256))
    assert WORDS_1.backward(WORDS_1.forward(everything), 256) == everything
    with pytest.raises(CodecRefused, match="another method"):
        WORDS_1.forward(everything + b"</table>")
    with pytest.raises(CodecRefused):
        WORDS_2.forward("á".encode())


def test_a_byte_inside_words_alone_is_free_to_stand_for_a_word() -> None:
    data = bytes(value for value in range(256) if value not in b"<") + b"</table>"
    made = WORDS_1.forward(data)
    assert made[46:].endswith(b"<")
    assert WORDS_1.backward(made, len(data)) == data


@pytest.mark.parametrize("transform", [*STATIC.values(), FrequentWords()], ids=[*STATIC, "fs"])
@given(data=st.binary(max_size=120))
@settings(max_examples=100, deadline=None)
def test_garbage_is_damaged_or_decodes_within_the_bound(transform: StaticWords, data: bytes) -> None:
    with suppress(Damaged):
        assert len(transform.backward(data, 500)) <= 500


def test_broken_headers_are_named() -> None:
    with pytest.raises(Damaged, match="shorter"):
        WORDS_1.backward(b"\xff" * 45, BOUND)
    with pytest.raises(Damaged, match="more words"):
        WORDS_1.backward(b"\xff" * 46, BOUND)
    with pytest.raises(Damaged, match="does not name"):
        WORDS_1.backward(bytes(46) + b"x", BOUND)
    with pytest.raises(Damaged, match="fewer words"):
        FrequentWords().backward(b"\xff" * 32 + b"abc ", BOUND)
    with pytest.raises(Damaged, match="shorter"):
        FrequentWords().backward(b"", BOUND)


def test_expansion_stops_at_the_bound() -> None:
    made = WORDS_1.forward(b"</script>" * 1000)
    assert len(made) == 1046
    with pytest.raises(Damaged, match="more than"):
        WORDS_1.backward(made, 8999)
    assert len(WORDS_1.backward(made, 9000)) == 9000
