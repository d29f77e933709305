"""Prices, labels and headlines in any language: what looks like a counter, a label or a short word may be the news."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest

from letopis.change.fingerprints import fingerprint, normalized_words, words_in
from letopis.change.profiles import PageHabits
from letopis.change.verdict import compare
from letopis.extract import read_page
from letopis.model import Block, BlockKind, Page
from letopis.model.page import TEXT_CUT

MakePage = Callable[..., Page]
STANDING = tuple(
    Block(BlockKind.PARAGRAPH, f"Standing text number {n} tells of the town and of its people, and stays.")
    for n in range(20)
)


def page_with(*top: Block) -> Page:
    return Page("http://town.test/", "text/html", blocks=(*top, *STANDING))


def told(pages: list[Page]) -> list[bool | None]:
    """Whether each page is a change from the one before, as visits judge them."""
    habits, found = PageHabits(), list[bool | None]()
    for old, new in pairwise(map(fingerprint, pages)):
        found.append(compare(new, [old], habits=habits).meaningful)
        habits.observe(old, new)
    return found


@pytest.mark.parametrize(
    "price",
    ["{},-", "{} zł", "{} PLN", "{} Ft", "{} kr", "{}円", "{} 元", "₹{}", "₩{}", "₴{}", "CAD {}", "{} dollars",
     "{} korun", "{} Fr.", "{} грн", "Rs. {}", "S/ {}", "Cena: {}", "Preis {}", "{}.50", "{} basis points"],
)  # fmt: skip
def test_a_price_is_news_in_every_currency_however_often_it_changes(price: str) -> None:
    pages = [page_with(Block(BlockKind.PARAGRAPH, price.format(100 + 7 * n % 13))) for n in range(12)]
    assert all(told(pages))


def test_a_bare_number_is_a_price_where_its_label_says_so() -> None:
    label = Block(BlockKind.CELL, "Preis")
    assert all(told([page_with(label, Block(BlockKind.CELL, str(100 + 7 * n % 13))) for n in range(12)]))


def test_a_price_that_goes_to_and_fro_is_news_each_time() -> None:
    pages = [page_with(Block(BlockKind.PARAGRAPH, f"Now {('19.90', '17.50')[n % 2]} EUR")) for n in range(16)]
    assert all(told(pages))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("19.90 EUR", "17.50 EUR"),
        ("5.0.1 released", "5.0.2 released"),
        ("Chapter 7 bankruptcy filed", "Chapter 11 bankruptcy filed"),
        ("Section 12 repealed", "Section 13 repealed"),
        ("12. ročník festivalu", "13. ročník festivalu"),
    ],
)
def test_a_number_or_an_initial_before_a_heading_is_no_label_where_headings_are_not_numbered(
    old: str, new: str
) -> None:
    assert told([page_with(Block(BlockKind.H2, text)) for text in (old, new)]) == [True]


def test_a_new_release_above_older_ones_of_the_same_words_is_news() -> None:
    blocks = [Block(BlockKind.H2, f"5.0.{n} released") for n in (3, 2, 1, 0)]
    assert told([page_with(*blocks[1:]), page_with(*blocks)]) == [True]


def test_headings_that_are_numbered_anew_are_the_same_headings() -> None:
    pages = [
        page_with(*(Block(BlockKind.H2, f"{n}. {name}") for n, name in enumerate(("Scope", "Terms", "Sources"), first)))
        for first in (1, 2)
    ]
    assert told(pages) == [False]


@pytest.mark.parametrize(
    ("old", "new"),
    [("ราคา เสือ สองตัว", "ราคา เสื้อ สองตัว"), ("आज का दिन अच्छा है", "आज का दान अच्छा है"), ("இன்று படி வா", "இன்று பாடு வா")],
)
def test_another_vowel_or_tone_is_another_word(page: MakePage, old: str, new: str) -> None:
    assert normalized_words(old) != normalized_words(new)
    standing = [block.text for block in STANDING]
    assert compare(page(new, *standing), [page(old, *standing)]).meaningful


def test_an_accent_written_as_a_mark_of_its_own_is_the_same_letter() -> None:
    assert normalized_words("Cafe\u0301 Ne\u030cmec") == normalized_words("Café Němec")


@pytest.mark.parametrize(
    "headlines", [["洪水关闭老桥", "市长辞职", "学校重新开放"], ["首相が辞任した", "地震で橋が閉鎖", "学校が再開"]]
)
def test_a_headline_without_blanks_is_a_headline(headlines: list[str]) -> None:
    assert all(told([page_with(Block(BlockKind.H2, text)) for text in headlines]))
    assert words_in("学校重新开放") == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("In stock", "Sold out"),
        ("Skladem", "Vyprodáno"),
        ("Yes", "No"),
        ("All systems operational", "Major outage"),
        ("Mayor resigns today", "Hospital workers strike"),
        ("There is hope for the miners", "There is no hope for the miners"),
        ("El alcalde tiene dinero para la escuela", "El alcalde no tiene dinero para la escuela"),
        ("Valid from 1 March", "Valid to 1 March"),
        ("Smlouva platí od konce roku.", "Smlouva platí do konce roku."),
        ("Dose: 5 mg a day", "Dose: 5 g a day"),
        ("Karel IV. se narodil", "Karel V. se narodil"),
        ("Bitcoin: 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "Bitcoin: 1B1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
        ("SHA-256: 3a7bd3e2360a3d29eea436fcfb7e44c7", "SHA-256: 3a7bd3e2360a3d29eea436fcfb7e44c8"),
        ("Heslo wifi: abc12345", "Heslo wifi: abc12346"),
        ("GPS 50.0755381N, 14.4378005E", "GPS 50.0755381N, 14.5378005E"),
        (
            "V muzeu bylo loni 12 345 návštěvníků, nejvíce v historii.",
            "V muzeu bylo loni 12 645 návštěvníků, nejvíce v historii.",
        ),
        (
            "Rekordní teplota 41,9 °C byla dnes naměřena u Prahy.",
            "Rekordní teplota 42,1 °C byla dnes naměřena u Prahy.",
        ),
        ("Datum úmrtí: 12. 5. 1950", "Datum úmrtí: 13. 5. 1950"),
    ],
)
def test_a_state_or_a_negation_is_news_at_the_first_look_though_it_is_short(old: str, new: str) -> None:
    assert told([page_with(Block(BlockKind.PARAGRAPH, text)) for text in (old, new)]) == [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The trial of the mayor is heard on Monday in the court house at 9:00",
         "The trial of the mayor is heard on Monday in the court house at 14:30"),
        ("Train to Brno leaves at 14:05", "Train to Brno leaves at 14:35"),
        ("Deadline: 31 March 2026", "Deadline: 15 March 2026"),
        ("Uzávěrka přihlášek 31. března 2026", "Uzávěrka přihlášek 15. března 2026"),
        ("Next concert 5 May 2026", "Next concert 12 June 2026"),
    ],
)  # fmt: skip
def test_the_time_of_an_event_is_what_a_text_says(old: str, new: str) -> None:
    assert told([page_with(Block(BlockKind.PARAGRAPH, text)) for text in (old, new)]) == [True]


@pytest.mark.parametrize(
    ("old", "new"), [("Temperature: 5 °C", "Temperature: 6 °C"), ("Návštěv celkem: 100", "Návštěv celkem: 117"),
                     ("Session 3a7bd3e2360a3d29", "Session 3a7bd3e2360a3d30"),
                     ("Datum: 12. 5. 2026", "Datum: 13. 5. 2026")],
)  # fmt: skip
def test_a_figure_that_ticks_outside_of_a_sentence_says_nothing(old: str, new: str) -> None:
    assert told([page_with(Block(BlockKind.PARAGRAPH, text)) for text in (old, new)]) == [False]


@pytest.mark.parametrize(("label", "counts"), [("Exam date", True), ("Datum narození", True), ("Last update", False)])
def test_the_label_of_a_date_says_whether_it_is_that_of_an_event(label: str, counts: bool) -> None:
    pages = [page_with(Block(BlockKind.CELL, label), Block(BlockKind.CELL, f"{day} June 2026")) for day in (12, 19)]
    assert told(pages) == [counts]


@pytest.mark.parametrize(
    ("texts", "counts"),
    [
        (("EU court bans cookies without consent", "Users must accept cookies first, the court ruled."), True),
        (("Soud: cookies jen se souhlasem", "Uživatelé musí podle soudu cookies povolit předem."), True),
        (("We use cookies and third-party content.", "Accept all cookies"), False),
        (("Third-party cookies need consent", "Accept all cookies"), False),
    ],
)
def test_news_about_consent_is_no_notice_that_asks_for_it(texts: tuple[str, ...], counts: bool) -> None:
    assert told([page_with(), page_with(*(Block(BlockKind.PARAGRAPH, text) for text in texts))]) == [counts]


def test_of_pictures_and_of_pages_that_are_read_in_part_the_bytes_decide_where_the_text_is_the_same() -> None:
    picture = (Block(BlockKind.DESCRIPTION, "800 x 600 pixels"),)
    cases = [Page("http://town.test/a.png", "image/png", blocks=picture), page_with()._replace(warnings=(TEXT_CUT,))]
    for page in cases:
        found = compare(page, [page])
        assert (found.meaningful, found.reason) == (True, "other bytes beside the text that is read")
        assert compare(page, [page], same_bytes=True).meaningful is False


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("application/json", '{"price": 10, "items": ["a", "b"]}', '{"price": 11, "items": ["a", "b"]}'),
        ("application/json", '{"price": "19.90", "items": ["a"]}', '{"price": "17.50", "items": ["a"]}'),
        ("application/json", '{"open": true, "items": ["a"]}', '{"open": false, "items": ["a"]}'),
        ("application/json", '[{"n": "A", "x": 5}, {"n": "B", "x": 7}]', '[{"n": "A", "x": 7}, {"n": "B", "x": 5}]'),
        ("application/json", '{"start": "2026-01-05T10:00:00Z"}', '{"start": "2026-01-06T12:00:00Z"}'),
        ("text/html", "<dl><dt>Head</dt><dd>Jan Novák</dd></dl>", "<dl><dt>Head</dt><dd>Petr Malý</dd></dl>"),
        ("text/html", "<ul><li>5:15<li>6:15<li>7:15</ul>", "<ul><li>5:15<li>6:25<li>7:15</ul>"),
        ("text/html", "<p>Timetable<p>5:15 6:15 7:15", "<p>Timetable<p>5:15 6:25 7:15"),
        ("text/html", "<p>Closed<p>1.5.2026–3.5.2026", "<p>Closed<p>1.5.2026–4.5.2026"),
        ("text/html", "<table><tr><td>Plan 12<td>Agreed", "<table><tr><td>Plan 12<td>Dropped"),
        ("text/calendar", "BEGIN:VEVENT\nDTSTART:20260105T100000Z", "BEGIN:VEVENT\nDTSTART:20260106T100000Z"),
        ("application/json", '{"approved_by": "Novák"}', '{"rejected_by": "Novák"}'),
        ("application/json", '{"guilty": ["Novák"], "free": ["Malý"]}', '{"guilty": ["Malý"], "free": ["Novák"]}'),
        ("application/json", '{"file": "http://town.test/v1.pdf"}', '{"file": "http://town.test/v2.pdf"}'),
        ("text/plain", "User-agent: *\nDisallow:\n", "User-agent: *\nDisallow: /\n"),
        ("text/plain", "owner=root\nmode=a", "owner=ROOT\nmode=a"),
        ("application/xml", '<shop><name>a</name><a price="10"/></shop>', '<shop><name>a</name><a price="11"/></shop>'),
        ("application/xml", "<t><due>2026-01-05</due></t>", "<t><due>2026-02-09</due></t>"),
        ("application/xml", "<t><born>5. 1. 2026</born></t>", "<t><born>9. 1. 2026</born></t>"),
    ],
)  # fmt: skip
def test_numbers_and_states_of_data_are_what_it_says(kind: str, old: str, new: str) -> None:
    before, after = (read_page(text.encode(), "http://town.test/d", (("Content-Type", kind),)) for text in (old, new))
    assert compare(after, [before]).meaningful


def test_a_table_of_numbers_is_read_many_at_a_time() -> None:
    data = json.dumps({"name": "levels", "levels": list(range(1000))}).encode()
    assert len(read_page(data, "http://town.test/d", (("Content-Type", "application/json"),)).blocks) == 34
