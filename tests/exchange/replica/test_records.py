"""Lines of the index and the release: what is written is read, and whatever else is read is refused."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.archive import Archive
from letopis.archive.replica import BesideRecord, CheckRecord, ContentRecord, RecordCounts
from letopis.archive.requests import PageReference, RequestReference
from letopis.config import Settings
from letopis.errors import Damaged, NewerFormat, Refused
from letopis.exchange.replica import clone, index_records, release
from letopis.exchange.replica.clone_state import CloneSelection
from letopis.exchange.replica.index_records import SegmentRecord
from letopis.exchange.replica.pack_files import PackDemand, PackFiles
from letopis.exchange.replica.release import is_index_name, pack_file
from letopis.zrec import ZrecRelease

_SMALL = st.integers(0, 2**40)
_CONTENTS = st.builds(
    ContentRecord,
    st.binary(min_size=20, max_size=20),
    st.integers(-(2**47), 2**47 - 1),
    _SMALL,
    _SMALL,
    st.sampled_from(["stored", "zstd", "brotli", "pieces", "run", "solid"]),
    st.integers(1, 2**23 - 1),
    _SMALL,
    st.integers(0, 65535),
)
_EXTRAS = st.none() | st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.floats(0, 1), min_size=1).map(
    lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)
)
_BESIDE = st.lists(
    st.builds(BesideRecord, st.just("sent"), _CONTENTS, st.integers(0, 10**9), st.just(b""))
    | st.builds(BesideRecord, st.sampled_from(["set", "screenshot", "text"]), _CONTENTS, st.none(), st.binary()),
    max_size=4,
).map(tuple)
_ADDRESSES = st.integers(0, 2**32 - 1) | st.sampled_from(["", "::1", "2606:2800:220:1::1"])
_REQUESTS = st.builds(RequestReference, _SMALL, _ADDRESSES, st.lists(st.text(max_size=8), max_size=2).map(tuple))
_CHECKS = st.builds(
    CheckRecord,
    st.sampled_from(
        ["http://example.org/", "https://www.example.org:8443/a?b=1", "http://[::1]/x", "http://localhost:8080/"]
    ),
    st.integers(-62_000_000_000_000, 250_000_000_000_000),
    st.integers(0, 999),
    st.integers(0, 10**9),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 10**6),
    st.none() | st.integers(0, 1),
    _EXTRAS,
    st.none() | st.text(max_size=30),
    _CONTENTS,
    _BESIDE,
    st.none() | _REQUESTS,
    st.none() | st.builds(PageReference, _SMALL, st.integers(-(10**9), 10**9)),
)


@given(_CHECKS)
@settings(max_examples=150)
def test_a_check_is_read_as_it_was_written(check: CheckRecord) -> None:
    line = index_records.check_line(index_records.surt_key(check.url), check)
    assert b"\n" not in line
    assert index_records.parse_check(line) == check


@given(st.integers(0, 10**9), st.lists(st.tuples(st.text(), st.text()), max_size=5))
@settings(max_examples=100)
def test_headers_are_read_as_they_were_written(number: int, headers: list[tuple[str, str]]) -> None:
    assert index_records.parse_head(index_records.head_line(number, tuple(headers))) == (number, tuple(headers))


@given(st.data())
@settings(max_examples=150)
def test_any_line_is_read_or_refused(data: st.DataObject) -> None:
    check = data.draw(_CHECKS)
    line = bytearray(index_records.check_line(index_records.surt_key(check.url), check))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(line) - 1))
        line[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        line = line or bytearray(b"x")
    for parse in (index_records.parse_check, index_records.parse_head, index_records.parse_segment):
        try:
            parse(bytes(line))
        except Damaged:
            continue


def test_a_check_under_the_key_of_another_site_is_refused() -> None:
    check = CheckRecord("http://bad.example/", 0, 200, 1, 2, None, None, None, None, None)
    with pytest.raises(Damaged):
        index_records.parse_check(index_records.check_line(index_records.surt_key("http://good.example/"), check))


@pytest.mark.parametrize(
    "name", ["../x", "00000001.pack/..", "/etc/passwd", "00000001.log", "1.pack", "00000001.log.-1", "00000001.pack\n"]
)
def test_names_that_lead_elsewhere_are_no_pack_files(name: str) -> None:
    assert pack_file(name) is None
    line = index_records.segment_line(SegmentRecord(1, 0, name, 5, "00" * 32))
    with pytest.raises(Damaged):
        index_records.parse_segment(line)


def test_only_plain_names_are_indexes() -> None:
    assert is_index_name("index-00000012.zrec")
    assert not any(map(is_index_name, ["index-1.zrec", "../index-00000012.zrec", "index-00000012.zrec\n", "x"]))


def made() -> release.ArchiveRelease:
    zrec = ZrecRelease("index-00000003.zrec", "2026-01-01T00:00:00Z", 10, "ab" * 32, "cd" * 32, (("ef" * 16, 4),))
    return release.ArchiveRelease("12" * 16, 3, "2026-01-01T00:00:00Z", zrec.name, zrec, RecordCounts(1, 2, 3, 4, 5))


def test_a_release_is_read_as_it_was_written() -> None:
    assert release.parse_archive_release(release.encode_archive_release(made())) == made()
    signed = made().signed(b"key")
    again = release.parse_archive_release(release.encode_archive_release(signed))
    again.check_signature(b"key")
    for wrong in (again, made(), replace(made(), hmac_sha256="é\ud800")):
        with pytest.raises(Refused):
            wrong.check_signature(b"other")


def test_a_later_release_is_told_from_a_broken_one() -> None:
    fields = json.loads(release.encode_archive_release(made()))
    with pytest.raises(NewerFormat):
        release.parse_archive_release(json.dumps(fields | {"version": 2}).encode())
    release.parse_archive_release(json.dumps(fields | {"later": 1}).encode())
    for name, value in [
        ("serial", 0),
        ("serial", "3"),
        ("index", "../x"),
        ("archive", "xy"),
        ("counts", {}),
        ("zrec", []),
    ]:
        with pytest.raises(Damaged):
            release.parse_archive_release(json.dumps(fields | {name: value}).encode())
    with pytest.raises(Damaged):
        release.parse_archive_release(b"x" * 70_000)


def test_any_mutation_of_a_release_is_read_or_refused() -> None:
    good = release.encode_archive_release(made())
    for seed in range(3000):
        rng = random.Random(seed)
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        try:
            release.parse_archive_release(bytes(data))
        except Damaged:
            continue


def test_a_pack_file_is_fetched_whole_when_half_of_it_is_needed_and_nothing_is_missing_before_it() -> None:
    first, second, other = (
        SegmentRecord(1, 0, "00000001.log.0", 100, ""),
        SegmentRecord(1, 100, "00000001.log.100", 50, ""),
        SegmentRecord(2, 0, "00000002.pack", 1000, ""),
    )
    files = PackFiles([second, first, other])
    content = ContentRecord(b"a" * 20, 1, 60, 60, "zstd", 1, 10, 0)
    demand = PackDemand(files, frozenset())
    for place, key in ((10, 1), (110, 2)):
        for _ in range(3):
            demand.add(content._replace(place=place, identity=key, stored_bytes=60 if key == 1 else 30))
    demand.add(content._replace(pack=2, identity=3))
    assert demand.whole({}) == [first, second]
    few = PackDemand(files, frozenset())
    few.add(content._replace(place=110, identity=2))
    assert few.whole({}) == []
    assert few.whole({1: 100}) == [second]
    with pytest.raises(Damaged):
        files.at(1, 150)
    with pytest.raises(Damaged, match="gap"):
        PackFiles([second])


def test_a_span_wants_what_was_valid_in_it() -> None:
    content = ContentRecord(b"a" * 20, 1, 1, 1, "zstd", 1, 1, 0)
    checks = [CheckRecord("http://a/", time, 200, 1, None, None, None, None, None, content) for time in (10, 20, 30)]
    error = CheckRecord("http://a/", 25, 404, 1, 3, 1, None, None, None, content)
    told = sorted([*checks, error], key=lambda check: check.time)

    def times(selection: CloneSelection) -> list[int]:
        return [check.time for check in selection.wanted(told)]

    assert times(CloneSelection()) == [10, 20, 25, 30]
    assert times(CloneSelection(since=15, until=19)) == [10]
    assert times(CloneSelection(since=20)) == [20, 25, 30]
    assert times(CloneSelection(until=24)) == [10, 20]
    assert times(CloneSelection(lazy=True)) == []
    assert CloneSelection(site="example.org").knows("http://example.org/x")
    assert not CloneSelection(site="example.org").knows("http://other.org/x")


def test_the_golden_publication_stays_readable(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "formats" / "replica" / "published"
    report = clone(str(golden), tmp_path / "copy", CloneSelection(), Settings())
    assert (report.serial, report.documents, report.versions, report.checks) == (2, 2, 5, 6)
    with Archive(tmp_path / "copy") as copy:
        assert list(copy.verify()) == []
        assert copy.get("http://golden.example/", version=1).body == b"golden version 1\n" * 20
        assert copy.get("http://golden.example/second").body == b"two"
