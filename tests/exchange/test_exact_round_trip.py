"""What comes in goes out: every record of the sample archives of others, to the byte, with `warcio` as judge."""

from __future__ import annotations

import gzip
import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

import brotli
import pytest
from foreign_warc import DAY, answer, answer_block, record, request, revisit, sha1
from judged_records import NOT_EQUAL, SAMPLES, brought_back, exported, judged, sample_files

from letopis.archive import Archive, NewCapture
from letopis.catalog.straightening import straighten
from letopis.config import DatabaseSettings, Settings
from letopis.errors import Damaged
from letopis.exchange.imports import import_sources
from letopis.exchange.kept_records import KeptRecord
from letopis.model import Outcome, to_millis
from letopis.zstandard import zstd

URL = "http://a.test/"
STORED_BEFORE = "c3ab8860da0526dd44bd12a049c0d20e7b9c91e016ace50e587f6c6c2c00"
"""An answer and its request, each record compressed alone."""


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="sample archives of others are not here; LETOPIS_CORPUS names them")
def test_every_record_of_the_samples_goes_out_as_it_came(tmp_path: Path) -> None:
    same = 0
    for number, file in enumerate(sample_files()):
        theirs = set(judged(file.read_bytes()))
        lost = theirs - set(judged(brought_back(tmp_path / str(number), file)))
        assert len(lost) == NOT_EQUAL.get(file.name, 0), (file.name, [one.fields for one in lost])
        same += len(theirs) - len(lost)
    assert same >= 4400


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="sample archives of others are not here; LETOPIS_CORPUS names them")
def test_records_stay_as_they_came_through_compaction_and_another_archive(tmp_path: Path) -> None:
    file = SAMPLES / "chatnoir-resiliparse" / "warcfile.warc.gz"
    with Archive(tmp_path / "a") as archive:
        import_sources(archive, [str(file)])
        before = exported(archive)
        archive.compact()
        assert exported(archive) == before
        assert list(archive.verify()) == []
    (tmp_path / "again.warc").write_bytes(before)
    assert set(judged(before)) <= set(judged(brought_back(tmp_path / "b", tmp_path / "again.warc")))


PAGE = b"<p>some words, and more</p>" * 9
CODED = {
    "gzip": (gzip.compress(PAGE), "gzip"),
    "gzip twice over": (gzip.compress(PAGE[:50]) + gzip.compress(PAGE[50:]), "gzip"),
    "gzip, br": (brotli.compress(gzip.compress(PAGE)), "gzip, br"),
    "zstd in frames": (zstd.compress(PAGE[:50]) + zstd.compress(PAGE[50:]), "zstd"),
    "none": (PAGE, "identity"),
}


@pytest.mark.parametrize("name", CODED)
def test_coded_bodies_are_read_and_go_out_coded(tmp_path: Path, name: str) -> None:
    body, coding = CODED[name]
    data = answer(URL, 1, body, "200 OK", f"Content-Encoding: {coding}", "Content-Type: text/html")
    (tmp_path / "x.warc").write_bytes(data)
    with Archive(tmp_path / "a") as archive:
        assert dict(import_sources(archive, [tmp_path / "x.warc"]).refused) == {}
        assert archive.get(URL).body == PAGE
        assert data in exported(archive)


def test_the_length_of_a_message_is_applied_and_nothing_is_dropped(tmp_path: Path) -> None:
    block = answer_block(PAGE + b"behind it", "200 OK", f"Content-Length: {len(PAGE)}")
    data = record("response", URL, DAY.format(1), block, ("WARC-Payload-Digest", sha1(PAGE)))
    (tmp_path / "x.warc").write_bytes(data)
    with Archive(tmp_path / "a") as archive:
        import_sources(archive, [tmp_path / "x.warc"])
        assert archive.get(URL).body == PAGE
        assert data in exported(archive)


@pytest.mark.parametrize("digest", [sha1(PAGE), f"sha-256:{hashlib.sha256(PAGE).hexdigest()}"])
def test_a_body_whose_coding_was_undone_is_whole_though_its_length_is_that_of_the_coded_one(
    tmp_path: Path, digest: str
) -> None:
    block = answer_block(PAGE, "200 OK", f"Content-Length: {len(PAGE) // 3}")
    data = record("response", URL, DAY.format(1), block, ("WARC-Payload-Digest", digest))
    (tmp_path / "x.warc").write_bytes(data)
    with Archive(tmp_path / "a") as archive:
        import_sources(archive, [tmp_path / "x.warc"])
        assert archive.get(URL).body == PAGE
        assert data in exported(archive)


