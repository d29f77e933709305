"""Whatever bytes or pages come: an answer or the promised error. LETOPIS_LONG=1 makes it 20,000 rounds each."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable

import pytest
from selectolax.lexbor import LexborHTMLParser

from letopis.change.diff_formats import apply_binary_delta, make_binary_delta
from letopis.change.filters import ContentFilter, filter_source
from letopis.change.fingerprints import fingerprint, is_version_or_mail, without_clocks
from letopis.change.profiles import HostProfile, PageHabits
from letopis.change.verdict import compare
from letopis.change.visual_diff import visual_html
from letopis.errors import LetopisError
from letopis.model import Block, BlockKind, Page
from letopis.model.page import FilterKind

ROUNDS = 20_000 if os.environ.get("LETOPIS_LONG") else 150
KINDS = list(BlockKind)
WORDS = ["town", "12:30", "vor", "3", "Minuten", "©", "2026", "v4.1", "a@b.cz", "2026-01-02", "1:2", "€", "news", "č"]
WORDS += ["Unavailable", "5", "views", "ago", "°C", "0.12", "s"]


def text(rand: random.Random) -> str:
    return " ".join(rand.choices(WORDS, k=rand.randint(0, 9)))


def some_page(rand: random.Random) -> Page:
    count = rand.randint(0, 14)
    blocks = tuple(Block(rand.choice(KINDS), text(rand)) for _ in range(count))
    frame = frozenset(at for at in range(count) if rand.random() < 0.2)
    return Page("http://example.test/", "text/html", blocks=blocks, frame=frame)


def edited(rand: random.Random, page: Page) -> Page:
    blocks = list(page.blocks)
    for _ in range(rand.randint(0, 3)):
        at = rand.randint(0, len(blocks))
        blocks[at : at + rand.randint(0, 2)] = [
            Block(rand.choice(KINDS), text(rand)) for _ in range(rand.randint(0, 2))
        ]
    return Page(
        page.url, page.content_type, blocks=tuple(blocks), frame=frozenset(x for x in page.frame if x < len(blocks))
    )


def broken(rand: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rand.randint(1, 4)):
        at = rand.randrange(len(out) + 1)
        out[at : at + rand.randint(0, 3)] = rand.randbytes(rand.randint(0, 3))
    return bytes(out)


def taught(rand: random.Random) -> PageHabits:
    habits, page = PageHabits(), some_page(rand)
    for _ in range(3):
        page, before = edited(rand, page), page
        habits.observe(fingerprint(before), fingerprint(page))
    return habits


def profile(rand: random.Random) -> HostProfile:
    host = HostProfile(64)
    for _ in range(4):
        host.observe(fingerprint(some_page(rand)))
    return host


def test_any_two_pages_have_an_answer() -> None:
    rand = random.Random(1)
    habits, host = PageHabits(), HostProfile()
    before = some_page(rand)
    for n in range(ROUNDS):
        page = edited(rand, before) if rand.random() < 0.9 else some_page(rand)
        change = compare(page, [before], host, habits=habits)
        assert change.meaningful in (True, False)
        assert 0.0 <= (change.score or 0.0) <= 1.0
        assert compare(page, [page], host, habits=habits).meaningful is (not fingerprint(page).hashes)
        habits.observe(fingerprint(before), fingerprint(page))
        host.observe(fingerprint(page), fingerprint(before) if n else None)
        before = page


STORED: dict[str, tuple[Callable[[random.Random], bytes], Callable[[bytes], object]]] = {
    "habits": (lambda rand: taught(rand).to_bytes(), PageHabits.from_bytes),
    "host": (lambda rand: profile(rand).to_bytes(), HostProfile.from_bytes),
    "binary difference": (
        lambda rand: make_binary_delta(b"an old file", text(rand).encode()),
        lambda data: apply_binary_delta(b"an old file", data, 1 << 16),
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_broken_stored_forms_are_read_or_refused(name: str) -> None:
    write, read = STORED[name]
    rand = random.Random(name)
    seeds = [write(rand) for _ in range(20)]
    refused = 0
    for _ in range(ROUNDS):
        data = broken(rand, rand.choice(seeds))
        try:
            read(data)
        except LetopisError:
            refused += 1
    assert refused > ROUNDS // 10


def test_any_text_is_stilled() -> None:
    rand = random.Random(2)
    alphabet = "0123456789 .:-–/©°@vVčж\n\x00\ud800" + "agoviewsjan"
    for _ in range(ROUNDS):
        given = "".join(rand.choices(alphabet, k=rand.randint(0, 60)))
        assert without_clocks(without_clocks(given)) is not None
        assert is_version_or_mail(given) in (True, False)


def test_any_filter_works_or_is_refused() -> None:
    rand = random.Random(3)
    source = '<div id="a"><p class="x">one</p></div>'
    document = json.dumps({"a": [1, {"b": "c"}]})
    refused = 0
    for _ in range(ROUNDS):
        kind = rand.choice(list(FilterKind))
        expression = "".join(rand.choices("$.[]*'\"ab01:,-?/@()#p>x{}|^+\\ ", k=rand.randint(1, 10)))
        body, content_type = (document, "application/json") if kind is FilterKind.JSONPATH else (source, "text/html")
        try:
            filter_source(body, content_type, [ContentFilter(kind, expression)])
        except LetopisError:
            refused += 1
    assert 0 < refused < ROUNDS


def test_marked_pages_hold_nothing_that_acts() -> None:
    rand = random.Random(4)
    parts = ["<p>", "</p>", "<table><tr>", "<td>", "text ", "<script>x()</script>", "<svg onload=x()>", "<math>", "<b"]
    parts += ["<style>", "</style>", "<!--", "-->", "<select>", "<img src=x onerror=x()>", "&lt;", "<", '"', "'"]
    parts += ['<a href="javascript:x()">', "<iframe srcdoc=x>", "</table>", "<textarea>", "<noscript>"]
    for _ in range(ROUNDS // 10):
        old, new = ("".join(rand.choices(parts, k=rand.randint(0, 15))) for _ in range(2))
        tree = LexborHTMLParser(visual_html(old, new))
        assert tree.css_first("script, iframe, object, math") is None
        attributes = [pair for node in tree.css("*") for pair in node.attributes.items()]
        assert not any(name.startswith("on") for name, _ in attributes)
        assert not any((value or "").startswith("javascript:") for _, value in attributes)
