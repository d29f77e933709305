from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.change.filters import ContentFilter, filter_page, filter_source, filter_text, jsonpath_values
from letopis.errors import UsageError
from letopis.model import Page
from letopis.model.page import FilterKind

MakePage = Callable[..., Page]
HTML = "<html><body><div id=a><p class=x>One</p><p>Two</p></div><div class=ad>Buy</div></body></html>"


def one(kind: str, expression: str) -> list[ContentFilter]:
    return [ContentFilter(FilterKind(kind), expression)]


def test_css_keeps_what_matches() -> None:
    assert filter_source(HTML, "text/html", one("css", "p.x, .ad")) == '<p class="x">One</p>\n<div class="ad">Buy</div>'


def test_remove_drops_what_matches() -> None:
    kept = filter_source(HTML, "text/html", one("remove", ".ad"))
    assert "Buy" not in kept
    assert "Two" in kept


def test_xpath_keeps_elements_texts_and_values() -> None:
    assert filter_source(HTML, "text/html", one("xpath", "//p[1]")) == '<p class="x">One</p>'
    assert filter_source(HTML, "text/html", one("xpath", "//p/text()")) == "One\nTwo"
    assert filter_source(HTML, "text/html", one("xpath", "count(//p)")) == "2.0"
    assert filter_source("", "text/html", one("xpath", "//p")) == ""


def test_xpath_reads_no_file() -> None:
    assert filter_source(HTML, "text/html", one("xpath", "//nothing")) == ""
    with pytest.raises(UsageError):
        filter_source(HTML, "text/html", one("xpath", "document('/etc/passwd')"))


@pytest.mark.parametrize(("kind", "expression"), [("css", "p"), ("xpath", "//p"), ("price", ".p"), ("stock", ".p")])
@pytest.mark.parametrize("content_type", ["application/json", "application/ld+json", "application/pdf", "image/png"])
def test_filters_of_markup_refuse_a_document_that_has_none(kind: str, expression: str, content_type: str) -> None:
    with pytest.raises(UsageError, match="needs an HTML or XML document"):
        filter_source('{"p": 1}', content_type, one(kind, expression))
    for markup in ("text/html", "application/xhtml+xml", "application/rss+xml", "application/xml", ""):
        filter_source(HTML, markup, one(kind, expression))


def test_what_jsonpath_chose_may_hold_markup() -> None:
    filters = [*one("jsonpath", "$.html"), *one("css", "b")]
    assert filter_source('{"html": "a <b>c</b>"}', "application/json", filters) == "<b>c</b>"


