"""Answers to POST, HEAD and OPTIONS are no versions of the page; requests are kept and make their keys."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from foreign_warc import answer, request
from hypothesis import given
from hypothesis import strategies as st
from written_warc import export_warc

from letopis.archive import Archive
from letopis.exchange.imports import import_sources
from letopis.exchange.kept_records import parse_request
from letopis.exchange.selection import ExportSelection
from letopis.urls import normalize
from letopis.urls.request_keys import HttpRequest, request_url

URL = "http://a.test/form"
FORM = "application/x-www-form-urlencoded"


def urls_of(archive: Archive) -> list[str]:
    return [row.url for row in archive.catalog.resources.all()]


@pytest.mark.parametrize("first", ["request", "answer"])
def test_answers_to_other_methods_are_no_versions_of_the_page(tmp_path: Path, first: str) -> None:
    pairs = [
        (answer(URL, 1, b"<p>the page</p>"), request(URL, 1, "GET")),
        (answer(URL, 2, b"thank you, x"), request(URL, 2, "POST", b"name=x&b=1", FORM)),
        (answer(URL, 3, b"thank you, y"), request(URL, 3, "POST", b"name=y", FORM)),
        (answer(URL, 4, b""), request(URL, 4, "HEAD")),
        (answer(URL, 5, b"", "204 No Content"), request(URL, 5, "OPTIONS")),
    ]
    data = b"".join(b"".join(pair if first == "answer" else pair[::-1]) for pair in pairs)
    (tmp_path / "x.warc").write_bytes(data)
    with Archive(tmp_path / "a") as archive:
        assert dict(import_sources(archive, [tmp_path / "x.warc"]).refused) == {}
        assert [version.number for version in archive.versions(URL)] == [0]
        assert archive.get(URL).body == b"<p>the page</p>"
        assert urls_of(archive) == [
            URL,
            f"{URL}?__wb_method=POST&b=1&name=x",
            f"{URL}?__wb_method=POST&name=y",
            f"{URL}?__wb_method=HEAD",
            f"{URL}?__wb_method=OPTIONS",
        ]
        assert archive.get(f"{URL}?__wb_method=POST&name=y").body == b"thank you, y"
        out = io.BytesIO()
        export_warc(archive, out, ExportSelection(), "none")
        for pair in pairs:
            assert all(record in out.getvalue() for record in pair)


def test_an_answer_without_a_request_is_that_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "x.warc").write_bytes(answer(URL, 1, b"page") + request("http://b.test/", 1, "POST"))
    with Archive(tmp_path / "a") as archive:
        import_sources(archive, [tmp_path / "x.warc"])
        assert urls_of(archive) == [URL]


@pytest.mark.parametrize(
    ("method", "kind", "body", "query"),
    [
        ("GET", "", b"", ""),
        ("HEAD", "", b"", "?__wb_method=HEAD"),
        ("PUT", FORM, b"a=1&a=2", "?__wb_method=PUT&a=1&a=2"),
        ("POST", "application/json", b'{"a": {"b": 1}, "b": [2, "x"]}', "?__wb_method=POST&b=1&b.2_=2&b.3_=x"),
        ("POST", "image/png", b"\x89PNG", "?__wb_method=POST&__wb_post_data=iVBORw%3D%3D"),
    ],
)
def test_method_and_body_are_a_part_of_the_address(method: str, kind: str, body: bytes, query: str) -> None:
    assert request_url(URL, HttpRequest(method, kind, body)) == URL + query


@given(st.text(max_size=8), st.sampled_from([FORM, "application/json", "text/plain", "x/y"]), st.binary(max_size=9000))
def test_any_request_gives_an_address_of_its_own(method: str, kind: str, body: bytes) -> None:
    found = normalize(request_url(URL, HttpRequest("P" + method.upper(), kind, body)))
    assert found != URL


@given(st.binary(max_size=200))
def test_any_block_is_a_request_or_none(block: bytes) -> None:
    found = parse_request(block)
    assert found is None or found.method.isupper() or not found.method.isascii()
