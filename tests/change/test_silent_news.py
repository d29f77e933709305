"""News that a page hides where nobody looks: in its frame, in a number, behind a copyright, in one letter."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice, pairwise

import pytest

from letopis.change.fingerprints import fingerprint
from letopis.change.profiles import HostProfile, PageHabits
from letopis.change.verdict import compare
from letopis.extract import read_page
from letopis.model import Block, BlockKind, Page

STANDING = "".join(
    f"<p>Standing text number {n} tells of the town and of its people, and stays.</p>" for n in range(60)
)
MENU = "<nav><ul><li>Home</li><li>Shop of the town</li><li>Contact</li></ul></nav>"


def html(head: str = "", side: str = "", foot: str = "", body: str = "") -> Page:
    text = (
        f"<title>Town</title><body><header>{MENU}{head}</header><main><h1>Town news</h1>{body}{STANDING}</main>"
        f"<aside><p>About the town.</p>{side}</aside><footer><p>Town hall</p>{foot}</footer>"
    )
    return read_page(text.encode(), "http://town.test/", (("Content-Type", "text/html"),))


def told(pages: list[Page], host: HostProfile | None = None) -> list[bool | None]:
    """Whether each page is a change from the one before, as visits judge them."""
    habits, found = PageHabits(), list[bool | None]()
    for old, new in pairwise(map(fingerprint, pages)):
        found.append(compare(new, [old], host, habits=habits).meaningful)
        habits.observe(old, new)
    return found


@pytest.mark.parametrize("place", ["head", "side", "foot"])
@pytest.mark.parametrize(
    "news",
    ["<p>Flood: leave the lower town</p>", "<div>Flood: leave the lower town</div>", "<p>Bridge closed.</p>",
     "<h2>Water must be boiled until Friday</h2>", "<ul><li>The water must be boiled until Friday.</li></ul>",
     "<p>Povodeň: opusťte dolní město</p>", "<p>洪水:请立即离开下城区</p>", "<p>Call +420 123 456 789</p>",
     '<a href="/flood">Flood: leave the lower town</a>'],
)  # fmt: skip
def test_a_sentence_that_was_never_there_is_news_in_the_frame_too(place: str, news: str) -> None:
    assert told([html(), html(**{place: news})]) == [True]


@pytest.mark.parametrize("kind", ["p", "li"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Phone: 123 456 789", "Phone: 123 456 780"),
        ("+420 123 456 789", "+420 123 456 780"),
        ("Call (020) 7946 0018", "Call (020) 7946 0958"),
    ],
)
def test_another_number_of_a_telephone_is_news_in_the_frame(kind: str, old: str, new: str) -> None:
    assert told([html(foot=f"<{kind}>{text}</{kind}>") for text in (old, new)]) == [True]


@pytest.mark.parametrize(
    "text", ["One day at the pool costs {} EUR", "Open {}:00 - 17:00", "Next concert of the choir on {} May 2026"]
)
def test_a_price_or_the_time_of_an_event_in_a_sentence_of_the_frame_is_news(text: str) -> None:
    assert told([html(side=f"<p>{text.format(n)}</p>") for n in (8, 9)]) == [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "<p>Magazine for wool</p>"),
        ("", "<ul><li>Shop for all who like wool</li></ul>"),
        ("", "<p>We use cookies to make your stay on this site better.</p>"),
        ("", "<p>Open the menu of the site</p>"),
        ("", "<p>Table of contents of this page</p>"),
        ("", "<p>HomeShop of the townContactImprintHelp for you and us</p>"),
        ("<p>So far 1234 people like our town</p>", "<p>So far 1235 people like our town</p>"),
        ("<p>This page was made on 3 May 2026 at 12:30</p>", "<p>This page was made on 4 May 2026 at 12:31</p>"),
        ("<p>Your session has the name 7f3a9c2e11d0</p>", "<p>Your session has the name 81c0aa17be42</p>"),
        ("<p>Come and see our old mill</p>", ""),
    ],
)
def test_entries_controls_notices_and_counters_of_the_frame_say_nothing(old: str, new: str) -> None:
    assert told([html(head=old), html(head=new)]) == [False]


def test_known_sentences_that_take_turns_in_the_frame_say_nothing() -> None:
    quotes = ["Time is money, said the miller", "All is well that ends well", "Still waters run deep in town"]
    assert told([html(side=f"<p>{text}</p>") for text in islice(cycle(quotes), 9)])[-5:] == [False] * 5


def test_what_the_pages_of_a_host_share_says_nothing_in_the_frame() -> None:
    host, shared = HostProfile(), "<p>Summer sale in all our shops</p>"
    for n in range(8):
        host.observe(fingerprint(html(head=shared, body=f"<p>Page {n} of the town</p>")))
    assert told([html(), html(head=shared)], host) == [False]
    assert told([html(), html(head="<p>Flood: leave the lower town</p>")], host) == [True]
    muted = compare(html(head=shared), [html()], host).muted
    assert [(one.why, one.text) for one in muted] == [("on many pages", "Summer sale in all our shops")]


def test_a_sentence_that_runs_across_the_frame_is_a_banner() -> None:
    assert told([html(), html(head="<p>The king of the mountain has resigned</p>" * 6)]) == [False]


def body(*top: Block) -> Page:
    blocks = tuple(Block(BlockKind.PARAGRAPH, f"Text {name} tells of the town and stays.") for name in "abcdefghijklm")
    return Page("http://town.test/", "text/html", blocks=(Block(BlockKind.H1, "Town news"), *top, *blocks))


def paragraph(text: str) -> Page:
    return body(Block(BlockKind.PARAGRAPH, text))


@pytest.mark.parametrize(
    "text",
    ["Confirmed dead: {}", "Sea level {} cm", "Sparta {} : 2", "Mrtvých: {}", "Tickets left: {}", "{} Tote", "Score {}",
     "Visitors killed: {}", "Storm hits {} towns", "感染者 {} 人", "{} free beds", "Level {}",
     "Share of votes: {}", "Handball: Brno - Zubří {}:28"],
)  # fmt: skip
def test_a_number_that_counts_no_looks_is_news_however_often_it_changes(text: str) -> None:
    assert all(told([paragraph(text.format(n)) for n in range(30, 44)]))


@pytest.mark.parametrize("label", ["Confirmed dead", "Sea level in cm", "Hladina", "Goals"])
def test_a_bare_number_is_what_its_label_says(label: str) -> None:
    cells = [body(Block(BlockKind.CELL, label), Block(BlockKind.CELL, str(n))) for n in range(30, 44)]
    assert all(told(cells))


@pytest.mark.parametrize(
    "text",
    ["{} views", "Visitors so far: {}", "Downloads this week: {}", "This page was viewed {} times", "Likes: {}",
     "{} comments", "{} shares", "{} members online", "You are visitor number {}",
     "{} people are reading this", "{} Aufrufe", "{} návštěv",
     "{} vistas", "{} visualizzazioni", "{} weergaven", "{} wyświetleń", "{} visningar", "{} megtekintés",
     "{} vizualizări", "{} görüntülenme", "{} просмотров", "{} переглядів", "{} прегледа", "{} 回視聴",
     "浏览 {}", "조회 {}", "{} minutes ago", "vor {} Minuten", "před {} minutami",
     "{} minuta temu", "{} minuten geleden", "hace {} minutos",
     "{} minuti fa", "há {} minutos", "{} хвилин тому", "{} dakika önce", "{} perce", "{}分前", "{}분 전"],
)  # fmt: skip
def test_counters_of_looks_and_ages_are_muted_in_many_languages(text: str) -> None:
    assert told([paragraph(text.format(n)) for n in range(11, 25)])[-6:] == [False] * 6


def test_a_bare_number_below_the_label_of_a_counter_is_muted() -> None:
    cells = [body(Block(BlockKind.CELL, "Visitors today"), Block(BlockKind.CELL, str(n))) for n in range(30, 44)]
    assert told(cells)[-6:] == [False] * 6


@pytest.mark.parametrize(("old", "new"), [("Storm hits 12 towns", "Storm hits 30 towns"),
                                          ("12 visitors died", "33 visitors died"),
                                          ("Road closed for 3 days", "Road closed for 5 days")])  # fmt: skip
def test_a_word_of_counters_in_a_headline_is_no_counter(old: str, new: str) -> None:
    assert told([paragraph(old), paragraph(new)]) == [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("© 2026 Town. The bridge is open.", "© 2026 Town. The bridge is closed until May."),
        ("© 2026 Town", "© 2026 Town | Flood: leave the lower town"),
        ("Copyright 2026 Town: all well", "Copyright 2026 Town: flood, leave the lower town"),
    ],
)
def test_what_else_a_line_of_copyright_says_is_news(old: str, new: str) -> None:
    assert told([paragraph(old), paragraph(new)]) == [True]


@pytest.mark.parametrize(
    "line",
    ["© {} Town", "(c) {} The Old Mill Ltd. All rights reserved.", "Copyright © 2001-{} Town and Sons, Inc.",
     "© {} Obec Lhota s.r.o. Všechna práva vyhrazena.", "© {} Town | Privacy | Terms"],
)  # fmt: skip
def test_a_notice_of_copyright_says_nothing_new(line: str) -> None:
    pages = [paragraph(line.format(2025)), paragraph(line.format(2026))]
    assert told([body(), *pages, body()]) == [False] * 3


def test_a_grade_of_one_letter_is_news() -> None:
    assert told([paragraph("Rating A"), paragraph("Rating C")]) == [True]
    assert told([body(Block(BlockKind.CELL, "Rating"), Block(BlockKind.CELL, one)) for one in "AC"]) == [True]


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (BlockKind.H2, "Welcome", "Evacuation"),
        (BlockKind.PARAGRAPH, "Good morning", "Dam broken"),
        (BlockKind.PARAGRAPH, "Smith", "Novak"),
        (BlockKind.PARAGRAPH, "Room 101", "Cellar 101"),
        (BlockKind.ITEM, "Bob", "Al"),
        (BlockKind.CELL, "Adam Ant", "Dave Dog"),
        (BlockKind.ALT, "The bridge is open", "The bridge is closed"),
        (BlockKind.ALT, "Map of the roads that are closed", "Portrait of the new mayor"),
    ],
)
def test_one_word_or_the_text_of_a_picture_in_place_of_another_is_news_at_the_first_look(
    kind: BlockKind, old: str, new: str
) -> None:
    assert told([body(Block(kind, text)) for text in (old, new)]) == [True]


def test_a_link_of_a_word_in_place_of_another_is_no_news() -> None:
    assert told([body(Block(BlockKind.LINK, text)) for text in ("Sale", "Offers")]) == [False]


def test_an_identifier_beside_one_word_is_no_paragraph_of_two() -> None:
    assert told([paragraph("request 7929177455295487"), paragraph("request 3fd22623959b4920")]) == [False]


def test_frames_without_texts_stay_silent() -> None:
    old, new = fingerprint(html()), fingerprint(html(head="<p>Flood: leave the lower town</p>"))
    assert compare(replace(new, blocks=()), [replace(old, blocks=())]).meaningful is False


def number_of_every_look(before: str, behind: str) -> list[bool | None]:
    """What a number tells that is another one at each look, with blocks before and behind it, once that is known."""
    states = [f"<p>{before}</p><div>{n}</div>{behind}" for n in (33, 37, 41, 46, 52, 57, 63, 68, 75, 81)]
    return told([html(body=state) for state in states])[6:]


def test_a_number_that_stands_before_its_label_is_the_counter_that_the_label_names() -> None:
    past = "The town has a long and eventful past that everybody likes to hear of."
    assert number_of_every_look(past, "<div>views</div>") == [False] * 3


def test_the_label_of_the_next_number_makes_no_counter_of_the_one_before() -> None:
    assert number_of_every_look("Confirmed dead", "<div>views</div><div>5120</div>") == [True] * 3
    assert number_of_every_look("Confirmed dead", "<div>views</div>") == [True] * 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Balance of the fund: -500 crowns", "Balance of the fund: 500 crowns"),
        ("Balance of the fund: \u2212500 crowns", "Balance of the fund: 500 crowns"),
        ("Dose: 5.00 mg a day", "Dose: 50.0 mg a day"),
        ("Dose: 1,5 mg a day", "Dose: 15 mg a day"),
        ("One night: 100 \u20ac", "One night: 100 $"),
        ("Discount 5 %", "Discount 5 \u20ac"),
        ("We look for a programmer of C++", "We look for a programmer of C#"),
        ("The rating of the country is AA+", "The rating of the country is AA"),
        ("The value must be x < 5", "The value must be x > 5"),
        ("Rating \u2605\u2605\u2605\u2605\u2605", "Rating \u2605\u2605\u2606\u2606\u2606"),
        ("Shares \u25b2 3.2", "Shares \u25bc 3.2"),
    ],
)
@pytest.mark.parametrize("kind", ["p", "li", "h2"])
def test_a_sign_that_turns_what_is_said_is_news_where_letters_and_digits_stay(kind: str, old: str, new: str) -> None:
    page_of = [html(body=f"<{kind}>{text.replace('<', '&lt;')}</{kind}>") for text in (old, new)]
    assert told([*page_of, *page_of]) == [True, True, True]
    assert compare(page_of[1], page_of[:1]).same_text is False


@pytest.mark.parametrize(
    ("old", "new"), [("\u2713", "\u2717"), ("\u2713", ""), ("\u2b50\u2b50\u2b50", "\u2b50"), ("", "\u274c")]
)
def test_a_cell_of_a_mark_alone_is_news(old: str, new: str) -> None:
    tables = [
        f"<table><tr><td>Mail</td><td>{mark}</td></tr><tr><td>Web</td><td>up</td></tr></table>" for mark in (old, new)
    ]
    assert told([html(body=table) for table in tables]) == [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Price: 1,000 crowns", "Price: 1000 crowns"),
        ("Price: 1 000 crowns", "Price: 1\u00a0000 crowns"),
        ("Price: 5,00 crowns", "Price: 5.00 crowns"),
        ("Price: \u20ac5", "Price: 5 \u20ac"),
        ("Held on 1.12.2026 in the hall", "Held on 1. 12. 2026 in the hall"),
        ("Open 10:00-12:00 in the hall", "Open 10.00 \u2013 12.00 in the hall"),
        ("Call +420 123 456 789 now", "Call (420) 123456789 now"),
        ("Read more \u2192", "Read more \u00bb"),
        ("\u201cQuoted\u201d \u2013 and said", '"Quoted" - and said'),
        ("Best of all \u2605", "Best of all"),
        ("Now -2 \u00b0C in town", "Now 2 \u00b0C in town"),
    ],
)
def test_another_way_of_writing_the_same_is_no_news(old: str, new: str) -> None:
    assert told([html(body=f"<p>{text}</p>") for text in (old, new)]) == [False]


@pytest.mark.parametrize(
    ("states", "frame"),
    [
        (("open", "closed"), "<p>The bridge is {}</p>"),
        (("open", "closed"), "<table><tr><td>Bridge</td><td>{}</td></tr></table>"),
        (("✓", "✗"), "<table><tr><td>Bridge</td><td>{}</td></tr></table>"),
        (("Low", "Moderate", "High"), "<p>{}</p>"),
        (("In stock", "Sold out"), "<p>{}</p>"),
        (("vysoké", "mírné"), "<p>Nebezpečí požáru: {}</p>"),
        (("Sold out", ""), "<p>{}</p>"),
    ],
)
def test_a_state_is_news_at_every_look_however_often_it_changes(states: tuple[str, ...], frame: str) -> None:
    pages = [html(body=frame.format(state)) for state in islice(cycle(states), 20)]
    assert told(pages) == [True] * 19


@pytest.mark.parametrize(
    "text",
    ["<p>Release date: {}</p>", "<p>Respond by {}</p>", "<p>Last day: {}</p>", "<p>Next collection: {}</p>",
     "<table><tr><td>Planned for</td><td>{}</td></tr></table>", "<dl><dt>Moving in:</dt><dd>{}</dd></dl>",
     "<p>Doručíme {}</p>"],
)  # fmt: skip
def test_the_date_of_what_a_label_or_a_few_words_name_is_news(text: str) -> None:
    assert told([html(body=text.format(date)) for date in ("30 November 2026", "15 December 2026")]) == [True]


@pytest.mark.parametrize(
    "text",
    ["<p>Last updated: {}</p>", "<table><tr><td>Last updated</td><td>{}</td></tr></table>", "<p>{}</p>",
     "<table><tr><td>Date</td><td>{}</td></tr></table>", "<p>Published by the town, {}</p>"],
)  # fmt: skip
def test_a_date_of_the_page_itself_is_no_news(text: str) -> None:
    assert told([html(body=text.format(date)) for date in ("30 November 2026", "15 December 2026")]) == [False]