def test_large_bodies_of_errors_are_kept_whole(tmp_path: Path) -> None:
    body = os.urandom(300_000)
    (tmp_path / "x.warc").write_bytes(answer(URL, 1, body, "503 Service Unavailable"))
    with Archive(tmp_path / "a") as archive:
        import_sources(archive, [tmp_path / "x.warc"])
        (check,) = archive.history(URL)
        assert archive.answers.error_body(URL, check.checked_at) == body


def test_each_capture_keeps_its_own_head(tmp_path: Path) -> None:
    heads = [
        (
            f"Date: Mon, 0{day} Jan 2024 12:00:00 GMT",
            f"Set-Cookie: s={day}",
            "Server: x",
            *(("Age: 5",) if day == 2 else ()),
        )
        for day in (1, 2, 3)
    ]
    blocks = [answer_block(PAGE, ("200 OK", "200 Fine", "200")[day - 1], *heads[day - 1]) for day in (1, 2, 3)]
    target = "HTTP://A.test:80/./?"
    address = ("WARC-IP-Address", "192.0.2.7")
    records = [record("response", target, DAY.format(day), blocks[day - 1], address) for day in (1, 2, 3)]
    (tmp_path / "x.warc").write_bytes(b"".join(records))
    with Archive(tmp_path / "a") as archive:
        import_sources(archive, [tmp_path / "x.warc"])
        found = [[f"{name}: {value}" for name, value in check.headers] for check in archive.history(URL)]
        assert found == [list(head) for head in heads]
        assert all(one in exported(archive) for one in records)


def test_captures_of_one_moment_with_other_heads_are_all_kept(tmp_path: Path) -> None:
    records = [answer(URL, 1, PAGE, "200 OK", f"Set-Cookie: s={number}", number=number) for number in (1, 2, 3)]
    (tmp_path / "x.warc").write_bytes(b"".join(records))
    with Archive(tmp_path / "a") as archive:
        assert import_sources(archive, [tmp_path / "x.warc"]).checks == 3
        assert import_sources(archive, [tmp_path / "x.warc"]).checks == 0
        assert all(one in exported(archive) for one in records)


def test_an_import_of_an_earlier_release_gets_its_records_by_another_one(tmp_path: Path) -> None:
    body, coding = CODED["gzip"]
    records = [
        answer(URL, day, body, "200 OK", f"Content-Encoding: {coding}", f"Set-Cookie: s={day}", number=day)
        for day in (1, 2)
    ]
    (tmp_path / "x.warc").write_bytes(b"".join(records))
    with Archive(tmp_path / "a") as archive:
        import_sources(archive, [tmp_path / "x.warc"])
        with archive.catalog.transaction() as cursor:
            cursor.run("DELETE FROM source_record")
        assert records[0] not in exported(archive)
        report = import_sources(archive, [tmp_path / "x.warc"])
        assert (report.checks, report.same) == (0, 2)
        assert all(one in exported(archive) for one in records)
        assert list(archive.verify()) == []


def test_mistakes_of_an_earlier_release_are_put_right_by_another_import(tmp_path: Path) -> None:
    """It took answers to POST for versions of the page, and every revisit for one of what was current."""
    post = answer(URL, 2, b"thank you") + request(URL, 2, "POST", b"a=1", "application/x-www-form-urlencoded")
    (tmp_path / "x.warc").write_bytes(answer(URL, 1, b"A") + post + answer(URL, 3, b"B") + revisit(URL, 4, b"A"))
    with Archive(tmp_path / "a") as archive:
        archive.commit([recorded_before(day, body) for day, body in ((1, b"A"), (2, b"thank you"), (3, b"B"))])
        archive.commit([recorded_before(4, None)])
        assert [archive.answers.at(URL, noon(day)).body for day in range(1, 6)] == [
            b"A",
            b"thank you",
            b"B",
            b"B",
            b"B",
        ]
        import_sources(archive, [tmp_path / "x.warc"])
        assert [archive.answers.at(URL, noon(day)).body for day in range(1, 5)] == [b"A", b"A", b"B", b"A"]
        assert archive.get(f"{URL}?__wb_method=POST&a=1").body == b"thank you"
        assert len(archive.history(URL)) == 3
        assert list(archive.verify()) == []


