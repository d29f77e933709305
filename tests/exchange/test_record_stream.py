"""One bad record does not cost the others: odd line ends, wrong lengths, damaged members, ARC files."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
from foreign_warc import answer
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.exchange.captures import parse_date
from letopis.exchange.imports import import_sources
from letopis.exchange.record_stream import (
    BREAKS_OFF,
    DAMAGED_MEMBER,
    WRONG_LENGTH,
    SourceRecord,
    read_arc_records,
    read_records,
)
from letopis.zstandard import zstd

PAGES = [answer(f"http://a.test/{number}", 1, b"<p>page %d</p>" % number) for number in range(4)]


def records(data: bytes) -> list[SourceRecord]:
    return list(read_records(io.BytesIO(data)))


def bodies(data: bytes) -> list[bytes]:
    return [record.block.rpartition(b"\n")[2] for record in records(data) if record.version]


WHOLE = [b"<p>page %d</p>" % number for number in range(4)]


@pytest.mark.parametrize("line_end", [b"\r\n", b"\n", b"\r\r\n"])
def test_lines_may_end_in_any_way(line_end: bytes) -> None:
    data = b"".join(PAGES).replace(b"\r\n", line_end)
    assert bodies(data) == WHOLE


@pytest.mark.parametrize("wrong", [0, 5, 100, 200, 100_000])
@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_wrong_length_costs_nothing_but_a_remark(wrong: int, place: int) -> None:
    length = PAGES[place].partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
    changed = PAGES[place].replace(b"Content-Length: " + length, b"Content-Length: %d" % wrong)
    found = records(b"".join([*PAGES[:place], changed, *PAGES[place + 1 :]]))
    is_last = place == 3 and wrong >= 100
    assert [record.fault for record in found] == [
        (BREAKS_OFF if is_last else WRONG_LENGTH) if number == place else "" for number in range(4)
    ]
    assert [record.block.rpartition(b"\n")[2] for record in found if record.fault != BREAKS_OFF] == (
        WHOLE[:3] if is_last else WHOLE
    )


def test_a_damaged_member_costs_one_record() -> None:
    members = [gzip.compress(page) for page in PAGES]
    members[1] = members[1][:30] + b"\xff\xff\xff" + members[1][33:]
    found = records(b"".join(members))
    assert [record.block.rpartition(b"\n")[2] for record in found if not record.fault] == [WHOLE[0], WHOLE[2], WHOLE[3]]
    assert [record.fault for record in found if record.fault] == [DAMAGED_MEMBER]


def test_a_member_of_which_nothing_is_left_is_told() -> None:
    members = [gzip.compress(page) for page in PAGES]
    found = records(b"".join(members[:3]) + members[3][:12])
    assert [record.fault for record in found] == ["", "", "", DAMAGED_MEMBER]


@pytest.mark.parametrize("press", [zstd.compress, lz4.frame.compress])
def test_frames_are_read_one_after_another_up_to_a_damaged_one(press: Callable[[bytes], bytes]) -> None:
    members = [press(page) for page in PAGES]
    assert bodies(b"".join(members)) == bodies(press(b"".join(PAGES))) == WHOLE
    broken_off = records(b"".join(members[:3]) + members[3][:12])
    noisy = records(b"".join(members[:3]) + members[3][:4] + bytes(8))
    assert [record.fault for record in broken_off] == [record.fault for record in noisy] == ["", "", "", DAMAGED_MEMBER]


def test_a_dictionary_at_the_beginning_is_used() -> None:
    trained = zstd.train_dict([page + bytes([n]) * n for n in range(40) for page in PAGES], 2000)
    head = b"\x5d\x2a\x4d\x18" + len(trained.dict_content).to_bytes(4, "little") + trained.dict_content
    data = head + b"".join(zstd.compress(page, zstd_dict=trained) for page in PAGES)
    assert bodies(data) == WHOLE


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_between_records_are_passed_over(noise: bytes, packed: bool) -> None:
    noise = noise.replace(b"WARC/", b"")
    press = gzip.compress if packed else bytes
    found = records(press(PAGES[0]) + press(b"\n" + noise + b"\n\n") + press(PAGES[1]))
    assert found[-1].block.rpartition(b"\n")[2] == WHOLE[1]


ARC = (
    b"filedesc://x.arc 0.0.0.0 20240101000000 text/plain 76\n"
    b"1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n\n"
)


def arc_record(url: bytes, block: bytes, length: int | None = None, kind: bytes = b"text/html") -> bytes:
    size = len(block) if length is None else length
    return b"%b 192.0.2.1 20240102030405 %b %d\n%b\n" % (url, kind, size, block)


PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>arc</p>"


def test_arc_files_are_read_past_odd_records(tmp_path: Path) -> None:
    data = ARC + b"".join((
        arc_record(b"dns:a.test", b"20240102030405\na.test. 1 IN A 192.0.2.1\n", kind=b"text/dns"),
        arc_record(b"http://a.test/1", PAGE, 9999),
        arc_record(b"http://a.test/2", PAGE.replace(b"200 OK", b"2x0 OK")),
        arc_record(b"http://a.test/with blank", PAGE),
        arc_record(b"http://a.test/3", PAGE),
    ))  # fmt: skip
    (tmp_path / "x.arc").write_bytes(data)
    with Archive(tmp_path / "a") as archive:
        report = import_sources(archive, [tmp_path / "x.arc"])
        assert [row.url for row in archive.catalog.resources.all()] == [
            "http://a.test/1", "http://a.test/with%20blank", "http://a.test/3",
        ]  # fmt: skip
        assert archive.get("http://a.test/3").body == b"<p>arc</p>"
        assert dict(report.refused) == {
            "no web address (http or https)": 1, WRONG_LENGTH: 1, "no readable status": 1,
        }  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_an_arc_file_or_none(data: bytes) -> None:
    for found in list(read_arc_records(io.BytesIO(ARC + data))):
        assert len(found.block) <= len(data)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("2014-01", 1388534400000), ("2014", 1388534400000), ("2014-02-10", 1391990400000),
        ("2014-02-10T00:00:01.000000002Z", 1391990401000), ("2014-02-10T00:00:01.01Z", 1391990401010),
        ("2008-10-294T05:21:46-0700", 1224505306000), ("20140210000001", 1391990401000),
    ],
)  # fmt: skip
def test_dates_are_read_as_writers_write_them(text: str, millis: int) -> None:
    assert parse_date(text) == millis


@pytest.mark.parametrize("text", ["", "yesterday", "2014-13-01", "99999-01-01", "2014-02-10T25:00:00Z"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|month|hour"):
        parse_date(text)


@pytest.mark.parametrize("data", [b"", b"nothing", gzip.compress(b"WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\n", mtime=0)])
def test_an_import_that_takes_nothing_is_an_error(
    tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.warc").write_bytes(data)
    assert main(["--archive", str(tmp_path / "a"), "import", str(tmp_path / "x.warc")]) != 0
    assert "nothing was imported from" in capsys.readouterr().err
