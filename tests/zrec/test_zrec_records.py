from __future__ import annotations

import random
import time
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import UsageError
from letopis.zrec.chunk_index import cut_groups
from letopis.zrec.chunks import (
    first_value,
    join,
    namer,
    parse_separator,
    put_digests_back,
    set_digests_aside,
    split,
    split_chunk,
)

dense = st.text(alphabet="ab\n", max_size=40).map(str.encode)


@given(dense, st.sampled_from([b"\n\n", b"\n", b"a", b"ab"]))
@settings(max_examples=300)
def test_join_gives_back_every_text(text: bytes, separator: bytes) -> None:
    assert join(*_swapped(split(text, separator), separator)) == text


def _swapped(taken: tuple[list[bytes], bool], separator: bytes) -> tuple[list[bytes], bytes, bool]:
    return taken[0], separator, taken[1]


@given(dense, st.integers(1, 4))
@settings(max_examples=300)
def test_records_of_a_group_are_found_again(text: bytes, size: int) -> None:
    records, _ = split(text, b"\n\n")
    for at in range(0, len(records), size):
        group = records[at : at + size]
        assert split_chunk(b"\n\n".join(group), b"\n\n") == group


def test_excess_separators_belong_to_the_record_before() -> None:
    assert split(b"a\n\n\n\nb\n\n", b"\n\n") == ([b"a\n\n", b"b"], True)
    assert split(b"\n\na", b"\n\n") == ([b"\n\na"], False)
    assert split(b"", b"\n\n") == ([], False)


@pytest.mark.parametrize(
    ("record", "name"),
    [(b"Package: a b\nX: 1", b"a b"), (b"just a line\nX: 1", b"just a line"), (b"\nName:\tx\r\ny", b"x"), (b"", b"")],
)
def test_name_is_the_value_of_the_first_line(record: bytes, name: bytes) -> None:
    assert first_value(record) == name


def test_name_rule_takes_its_group_or_the_match() -> None:
    assert namer(r"^Version: (\S+)")(b"Package: a\nVersion: 7\n") == b"7"
    assert namer(r"^\S+")(b"key 2024 {}") == b"key"
    with pytest.raises(UsageError, match="No name"):
        namer(r"^Id: (\d+)")(b"Package: a")
    with pytest.raises(UsageError, match="regular expression"):
        namer("((")
    with pytest.raises(UsageError, match="shorter"):
        namer("a" * 5000)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(r"\n", b"\n"), (r"\n\n", b"\n\n"), (r"\x1e", b"\x1e"), ("%%", b"%%"), (r"\\", b"\\"), (r"\0", b"\0")],
)
def test_separator_as_people_type_it(typed: str, meant: bytes) -> None:
    assert parse_separator(typed) == meant


def test_refuses_no_separator() -> None:
    with pytest.raises(UsageError):
        parse_separator("")


def test_cutting_follows_the_order_of_hashes() -> None:
    assert cut_groups([1, 5, 3, 9]) == [2, 2]
    assert cut_groups([1, 2, 5, 3, 4]) == [3, 2]
    assert cut_groups([1, 2, 3, 4, 5]) == [4, 1]
    assert cut_groups([9, 1, 2, 3, 4]) == [4, 1]
    assert cut_groups([]) == []


def _borders(hashes: list[int]) -> list[tuple[int, ...]]:
    groups, at = [], 0
    for size in cut_groups(hashes):
        groups.append(tuple(hashes[at : at + size]))
        at += size
    return groups


@given(st.lists(st.integers(0, 9), min_size=8, max_size=60), st.data())
@settings(max_examples=200)
def test_cuttings_that_share_one_border_share_all_behind_it(hashes: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(hashes) - 1))
    inserted = [*hashes[:at], 5, *hashes[at:]]
    before = _ends(hashes)
    after = {place - 1 for place in _ends(inserted)}
    shared = [place for place in before if place > at and place in after]
    if shared:
        assert {place for place in before if place >= shared[0]} == {place for place in after if place >= shared[0]}
    assert {place for place in before if place <= at - 2} == {place for place in _ends(inserted) if place <= at - 2}


def _ends(hashes: list[int]) -> set[int]:
    return set(accumulate(cut_groups(hashes)))


def test_borders_behind_a_change_stay_for_random_hashes() -> None:
    """On average an edit upsets only a handful of groups, however long the list is."""
    rng = random.Random(5)
    upset = []
    for _ in range(200):
        hashes = [rng.randrange(2**32) for _ in range(300)]
        at = rng.randrange(300)
        before = set(_borders(hashes))
        after = set(_borders([*hashes[:at], rng.randrange(2**32), *hashes[at:]]))
        upset.append(len(after - before))
    assert max(upset) < 40
    assert sum(upset) / len(upset) < 6


@given(st.lists(st.sampled_from([b"ab" * 16, b"0f" * 20, b"c" * 64, b"text ", b"\n", b"9", b"ABCDEF", b"\x01"])))
@settings(max_examples=300)
def test_digits_set_aside_come_back(parts: list[bytes]) -> None:
    text = b"".join(parts)
    marked, tail = set_digests_aside(text)
    assert put_digests_back(marked, tail) == text
    assert len(tail) % 4 == 0


def test_digits_shrink_to_a_byte_and_their_value() -> None:
    assert set_digests_aside(b"md5 " + b"ab" * 16 + b" x") == (b"md5 \x01 x", b"\xab" * 16)
    assert set_digests_aside(b"a" * 33) == (b"a" * 33, b"")
    assert set_digests_aside(b"\x02 " + b"ab" * 16)[1] == b""


@pytest.mark.parametrize("rule", [r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(a|aa)+$", r"(.*)(.*)(.*)(.*)(.*)(.*)Z\1"])
def test_an_expression_that_takes_too_long_is_refused(rule: str) -> None:
    started = time.thread_time()
    with pytest.raises(UsageError):
        list(map(namer(rule), [b"a" * 5000 + b"!"] * 1000))
    assert time.thread_time() - started < 5


@pytest.mark.parametrize("rule", ["(", "[", "a{2,1}", "(?P<x", "(?<=a+)b(", "*"])
def test_an_expression_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(UsageError):
        namer(rule)
