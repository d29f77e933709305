"""The comparison of two versions: as it looks with the styles of the page, its first change, and pictures of both."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from served_archive import PAGE, at, look, running
from signed_in import Person, add_people

from letopis.archive import Archive
from letopis.archive.watches import AlertRow, NewAlert, watches_of
from letopis.change.visual_diff import FIRST_CHANGE, visual_html
from letopis.model import WholePage, rfc3339, to_millis
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.web.comparison import number_step

PICTURE = b"\x89PNG\r\n\x1a\n picture"
SHEET = PAGE.rpartition("/")[0] + "/site.css"
HEAD = b"<html><head><link rel=stylesheet href=site.css><link rel=icon href=x.ico><title>P</title></head>"
TEXT = HEAD + b"<p>Price %d</p></html>"


def filled(folder: Path, *, pictures: bool) -> Archive:
    archive = Archive(folder / "archive", clock=lambda: at(100))
    archive.put(SHEET, b"p { color: red }", at(0), "text/css")
    for number in (1, 2):
        whole = WholePage((), (), PICTURE + bytes([number]), "text") if pictures else None
        archive.record([look(PAGE, at(number), TEXT % number)._replace(whole=whole)])
    return archive


def test_as_it_looks_has_the_styles_of_the_page_and_leads_to_the_first_change(tmp_path: Path) -> None:
    with filled(tmp_path, pictures=False) as archive, running(archive) as web:
        shown = web.get(f"/compare/{PAGE}?view=visual").text
        frame = re.search(r'src="([^"]*view=frame[^"]*)"', shown)
        assert frame
        address, _, place = frame[1].replace("&amp;", "&").partition("#")
        assert place == FIRST_CHANGE
        answer = web.get(address)
        assert answer.text.count(f'id="{FIRST_CHANGE}"') == 1
        (sheet,) = re.findall(r'<link rel="stylesheet" href="([^"]+)"', answer.text)
        assert sheet.endswith(SHEET)
        moved = web.get(sheet).headers["location"]  # to the time at which it was captured
        assert web.get(moved).text == "p { color: red }"
        policy = answer.headers["content-security-policy"]
        assert f"style-src 'unsafe-inline' {web.address}/web/" in policy
        assert "x.ico" not in answer.text
        assert "view=pictures" not in shown


def test_one_number_of_a_filtered_watch_is_shown_as_a_step_and_words_otherwise(tmp_path: Path) -> None:
    with filled(tmp_path, pictures=False) as archive, running(archive) as web:
        WatchList(archive).add([PAGE], WatchSpec(filters=(("css", "p"),)))
        page = web.get(f"/compare/{PAGE}?filter=1").text
        assert "<del>Price 1</del> → <ins>Price 2</ins></span> +100" in page
        assert "1 word" not in page
    assert number_step("40.27\n", "50.34\n") == ("40.27", "50.34", pytest.approx(0.25, abs=1e-3))
    assert number_step("1 234,50 Kč", "1 200,00 Kč") is not None
    assert number_step("in stock 3", "sold out 0") is None
    assert number_step("5 of 7", "6 of 8 of 9") is None


def test_alerts_that_are_read_with_the_opened_one_are_counted_and_given_back(tmp_path: Path) -> None:
    with filled(tmp_path, pictures=False) as archive, running(archive) as web:
        add_people(archive)
        uwe = Person(web, "uwe")
        facts = json.dumps({"watch": 1, "version": 1})
        WatchList(archive).add([PAGE], WatchSpec())
        for number in range(3):
            row = AlertRow(0, PAGE, "changed", to_millis(at(number + 1)), "m", facts)
            watches_of(archive).save_judged([], [NewAlert(row, [], 0)])
        page = uwe.see(f"/compare/{PAGE}?alert=2")
        assert "3 alerts of this page are read now" in page
        assert uwe.see("/alerts").count('class="dot"') == 0
        assert "Undo" not in uwe.see(f"/compare/{PAGE}?alert=2")
        assert uwe.send("/alerts", url=PAGE, action="unread", since=str(to_millis(at(1)))) == (303, "/alerts")
        assert uwe.see("/alerts").count('class="dot"') == 2
        assert "2 alerts of this page are read now" in uwe.see(f"/url/{PAGE}?alert=3")


def test_sheets_that_run_are_no_sheets_and_none_is_loaded_unless_asked_for() -> None:
    page = "<link rel=stylesheet href='javascript:x'><link rel=stylesheet href=/a.css onload=x()><p>{}</p>"
    found = visual_html(page.format("a"), page.format("b"), remote=True)
    assert "javascript" not in found
    assert "onload" not in found
    assert 'href="/a.css"' in found
    assert "a.css" not in visual_html(page.format("a"), page.format("b"))


def test_pictures_of_both_versions_stand_beside_each_other_where_they_are_kept(tmp_path: Path) -> None:
    with filled(tmp_path, pictures=True) as archive, running(archive) as web:
        shown = web.get(f"/compare/{PAGE}?view=pictures").text
        pictures = [address.replace("&amp;", "&") for address in re.findall(r'<img src="([^"]+)"', shown)]
        assert [web.get(address).body for address in pictures] == [PICTURE + b"\x01", PICTURE + b"\x02"]


def test_sources_are_compared_line_by_line_with_numbers_and_equal_lines_folded(tmp_path: Path) -> None:
    lines = [f"<p>Line {number} of many</p>" for number in range(40)]
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive:
        archive.record([look(PAGE, at(1), "\n".join(lines).encode())])
        lines[20] = "<p>Line 20 of very many</p>"
        archive.record([look(PAGE, at(2), "\n".join(lines).encode())])
        with running(archive) as web:
            shown, whole = (web.get(f"/compare/{PAGE}?view={view}").text for view in ("raw", "source"))
            sides, lines_whole = (web.get(f"/compare/{PAGE}?view={view}").text for view in ("sides", "lines"))
    assert re.findall(r'<tr class="(gone|came)"><td class="no">(\d*)</td><td class="no">(\d*)</td>', shown) == [
        ("gone", "21", ""), ("came", "", "21"),
    ]  # fmt: skip
    assert "17 unchanged lines" in shown
    assert "<ins>very </ins>" in shown.replace("<ins> very</ins>", "<ins>very </ins>")
    assert "Line 1 of many" not in shown
    assert "Line 1 of many" in whole
    assert "unchanged lines" not in whole
    # Lines that are left out open from the first of them on, in both views.
    for short, all_lines in ((shown, whole), (sides, lines_whole)):
        opening = re.findall(r'view=(?:source|lines)#(l\d+)" data-lines="(\d+)"', short)
        assert opening == [("l1", "17"), ("l25", "16")]
        assert all(f'id="{place}"' in all_lines for place, _ in opening)


def test_which_versions_are_compared_folds_away_above_the_views(tmp_path: Path) -> None:
    with filled(tmp_path, pictures=False) as archive, running(archive) as web:
        shown = web.get(f"/compare/{PAGE}").text
    assert re.search(r'<details class="pair" data-open-wide><summary>.*v0 · .* → v1 · ', shown)
    places = [shown.index(part) for part in ('<details class="pair"', 'class="tabs"', 'class="verdict"', "sheet words")]
    assert places == sorted(places)


SHOP = b"<title>Pen</title><body><p class=price>EUR %s</p><p>You are visitor number %s of this little shop.</p>"


def watched_shop(folder: Path) -> Archive:
    """A watch of a price, a page on which a counter changes too, and the alert of that watch."""
    archive = Archive(folder / "archive", clock=lambda: at(100))
    watches = WatchList(archive)
    watches.add([PAGE], WatchSpec(every=60.0))
    watches.add([PAGE], WatchSpec(every=60.0, filters=(("css", ".price"),)), name="price")
    archive.put(PAGE, SHOP % (b"40.00", b"100"), at(1))
    archive.put(PAGE, SHOP % (b"35.00", b"200"), at(2))
    facts = json.dumps({"watch": 2, "name": "price", "version": 1})
    row = AlertRow(0, PAGE, "changed", to_millis(at(2)), f"{PAGE} has changed", facts)
    watches_of(archive).save_judged([], [NewAlert(row, ())])
    return archive


@pytest.mark.parametrize(
    ("kind", "expression", "body", "said"),
    [
        ("jsonpath", "$.price", b"<title>Pen</title><p>Shop is closed</p>", "needs a JSON document"),
        ("css", ".price", b'{"price": 35}', "needs an HTML or XML document"),
        ("xpath", "//b", b'{"price": 35}', "needs an HTML or XML document"),
    ],
)
def test_a_comparison_says_that_the_filters_of_the_watch_cannot_be_applied(
    tmp_path: Path, kind: str, expression: str, body: bytes, said: str
) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive, running(archive) as web:
        WatchList(archive).add([PAGE], WatchSpec(every=60.0, filters=((kind, expression),)))
        archive.put(PAGE, SHOP % (b"40.00", b"100"), at(1))
        archive.put(PAGE, body, at(2), "application/json" if body.startswith(b"{") else "text/html")
        shown = web.get(f"/compare/{PAGE}?filter=1").text
        assert "The filters of the watch cannot be applied, so the whole page is compared:" in shown
        assert said in shown
        assert "Through the filters of the watch:" not in shown
        assert "cannot be applied" not in web.get(f"/compare/{PAGE}").text


def test_a_part_of_a_feed_is_compared_through_the_filters_of_its_watch(tmp_path: Path) -> None:
    feed = b"<rss><channel><title>Town</title><item><title>%s</title></item></channel></rss>"
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive, running(archive) as web:
        WatchList(archive).add([PAGE], WatchSpec(every=60.0, filters=(("xpath", "//item/title/text()"),)))
        for n, one in enumerate((b"Bridge closed", b"Bridge open")):
            archive.put(PAGE, feed % one, at(n + 1), "application/rss+xml")
        shown = web.get(f"/compare/{PAGE}?filter=1").text
        assert "the chosen part is different" in shown
        assert "channel" not in shown


def test_a_comparison_names_the_version_of_which_the_filters_select_nothing(tmp_path: Path) -> None:
    with watched_shop(tmp_path) as archive, running(archive) as web:
        archive.put(PAGE, b"<title>Pen</title><p>Shop is closed</p>", at(3))
        assert "The filters of the watch select nothing of version 2." in web.get(f"/compare/{PAGE}?filter=2").text


def test_a_comparison_from_an_alert_opens_through_the_filters_of_its_watch(tmp_path: Path) -> None:
    with watched_shop(tmp_path) as archive, running(archive) as web:
        for page in ("/alerts", "/watches", "/watches/2"):
            (link,) = re.findall(r'href="(/compare/[^"]+alert=1)"', web.get(page).text)
            shown = web.get(link.replace("&amp;", "&")).text
            assert "Through the filters of the watch: css <code>.price</code>" in shown
            assert "visitor" not in shown
            assert f'<a href="/url/{PAGE}">Pen</a></nav>' in shown, "the filters are no reason to forget the title"
            assert re.search(r"<del>[^<]*\d[^<]*</del> → <ins>[^<]*\d[^<]*</ins></span> [+−]\d", shown)
            assert "Changed paragraphs" not in shown
        whole = web.get(f"/compare/{PAGE}").text
        assert "visitor number" in whole
        assert "filter=2" in whole
        assert "visitor" in web.get(f"/compare/{PAGE}?filter=77").text, "a watch that is gone has no filters"


def test_versions_that_read_alike_are_told_so_and_no_source_is_shown_as_words(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive:
        archive.put(PAGE, b"<p>The same text</p>", at(1))
        archive.put(PAGE, b"<p class=new>The same text</p>", at(2))
        with running(archive) as web:
            words, sides, raw = (web.get(f"/compare/{PAGE}?view={view}").text for view in ("words", "sides", "raw"))
            equal = web.get(f"/compare/{PAGE}?from={rfc3339(at(1))}&to={rfc3339(at(1))}").text
    for shown in (words, sides):
        assert "The readable text is the same in both versions." in shown
        assert "view=raw" in shown
        assert "&lt;p" not in shown
    assert "&lt;p" in raw
    assert "Both versions are identical, byte for byte." in equal
    assert "&lt;p" not in equal
