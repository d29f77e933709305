"""File names of addresses: inside the folder, safe everywhere, unique, stable."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import BadUrl
from letopis.exchange.static_names import MOST_LENGTH, file_name, is_file_name, link_to
from letopis.urls import normalize

RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
TYPES = st.sampled_from(
    ["text/html", "text/html; charset=utf-8", "image/png", "", "x/y", "text/css", "../../etc", "a/../b"]
)
SEGMENTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["", ".", "..", "%2e%2e", "%2F", "con", "NUL.txt", "a.", "a ", "A", "a", "a.html", "index.html", "~"]
    ),
    st.text("a.", max_size=90),
)
URLS = st.builds(
    lambda scheme, host, parts, query: f"{scheme}://{host}/{'/'.join(parts)}{query}",
    st.sampled_from(["http", "https"]),
    st.sampled_from(
        ["a.example", "b.example:8080", "index.html", "[::1]:80", "con", "x_y.example", "u@a.example", ".."]
    ),
    st.lists(SEGMENTS, max_size=15),
    st.one_of(st.just(""), st.text(max_size=20).map(lambda text: "?" + text)),
)


@settings(max_examples=150, deadline=None)
@given(URLS, TYPES)
def test_no_address_leads_out_of_the_folder(url: str, kind: str) -> None:
    try:
        name = file_name(url, kind)
    except ValueError:
        return  # urlsplit itself refuses it: no archive holds such an address
    assert is_file_name(name)
    root = Path("/copy")
    assert root / name == Path(re.sub("/+", "/", f"/copy/{name}"))
    for segment in name.split("/"):
        assert re.fullmatch(r"[a-z0-9_~.-]+", segment)
        assert segment not in (".", "..")
        assert not segment.endswith((".", " "))
        assert not RESERVED.fullmatch(segment)
        assert len(segment) <= 100
    assert len(name) <= MOST_LENGTH


def normal(url: str) -> str | None:
    try:
        return normalize(url)
    except BadUrl:
        return None


@settings(max_examples=150, deadline=None)
@given(st.lists(URLS, max_size=12), TYPES)
def test_no_two_addresses_share_a_file_and_none_is_the_folder_of_another(urls: list[str], kind: str) -> None:
    known = {url for url in map(normal, urls) if url is not None}
    names = {file_name(url, kind) for url in known}
    assert len(names) == len(known)
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    assert not names & folders


@pytest.mark.parametrize(
    ("url", "kind", "name"),
    [
        ("https://example.org/", "text/html", "example.org/index.html"),
        ("http://example.org/", "text/html", "example.org~http/index.html"),
        ("https://example.org:8443/a/", "text/html", "example.org~8443/a/index.html"),
        ("https://example.org/docs/a.html", "text/html", "example.org/docs/a.html"),
        ("https://example.org/docs/a.htm", "text/html; charset=utf-8", "example.org/docs/a.htm"),
        ("https://example.org/logo.png", "image/png", "example.org/logo.png"),
        ("https://example.org/photo.jpeg", "image/jpeg", "example.org/photo.jpeg"),
    ],
)
def test_plain_addresses_keep_their_names(url: str, kind: str, name: str) -> None:
    assert file_name(url, kind) == name


@pytest.mark.parametrize(
    ("url", "kind", "pattern"),
    [
        ("https://example.org/a", "text/html", r"example\.org/a~[0-9a-f]{12}\.html"),
        ("https://example.org/a.php?id=1", "text/html", r"example\.org/a~[0-9a-f]{12}\.html"),
        ("https://example.org/A.html", "text/html", r"example\.org/a~[0-9a-f]{12}\.html"),
        ("https://example.org/index.html", "text/html", r"example\.org/index~[0-9a-f]{12}\.html"),
        ("https://example.org/?p=1", "text/html", r"example\.org/_~[0-9a-f]{12}\.html"),
        ("https://example.org/v1.2/a.css", "text/css", r"example\.org/v1_2~[0-9a-f]{12}/a\.css"),
        ("https://example.org/nul.html", "text/html", r"example\.org/nul~[0-9a-f]{12}\.html"),
        ("https://example.org/" + "d/" * 40, "text/html", r"example\.org/long~[0-9a-f]{12}\.html"),
    ],
)
def test_changed_names_carry_a_mark_of_the_address(url: str, kind: str, pattern: str) -> None:
    assert re.fullmatch(pattern, file_name(url, kind))


def test_links_between_files_are_relative() -> None:
    assert link_to("a.example/b/c.html", "a.example/index.html") == "b/c.html"
    assert link_to("z.example/x.css", "a.example/b/c.html") == "../../z.example/x.css"
