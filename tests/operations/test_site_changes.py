"""What changed on a site between two dates: one answer in all doors, which the comparison behind it bears out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_archive import WebClient, at, running

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.model import rfc3339

HOME, PEN = "http://shop.example/", "http://shop.example/pen"
FIRST, LAST = at(0), at(90)


def pen(price: str, stock: str) -> bytes:
    return (
        f"<title>Pen</title><main><h1>Fountain pen</h1><p>Price of this pen: EUR {price}</p><p>{stock}</p></main>"
    ).encode()


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: LAST) as opened:
        opened.put(HOME, b"<title>Shop</title><a href=/pen>Pen</a>", at(-10))
        states = ("41.63", "In stock"), ("40.27", "In stock"), ("50.34", "Sold out")
        for number, state in enumerate(states):
            opened.put(PEN, pen(*state), at(-9 + 20 * number))
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def test_a_row_shows_the_difference_of_the_two_dates_in_every_door(
    archive: Archive, web: WebClient, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"site=shop.example&from={rfc3339(FIRST)}&to={rfc3339(LAST)}"
    (row,) = web.get(f"/api/v1/map/diff?{asked}&texts=1").json()["events"]
    assert (row["removed"], row["added"], row["verdict"]) == (
        "Price of this pen: EUR 41.63", "Price of this pen: EUR 50.34", "changed",
    )  # fmt: skip
    words = ["map", "diff", "shop.example", rfc3339(FIRST), rfc3339(LAST), "--texts", "--json"]
    assert main([*words, "--archive", str(archive.folder)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["removed"], told["added"]) == (row["removed"], row["added"])
    shown = web.get(f"/site/shop.example?view=changes&since={rfc3339(FIRST)}").text
    assert "Price of this pen: EUR <del>41.63</del> <ins>50.34</ins>" in shown
    assert "40.27" not in shown, "what lies between the two dates is not their difference"
    compared = re.search(r'href="(/compare/[^"]+from=[^"]+)"', shown)
    assert compared
    comparison = web.get(compared[1].replace("&amp;", "&")).text
    assert "41.63" in comparison
    assert "50.34" in comparison
    assert "40.27" not in comparison.partition("<main")[2]


def test_rows_are_asked_for_their_texts_only_where_somebody_wants_them(web: WebClient) -> None:
    (row,) = web.get(f"/api/v1/map/diff?site=shop.example&from={rfc3339(FIRST)}").json()["events"]
    assert (row["event"], row["removed"], row["added"], row["verdict"]) == ("changed", "", "", "")


def test_a_page_that_went_back_to_what_it_was_is_told_as_the_comparison_tells_it(
    archive: Archive, web: WebClient
) -> None:
    archive.put(PEN, pen("41.63", "In stock") + b"<!-- made anew -->", at(60))
    found = web.get(f"/api/v1/map/diff?site=shop.example&from={rfc3339(FIRST)}&texts=1").json()["events"]
    assert [row["verdict"] for row in found if row["event"] == "changed"] in ([], ["noise"])
    shown = web.get(f"/site/shop.example?view=changes&since={rfc3339(FIRST)}").text
    assert "50.34" not in shown


def test_the_map_leads_to_what_changed(web: WebClient) -> None:
    shown = web.get("/site/shop.example").text.partition("<section")[2]
    assert re.search(r'href="/site/shop.example\?view=changes">What changed since', shown)