def test_headers_and_large_errors_that_an_earlier_release_dropped_come_back(tmp_path: Path) -> None:
    body = b"gone " * 20_000
    cookies = [answer(URL, day, b"A", "200 OK", f"Set-Cookie: s={day}", number=day) for day in (1, 2)]
    gone = answer(URL, 3, body, "404 Not Found", "Content-Type: text/plain")
    (tmp_path / "x.warc").write_bytes(b"".join([*cookies, gone]))
    with Archive(tmp_path / "a") as archive:
        archive.commit([recorded_before(1, b"A"), recorded_before(2, b"A")])
        lost = recorded_before(3, None)._replace(status=404, outcome=Outcome.UNAVAILABLE)
        archive.commit([lost])
        report = import_sources(archive, [tmp_path / "x.warc"])
        assert report.same == 2
        history = archive.history(URL)
        assert [check.headers for check in history] == [
            (("Set-Cookie", "s=1"),), (("Set-Cookie", "s=2"),), (("Content-Type", "text/plain"),),
        ]  # fmt: skip
        assert archive.answers.error_body(URL, history[2].checked_at) == body
        assert all(one in exported(archive) for one in (*cookies, gone))
        assert list(archive.verify()) == []


def noon(day: int) -> datetime:
    return datetime(2024, 1, day, 12, 0, 1, tzinfo=UTC)


def recorded_before(day: int, body: bytes | None) -> NewCapture:
    time = to_millis(noon(day)) - 1000
    outcome = Outcome.UNCHANGED if body is None else Outcome.NEW
    return NewCapture(URL, time, 200, (), body, outcome, versioned=body is not None, dated=True)


def frames(archive: Archive) -> list[tuple[int, ...]]:
    """How many records each frame had when it was made."""
    return archive.catalog.database.all("SELECT records FROM source_frame ORDER BY records")


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_records_share_frames_and_go_with_their_checks(
    tmp_path: Path, request: pytest.FixtureRequest, engine: str
) -> None:
    """What is forgotten of a frame is gone from it after a compaction; the others go out as they came."""
    url = request.getfixturevalue("new_database")() if engine == "postgresql" else ""
    settings = Settings(database=DatabaseSettings(url=url))
    records = [answer(URL, day, b"page %d" % day, "200 OK", f"Set-Cookie: s={day}", number=day) for day in range(1, 29)]
    (tmp_path / "x.warc").write_bytes(b"".join(records))
    with Archive(tmp_path / "a", settings=settings) as archive:
        import_sources(archive, [tmp_path / "x.warc"])
        assert frames(archive) == [(28,)]
        with archive.catalog.transaction() as cursor:
            cursor.run("DELETE FROM source_record WHERE time < ?", (to_millis(noon(20)) - 1000,))
        archive.compact()
        assert frames(archive) == [(9,)]
        assert [one for one in records if one in exported(archive)] == records[19:]
        with archive.catalog.transaction() as cursor:
            cursor.run("DELETE FROM source_record")
        archive.compact()
        assert frames(archive) == []
        assert list(archive.verify()) == []


def test_a_frame_that_is_gone_is_named_and_its_records_can_be_brought_again(tmp_path: Path) -> None:
    data = answer(URL, 1, PAGE, "200 OK", "Server: x")
    (tmp_path / "x.warc").write_bytes(data)
    with Archive(tmp_path / "a") as archive:
        import_sources(archive, [tmp_path / "x.warc"])
        with archive.catalog.transaction() as cursor:
            cursor.run("DELETE FROM source_frame")
        with pytest.raises(Damaged, match="imported record"):
            exported(archive)
        straighten(archive.catalog)
        import_sources(archive, [tmp_path / "x.warc"])
        assert data in exported(archive)


def test_records_that_an_earlier_release_compressed_one_by_one_are_read() -> None:
    stored = bytes.fromhex(STORED_BEFORE)
    kept = KeptRecord.unpack(stored)
    assert kept.fields == (("WARC-Type", "response"), ("WARC-Target-URI", "http://a.test/"))
    assert (kept.version, kept.head) == ("WARC/1.0", b"HTTP/1.1 200 OK\r\n\r\n")
    assert [(one.version, one.block) for one in kept.beside] == [("WARC/1.0", b"GET / HTTP/1.1\r\n\r\n")]
    again = KeptRecord.unpack(kept.pack())
    assert [one.to_bytes() for one in again.records(b"x")] == [one.to_bytes() for one in kept.records(b"x")]
