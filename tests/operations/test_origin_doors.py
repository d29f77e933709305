"""Where the paragraphs of a page first stood, in the whole archive: the same in every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_archive import at, running

from letopis.archive import READ, Archive
from letopis.cli import main
from letopis.operations import Context, bind, json_value
from letopis.operations.words import ParagraphOrigin, origin

TEXTS = [
    "The committee met on the hill and spoke of water, roads and the school for three hours.",
    "A second paragraph tells who came and why the mayor stayed away from the meeting.",
    "The third one lists what was decided, with the names of those who voted against it.",
]
FIRST, SECOND, COPY = (f"http://example.org/{name}" for name in ("first", "second", "copy"))


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Two pages with texts of their own, one of which grew, and a third that is made of their paragraphs."""
    with Archive(tmp_path / "archive", clock=lambda: at(600)) as opened:
        for url, minutes, texts in (
            (FIRST, 0, TEXTS[:1]), (SECOND, 10, TEXTS[1:2]), (FIRST, 20, [TEXTS[0], TEXTS[2]]),
            (COPY, 30, [TEXTS[1], TEXTS[2], "Short."]),
        ):  # fmt: skip
            opened.put(url, "".join(f"<p>{text}</p>" for text in texts).encode(), at(minutes))
        yield opened


def places(archive: Archive, url: str) -> tuple[list[tuple[str, object, bool]], object]:
    found = origin(Context(archive, user="", rights=READ), bind(origin.parameters, {"url": url}, at(600)))
    rows: list[ParagraphOrigin] = list(found)
    return [(row.first_url, row.first_time, row.elsewhere) for row in rows], found.about["known"]


def test_a_page_made_of_paragraphs_of_others_is_found_with_their_first_places(archive: Archive) -> None:
    assert places(archive, COPY) == ([(SECOND, at(10), True), (FIRST, at(20), True)], 1.0)


def test_a_page_with_its_own_text_is_its_origin(archive: Archive) -> None:
    assert places(archive, FIRST) == ([(FIRST, at(0), False), (FIRST, at(20), False)], 0.0)


def test_the_command_line_and_http_tell_the_same(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    context = Context(archive, user="", rights=READ)
    rows = [json_value(row) for row in origin(context, bind(origin.parameters, {"url": COPY}, at(600)))]
    with running(archive) as web:
        answer = web.get(f"/api/v1/origin?url={COPY}").json()
    assert (answer["origin"], answer["known"]) == (rows, 1.0)
    assert main(["--archive", str(archive.folder), "origin", COPY, "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows
