"""Heads of records and answers in C: the same as in Python, whatever the bytes say, and None where they are unusual."""

from __future__ import annotations

import io
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_warc import answer
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.exchange import record_stream, warc_records
from letopis.exchange.record_stream import SourceRecord, read_records, usual_head
from letopis.exchange.warc_records import MAX_HEAD, parse_response
from letopis.model import Headers

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import fuzz as fuzzing

RECORD_HEAD, ANSWER_HEAD = warc_records.record_head, warc_records.answer_head
MANY = 5000 if os.environ.get("LETOPIS_LONG") else 100
BREAKS = (b"\r\n", b"\r\n", b"\r\n\r\n", b"\n", b"\r")
OTHER_BYTES = (b" ", b"\t", b"\x0b", b"\x1f", b"\x85", b"\xc3\xa9", b"\xff", b"\x00", b"a", b":")
FIRST_LINES = (b"WARC/1.", b"WARC/1.0", b"WARC/", b"HTTP/1.1 200 OK", b"HTTP/1.1", b" 200", b" 2000", b" 20")
LENGTHS = (b"12", b" 7", b"999999999999999999", b"1000000000000000000", b"+1", b"")
LINES = (b"A: b", b": no name", b"WARC-Type: response", b"N" * 128 + b": most", b"N" * 129 + b": more")
PIECE = st.sampled_from(
    [*BREAKS, *OTHER_BYTES, *FIRST_LINES, *LINES, b"content-length: 5", *(b"Content-Length:" + one for one in LENGTHS)]
)
WRITTEN = st.lists(PIECE, max_size=14).map(b"".join)
NAME = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1, max_size=30)
VALUE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60).map(str.strip)
FIELDS = st.lists(st.tuples(NAME, VALUE), max_size=12)

pytestmark = pytest.mark.skipif(
    RECORD_HEAD is None and not os.environ.get("CI"), reason="letopis-fast is installed without its parts in C"
)


def record_head(data: bytes, at: int = 0) -> object:
    assert RECORD_HEAD is not None
    return RECORD_HEAD(data, at)


def answer_head(block: bytes, most: int = MAX_HEAD) -> tuple[int, Headers, int] | None:
    assert ANSWER_HEAD is not None
    return ANSWER_HEAD(block, most)


def lines_of(fields: list[tuple[str, str]]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in fields).encode() + b"\r\n"


def without_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_stream, "record_head", None)
    monkeypatch.setattr(warc_records, "answer_head", None)


@given(FIELDS, st.integers(0, 10**18 - 1), st.sampled_from([b"", b"\r\n", b"\r\n\r\n", b"x\n"]))
@settings(max_examples=MANY, deadline=None)
def test_usual_heads_of_records_are_read_in_c(fields: list[tuple[str, str]], length: int, before: bytes) -> None:
    fields = [field for field in fields if field[0].lower() != "content-length"]
    data = before + b"WARC/1.1\r\n" + lines_of([*fields, ("Content-Length", str(length))]) + b"block"
    at = len(before) if before == b"x\n" else 0
    found = record_head(data, at)
    assert found is not None
    assert found == usual_head(data, at)


@given(WRITTEN, WRITTEN, st.integers(-1, 40))
@settings(max_examples=8 * MANY, deadline=None)
def test_other_heads_of_records_are_read_alike_or_left_to_python(first: bytes, rest: bytes, at: int) -> None:
    for data in (first + rest, b"WARC/1.0\r\n" + first + b"\r\nContent-Length: 3\r\n" + rest + b"\r\n\r\n"):
        found = record_head(data, at)
        assert found is None or found == usual_head(data, at)


@given(st.integers(0, 999), VALUE, FIELDS, st.binary(max_size=20))
@settings(max_examples=MANY, deadline=None)
def test_usual_answers_are_read_in_c(status: int, reason: str, fields: list[tuple[str, str]], body: bytes) -> None:
    head = f"HTTP/1.1 {status:03} {reason}\r\n".encode() + lines_of(fields)
    assert answer_head(head + body) == (status, tuple(fields), len(head))
    assert parse_response(head + body) == (status, tuple(fields), body)


@given(WRITTEN, WRITTEN)
@settings(max_examples=8 * MANY, deadline=None)
def test_other_answers_are_read_alike_or_left_to_python(first: bytes, rest: bytes) -> None:
    for block in (first + rest, b"HTTP/1.1 200 OK\r\n" + first + b"\r\n\r\n" + rest):
        found = answer_head(block)
        with pytest.MonkeyPatch.context() as patch:
            without_c(patch)
            told = parse_response(block)
        assert found is None or (found[0], found[1], block[found[2] :]) == told


def test_a_head_that_ends_behind_the_bound_is_left_to_python() -> None:
    block = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"
    assert answer_head(block, len(block) - 4) == (200, (("A", "b"),), len(block) - 4)
    assert [answer_head(block, most) for most in (len(block) - 5, 17, 0, -1)] == [None] * 4


@pytest.mark.parametrize("read", [record_head, answer_head])
def test_a_head_that_is_cut_off_anywhere_is_left_to_python(read: Callable[[bytes], object]) -> None:
    record = answer("http://a.test/", 1, b"")
    head = record[: record.index(b"\r\n\r\n") + 4]
    whole = head if read is record_head else record[len(head) : record.index(b"\r\n\r\n", len(head)) + 4]
    assert read(whole) is not None
    assert [read(whole[:end]) for end in range(len(whole))] == [None] * len(whole)


def test_files_are_read_alike_with_and_without_c(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(11)
    corpus = [*fuzzing.corpus_of("warc"), b"".join(answer(f"http://a.test/{n}", n, b"<p>%d" % n) for n in range(9))]
    cases = corpus + [fuzzing.mutated(corpus, chance) for _ in range(MANY)]

    def outcome(data: bytes) -> list[tuple[SourceRecord, object]]:
        return [(record, parse_response(record.block)) for record in read_records(io.BytesIO(data))]

    with_c = [outcome(data) for data in cases]
    without_c(monkeypatch)
    assert with_c == [outcome(data) for data in cases]
    assert sum(map(len, with_c)) > len(cases)
