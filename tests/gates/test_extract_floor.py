"""Floors of reading pages, on generated data with its digest pinned."""

import hashlib
import random
import re
from collections import Counter

import pytest
from pacing import cpu, lowest
from selectolax.lexbor import LexborHTMLParser

from letopis.extract import read_page
from letopis.extract.main_content import content_text
from letopis.urls import join

URL = "https://example.org/folder/page.html"
FLOOR = 9.5
"""Full reading in multiples of the bare parse; text-heavy generated pages sit at about 7.5 on a busy machine."""
LINKS_FLOOR = 2.6
"""Links alone, which crawls read, in the same multiples; about 2.0 measured."""
CONTENT_FLOOR = 0.99
"""F1 of the words of main contents on generated pages; 1.0 measured."""
JOIN_FLOOR = 300.0
"""Microseconds of CPU for 60 links; about 90 measured."""


def generated():
    source = random.Random(11)
    words = ["water", "stone", "letter", "morning", "garden", "silver", "window", "music", "river", "paper"]
    rows = []
    for number in range(60):
        text = " ".join(source.choices(words, k=60))
        rows.append(f'<div class="entry"><h3>{text[:40]}</h3>\n<p>{text} <a href="/{number}.html">more</a></p></div>\n')
    return ("<!doctype html><html><title>T</title><body>" + "".join(rows)).encode()


BODY = generated()


def test_the_data_is_the_same_everywhere():
    assert hashlib.sha256(BODY).hexdigest() == "4862c9e70bbf1769d9d53c3b1d90a807a75b87ae4e39087de9d81443d34d7651"


@pytest.mark.timed
def test_reading_a_page_stays_within_its_floor():
    found = read_page(BODY, URL, detect_language=False)
    assert (len(found.blocks), len(found.links)) == (121, 60)

    def share():
        return cpu(lambda: read_page(BODY, URL, detect_language=False), 25) / cpu(lambda: LexborHTMLParser(BODY), 25)

    assert lowest(share, FLOOR) < FLOOR


@pytest.mark.timed
def test_reading_links_alone_stays_within_its_floor():
    def share():
        skimmed = cpu(lambda: read_page(BODY, URL, detect_language=False, mode="skim"), 25)
        return skimmed / cpu(lambda: LexborHTMLParser(BODY), 25)

    assert lowest(share, LINKS_FLOOR) < LINKS_FLOOR


@pytest.mark.timed
def test_joining_links_stays_within_its_floor():
    refs = [f"/path/{number}?b=1&a=2" if number % 2 else f"page{number}.html#x" for number in range(60)]
    cost = lowest(lambda: 1e6 * cpu(lambda: [join(URL, ref) for ref in refs], 25), JOIN_FLOOR)
    assert cost < JOIN_FLOOR


WORDS = (
    "council", "bridge", "repair", "winter", "meeting", "report", "library", "budget", "school", "river", "notice",
)  # fmt: skip
FRAMES = (
    "<nav><ul>{}</ul></nav><main><h1>{}</h1>{}</main><footer>{}</footer>",
    '<div class="menu">{}</div><div id="content"><h2>{}</h2>{}</div><div class="sidebar related">{}</div>',
    '<div class="cookie-banner">{}</div><div><div class="entry-content"><h1>{}</h1>{}</div></div><aside>{}</aside>',
    '<table><tr><td><ul>{}</ul></td><td><h1>{}</h1>{}</td></tr></table><div class="comments">{}</div>',
)


def framed_pages():
    """Pages of several layouts, and the words that they say beside their frames."""
    rand = random.Random(3)
    for number in range(24):
        heading, *texts = (" ".join(rand.choices(WORDS, k=rand.randint(20, 60))) for _ in range(6))
        menu = "".join(f"<li><a href=/{at}>{rand.choice(WORDS)} menu</a></li>" for at in range(20))
        around = "".join(f"<p><a href=/{at}>Frame {' '.join(rand.choices(WORDS, k=6))}</a></p>" for at in range(8))
        body = "".join(f"<p>{text}.</p>" for text in texts)
        yield FRAMES[number % len(FRAMES)].format(menu, heading, body, around), " ".join((heading, *texts)).split()


def test_main_content_stays_above_its_floor():
    kept = right = there = 0
    for markup, said in framed_pages():
        body = markup.encode()
        words = Counter(re.findall(r"\w+", content_text(read_page(body, URL, detect_language=False), body, (), "text")))
        right += (words & Counter(said)).total()
        kept, there = kept + words.total(), there + len(said)
    assert 2 * right / (kept + there) > CONTENT_FLOOR