def test_jsonpath_gives_one_value_a_line() -> None:
    source = json.dumps({"items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]})
    assert filter_source(source, "application/json", one("jsonpath", "$.items[*].name")) == '"a"\n"b"'
    with pytest.raises(UsageError, match="needs a JSON document"):
        filter_source("<p>", "text/html", one("jsonpath", "$.a"))


def test_filters_run_in_order() -> None:
    chain = [*one("css", "#a"), *one("xpath", "//p[2]")]
    assert filter_source(HTML, "text/html", chain) == "<p>Two</p>"


def test_filters_of_one_kind_choose_together_what_any_of_them_finds() -> None:
    html = "<h1>Kettle</h1><p class=price>19 EUR</p><p>Text</p>"
    assert filter_source(html, "text/html", [*one("css", ".price"), *one("css", "h1")]) == (
        '<h1>Kettle</h1>\n<p class="price">19 EUR</p>'
    )
    assert filter_source(html, "text/html", [*one("xpath", "//h1/text()"), *one("xpath", "//p[@class]/text()")]) == (
        "Kettle\n19 EUR"
    )
    both = [*one("jsonpath", "$.a"), *one("jsonpath", "$.b[0]")]
    assert filter_source('{"a": 1, "b": [2]}', "application/json", both) == "1\n2"
    assert filter_text("one\ntwo\nthree", [*one("include", "one"), *one("include", "three")]) == "one\nthree"
    assert filter_text("one\ntwo\nthree", [*one("exclude", "one"), *one("exclude", "three")]) == "two"
    offer = "<html><p class=price itemprop=price content=19>19 EUR</p><p class=stock>Sold out</p></html>"
    seen = filter_source(offer, "text/html", [*one("price", ".price"), *one("stock", ".stock")])
    assert "19" in seen
    assert "out of stock" in seen


def test_lines_are_chosen_by_patterns() -> None:
    text = "price 10\nnoise 1\nprice 20"
    assert filter_text(text, one("include", "^price")) == "price 10\nprice 20"
    assert filter_text(text, one("exclude", "noise")) == "price 10\nprice 20"
    assert filter_text(text, one("ignore", r"\d+")) == "price \nnoise \nprice "


def test_blocks_are_chosen_by_patterns_and_keep_their_frame(page: MakePage) -> None:
    filtered = filter_page(page("menu", "Views: 10", "text", frame=(0,)), one("exclude", "^Views"))
    assert [block.text for block in filtered.blocks] == ["menu", "text"]
    assert filtered.frame == {0}
    assert filter_page(page("a", "b"), one("exclude", "^a")).frame == frozenset()


def test_a_page_without_text_filters_is_untouched(page: MakePage) -> None:
    source = page("a")
    assert filter_page(source, one("css", "p")) is source


@pytest.mark.parametrize(
    ("kind", "expression"),
    [
        ("css", "p[["),
        ("remove", ":::"),
        ("xpath", "//p["),
        ("jsonpath", "$.a[?(@.b)]"),
        ("include", "(unclosed"),
        ("ignore", "a" * 3000),
    ],
)
def test_a_wrong_expression_is_told_at_once(kind: str, expression: str) -> None:
    with pytest.raises(UsageError):
        one(kind, expression)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters have a second."""
    monkeypatch.setattr("letopis.change.filters._FILTER_SECONDS", 1.0)


STOPPED = "it took longer than 1 s and was stopped; write a simpler one"
MANY = "<div><p>" + "<b>x</b>" * 3000


@pytest.mark.parametrize(
    ("kind", "expression"),
    [
        ("xpath", "//*[count(//*[count(//*) > 1]) > 1]"),
        ("css", "b:has(~ b:has(~ b:has(~ b:has(~ i))))"),
        ("remove", "b:has(~ b:has(~ b:has(~ b:has(~ i))))"),
    ],
)
@pytest.mark.usefixtures("hasty")
def test_an_expression_that_takes_too_long_on_a_page_is_stopped(kind: str, expression: str) -> None:
    with pytest.raises(UsageError, match=STOPPED):
        filter_source(MANY, "text/html", one(kind, expression))


@pytest.mark.usefixtures("hasty")
def test_a_pattern_that_takes_too_long_on_a_text_is_stopped() -> None:
    with pytest.raises(UsageError, match=STOPPED):
        filter_text("a" * 60 + "!", one("include", r"^(a|aa|a?a?)+$(?<=x)"))


def test_a_pattern_that_cannot_be_compiled_in_time_is_told_at_once() -> None:
    with pytest.raises(UsageError, match="takes too long; write it without nested repeats"):
        one("ignore", "(?:" * 60 + "a?" + "){9}" * 60)


def test_filters_of_text_may_meet_odd_characters() -> None:
    assert filter_text("a\ud800b\nc\x00", one("exclude", "b")) == "c\x00"


DOCUMENT: Any = {
    "store": {"book": [{"title": "A", "price": 8}, {"title": "B", "price": 12}, {"title": "C"}], "bike": {"price": 19}},
    "odd key": [1, 2, 3, 4],
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [DOCUMENT]),
        ("$.store.book[0].title", ["A"]),
        ("store.book[-1].title", ["C"]),
        ("$.store.book[*].title", ["A", "B", "C"]),
        ("$..price", [8, 12, 19]),
        ("$.store.*.price", [19]),
        ("$['odd key'][1:3]", [2, 3]),
        ('$["odd key"][0,3]', [1, 4]),
        ("$['odd key'][::2]", [1, 3]),
        ("$..book[0]", [{"title": "A", "price": 8}]),
        ("$.nothing.here", []),
        ("$.store.book[9]", []),
        ("$['odd key'][0,\x1c1]", [1, 2]),
        ("$['odd key'][0:\x1f2]", [1, 2]),
    ],
)
def test_paths_find_values(path: str, values: list[Any]) -> None:
    assert jsonpath_values(DOCUMENT, path) == values


@pytest.mark.parametrize(
    "path", ["$.a[", "$..", "$.a[?(1)]", "$.a b", "$[::0]", "$[-:]", "$[(@.length-1)]", f"$[{'9' * 5000}]"]
)
def test_unreadable_paths_are_told(path: str) -> None:
    with pytest.raises(UsageError):
        jsonpath_values(DOCUMENT, path)


def test_deep_documents_do_not_exhaust_the_stack() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    assert len(jsonpath_values(deep, "$..*")) == 50_000
    with pytest.raises(UsageError, match="needs a JSON document"):
        filter_source("[" * 200_000, "application/json", one("jsonpath", "$"))


def test_exploding_paths_are_stopped() -> None:
    wide = [[list(range(50)) for _ in range(50)] for _ in range(50)]
    with pytest.raises(UsageError, match="narrower"):
        jsonpath_values(wide, "$..*..*")


@given(st.text(alphabet="$.[]*'\"ab01:,-? ", max_size=15))
@settings(max_examples=300, deadline=None)
def test_any_path_is_read_or_refused(path: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(jsonpath_values(DOCUMENT, path), list)


def test_removing_everything_leaves_nothing() -> None:
    assert filter_source("<div><p>one</p></div>", "text/html", [ContentFilter(FilterKind.REMOVE, "*")]) == ""
