"""Facts that somebody else wrote are checked where they come in: one error each, and nothing fails later."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served_archive import WebClient, running
from written_warc import response

from letopis.archive import Archive, CheckDetails
from letopis.archive.accounts import accounts_of
from letopis.errors import Damaged
from letopis.exchange.captures import parse_check_facts
from letopis.exchange.imports import import_sources
from letopis.exchange.replica.index_records import parse_check, surt_key
from letopis.exchange.warc_records import CHECK_TYPE

URL = "http://a.test/x"
NOW = datetime(2024, 6, 1, tzinfo=UTC)
SOUND: dict[str, Any] = {
    "redirects": [], "final_url": URL, "error": "no answer", "warnings": [], "outcome": "unavailable", "status": 0,
}  # fmt: skip
DEEP: Any = json.loads("[" * 500 + "]" * 500)
WRONG: list[dict[str, Any]] = [
    {"redirects": 5}, {"redirects": [[1, 2]]}, {"redirects": [[URL, "x", URL, "", []]]},
    {"redirects": [[URL, 10**30, URL, "", []]]}, {"redirects": [[URL, 301, URL, "", [[1, 2]]]]},
    {"redirects": [[URL, 301, URL, "", []]] * 2000}, {"final_url": 7}, {"final_url": ["x"]}, {"final_url": "x" * 10**6},
    {"error": {}}, {"error": DEEP}, {"warnings": "text"}, {"warnings": [1]}, {"warnings": [[]] * 9}, {"length": 10**40},
    {"length": "7"}, {"length": -1}, {"length": True}, {"outcome": "odd"}, {"outcome": 3}, {"outcome": []},
    {"headers": [["A", "b"]], "status": 10**25}, {"headers": [["A", "b"]], "status": "200"},
    {"headers": [["A", 1]]}, {"headers": {"a": 1}}, {"headers": [["A"]]},
]  # fmt: skip
PAGES = [
    f"/url/{URL}", f"/api/v1/history?url={URL}", f"/api/v1/versions?url={URL}", f"/web/*/{URL}", f"/feed/{URL}",
    f"/web/timemap/link/{URL}", f"/web/timemap/json/{URL}", f"/cdx/search/cdx?url={URL}", f"/compare/{URL}", "/",
]  # fmt: skip


def facts(said: bytes, date: str = "2024-01-03T00:00:00Z") -> bytes:
    """A metadata record of ours, as somebody else might write it."""
    head = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Target-URI: {URL}\r\nWARC-Date: {date}\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000002>\r\n"
        f"Content-Type: {CHECK_TYPE}\r\nContent-Length: {len(said)}\r\n\r\n"
    )
    return head.encode() + said + b"\r\n\r\n"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: NOW) as made:
        made.put(URL, b"<title>t</title><p>one", at=datetime(2024, 1, 1, tzinfo=UTC))
        made.put(URL, b"<title>t</title><p>two", at=datetime(2024, 1, 2, tzinfo=UTC))
        yield made


def everything_answers(client: WebClient) -> bool:
    return all(client.get(page).status < 500 for page in PAGES)


def test_facts_of_wrong_types_are_refused_and_no_page_fails_later(archive: Archive, tmp_path: Path) -> None:
    nested = b'{"error":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    hostile = [json.dumps({**SOUND, **wrong}).encode() for wrong in WRONG] + [nested, b"[]", b"7", b"{}", b"\xff"]
    file = tmp_path / "hostile.warc"
    file.write_bytes(b"".join(map(facts, hostile)))
    report = import_sources(archive, [str(file)])
    assert report.refused == {"unreadable facts of a check": len(hostile)}
    assert report.checks == 0
    with running(archive) as client:
        assert everything_answers(client)


def test_sound_facts_come_in(archive: Archive, tmp_path: Path) -> None:
    hop = [URL, 301, "http://a.test/y", "127.0.0.1", [["Location", "/y"]]]
    said = SOUND | {"redirects": [hop], "final_url": "http://a.test/y", "warnings": ["slow"]}
    (tmp_path / "sound.warc").write_bytes(facts(json.dumps(said).encode()))
    assert import_sources(archive, [str(tmp_path / "sound.warc")]).checks == 1
    last = archive.history(URL)[-1]
    assert (last.error, last.final_url, last.warnings) == ("no answer", "http://a.test/y", ("slow",))
    assert last.redirects[0].headers == (("Location", "/y"),)


@pytest.mark.parametrize(
    "date", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "0001-01-01", "20240101"]
)
def test_dates_at_the_ends_of_time_come_in_or_are_refused(archive: Archive, tmp_path: Path, date: str) -> None:
    (tmp_path / "far.warc").write_bytes(response(URL, date, b"<p>far") + facts(json.dumps(SOUND).encode(), date))
    report = import_sources(archive, [str(tmp_path / "far.warc")])
    assert report.versions == 1 or report.refused == {"no readable date": 2}
    with running(archive) as client:
        assert everything_answers(client)


def test_an_index_that_names_a_pipe_or_no_place_is_told(archive: Archive, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.warc.gz")
    (tmp_path / "folder.warc.gz").mkdir()
    odd = [10**30, "9" * 4000, float("inf"), -1, None, [], {}, 2**63]
    fields: list[dict[str, object]] = [
        {"filename": name, "offset": 0, "length": 9} for name in ("pipe.warc.gz", "folder.warc.gz", "none.warc.gz")
    ]
    fields += [{"filename": "pipe.warc.gz", "offset": one, "length": 9} for one in odd]
    lines = [f"test,a)/x 20240101000000 {json.dumps(one)}" for one in fields]
    lines.append('test,a)/x 20240101000000 {"filename":' + "[" * 200_000)
    (tmp_path / "index.cdxj").write_text("\n".join(lines))
    report = import_sources(archive, [str(tmp_path / "index.cdxj")])
    assert report.refused["a line without filename, offset and length"] == len(odd) + 1
    assert report.refused["cannot be read (it is not a regular file)"] == 2
    assert report.checks == 0


def _writer(archive: Archive) -> dict[str, str]:
    token = accounts_of(archive).create_token("ci", None, "write", 0)
    return {"Authorization": f"Bearer {token}", "Content_Type": "application/json"}


def test_a_body_nested_without_end_is_one_error(archive: Archive) -> None:
    with running(archive) as client:
        told = client.ask("POST", "/api/v1/watches", b"[" * 200_000, **_writer(archive))
    assert told.status == 422


def test_half_a_character_in_a_body_is_one_error(archive: Archive) -> None:
    head = _writer(archive)
    with running(archive) as client:
        for body in (b'{"client": "\\ud800", "cursor": "1"}', b'{"client": "\xed\xa0\x80", "cursor": "1"}'):
            assert client.ask("POST", "/api/v1/changes/ack", body, **head).status == 422


FAR = [
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31",
    "0001-01-01",
    "99999999999999",
    "9" * 400,
]


@pytest.mark.parametrize("time", FAR)
def test_a_time_at_the_ends_of_time_is_answered_or_refused(archive: Archive, time: str) -> None:
    said = quote(time)
    asked = [
        f"/api/v1/{name}?url={URL}&{end}={said}" for name in ("history", "versions", "diff") for end in ("from", "to")
    ]
    asked += [
        f"/compare/{URL}?to={said}",
        f"/api/v1/content?url={URL}&at={said}",
        f"/cdx/search/cdx?url={URL}&to={said}",
    ]
    with running(archive) as client:
        assert [path for path in asked if client.get(path).status >= 500] == []


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=12,
)
NAMES = st.sampled_from(["final", "hops", "error", "warnings", "score", "blocks", "length", "other"])


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(NAMES, ANYTHING, max_size=7) | ANYTHING)
def test_details_are_read_whole_or_refused(said: Any) -> None:
    try:
        details = CheckDetails.from_outside(said)
    except ValueError:
        return
    assert CheckDetails.unpack(details.pack()) == details


@settings(max_examples=300, deadline=None)
@given(ANYTHING, st.sampled_from(["s", "h", "o", "n", "m", "t", "x", "c", "url"]))
def test_a_clone_record_of_wrong_types_is_damaged(said: Any, name: str) -> None:
    fields = {"url": URL, "s": 200, "o": 3} | {name: said}
    line = f"{surt_key(URL)} 20240101000000000 {json.dumps(fields)}".encode()
    try:
        found = parse_check(line)
    except Damaged:
        return
    assert CheckDetails.unpack(found.extra) is not None
    assert found.title is None or isinstance(found.title, str)


@given(st.binary(max_size=60))
def test_whatever_facts_are_said_to_be_they_are_an_object_or_none(said: bytes) -> None:
    assert isinstance(parse_check_facts(said), dict | None)
