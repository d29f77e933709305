"""Floors of reading pages, on generated data with its digest pinned."""

import hashlib
import random

import pytest
from pacing import cpu, lowest
from selectolax.lexbor import LexborHTMLParser

from letopis.extract import read_page
from letopis.urls import join

URL = "https://example.org/folder/page.html"
FLOOR = 12.0
"""Full reading in multiples of the bare parse; text-heavy generated pages sit at about 8 on a busy machine."""
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
def test_joining_links_stays_within_its_floor():
    refs = [f"/path/{number}?b=1&a=2" if number % 2 else f"page{number}.html#x" for number in range(60)]
    cost = lowest(lambda: 1e6 * cpu(lambda: [join(URL, ref) for ref in refs], 25), JOIN_FLOOR)
    assert cost < JOIN_FLOOR
