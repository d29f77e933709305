"""Ranges of archived bodies, and captures of ranges."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_archive import at, look, running

from letopis.archive import Archive
from letopis.replay.captures import body_part

FILM = bytes(range(100))


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Any:

    with Archive(tmp_path_factory.mktemp("films") / "a", clock=lambda: at(100)) as archive:
        kind = ("Content-Type", "video/mp4")
        archive.record([look("http://a.example/film", at(0), FILM, headers=(kind,))])
        part = (kind, ("Content-Range", "bytes 20-59/100"))
        archive.record([look("http://a.example/part", at(0), FILM[20:60], 206, headers=part)])
        whole = (kind, ("Content-Range", "bytes 0-99/100"))
        archive.record([look("http://a.example/whole", at(0), FILM, 206, headers=whole)])
        with running(archive) as web:
            yield web


@pytest.mark.parametrize(
    ("name", "asked", "status", "part", "said"),
    [
        ("film", None, 200, (0, 100), None),
        ("film", "bytes=0-", 206, (0, 100), "bytes 0-99/100"),
        ("film", "bytes=10-19", 206, (10, 20), "bytes 10-19/100"),
        ("film", "bytes=-5", 206, (95, 100), "bytes 95-99/100"),
        ("film", "bytes=90-500", 206, (90, 100), "bytes 90-99/100"),
        ("film", "bytes=100-", 416, (0, 0), "bytes */100"),
        ("film", "bytes=5-1", 200, (0, 100), None),
        ("film", "bytes=1-2,5-6", 200, (0, 100), None),
        ("film", "lines=1-2", 200, (0, 100), None),
        ("part", None, 206, (20, 60), "bytes 20-59/100"),
        ("part", "bytes=20-", 206, (20, 60), "bytes 20-59/100"),
        ("part", "bytes=30-34", 206, (30, 35), "bytes 30-34/100"),
        ("part", "bytes=0-", 416, (0, 0), "bytes */100"),
        ("whole", None, 200, (0, 100), None),
        ("whole", "bytes=1-1", 206, (1, 2), "bytes 1-1/100"),
    ],
)
@pytest.mark.parametrize("form", ["", "id_", "im_"])
def test_players_get_the_part_they_ask_for(
    films: Any, name: str, asked: str | None, status: int, part: tuple[int, int], said: str | None, form: str
) -> None:
    fields = {"Range": asked} if asked else {}
    answer = films.get(f"/web/20240101120000{form}/http://a.example/{name}", **fields)
    assert (answer.status, answer.body, answer.headers.get("content-range")) == (status, FILM[slice(*part)], said)
    assert answer.headers["content-length"] == str(part[1] - part[0])


def test_a_range_on_a_condition_is_answered_whole(films: Any) -> None:
    answer = films.get("/web/20240101120000/http://a.example/film", Range="bytes=0-1", If_Range='"x"')
    assert (answer.status, answer.body, answer.headers["accept-ranges"]) == (200, FILM, "bytes")


@given(st.binary(min_size=1, max_size=30), st.integers(0, 40), st.integers(0, 40))
def test_what_is_sent_is_what_its_content_range_says(body: bytes, first: int, last: int) -> None:
    part = body_part(200, body, "", f"bytes={first}-{last}")
    if part.status == 206:
        place = part.content_range.removeprefix("bytes ").partition("/")[0].split("-")
        assert part.body == body[int(place[0]) : int(place[1]) + 1] == body[first : last + 1]
    else:
        assert (part.status == 416) == (first >= len(body) and last >= first)
