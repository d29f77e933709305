"""robots.txt as RFC 9309 and the published cases of large crawlers read it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.look.robots import MAX_LINE, RobotsFile, path_and_query

HOST = "http://shop.example"


def allowed(text: str, path: str, agent: str = "Letopis") -> bool:
    return RobotsFile(text, agent).allowed(HOST + path)


def rules(*lines: str) -> str:
    return "\n".join(("User-agent: Letopis", *lines))


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        (("disallow: /",), "/x/y", False),
        (("disallow /",), "/x/y", False),
        (("DISALLOW: /x/",), "/x/y", False),
        (("dIsAlLoW: /x/",), "/X/y", True),
        (("disallow: /a/page.html", "allow: /a/"), "/a/page.html", False),
        (("allow: /a/page.html", "disallow: /a/"), "/a/page.html", True),
        (("allow: /a/page.html", "disallow: /a/"), "/a/", False),
        (("disallow:", "allow:"), "/a", True),
        (("disallow: /", "allow: /"), "/a", True),
        (("disallow: /a", "allow: /a/"), "/a", False),
        (("disallow: /a", "allow: /a/"), "/a/", True),
        (("allow: /page", "disallow: /*.html"), "/page.html", False),
        (("allow: /page", "disallow: /*.html"), "/page", True),
        (("allow: /a/page.", "disallow: /*.html"), "/a/page.html", True),
        (("allow: /a/page.", "disallow: /*.html"), "/a/b.html", False),
        (("disallow: /", "allow: /fish"), "/fishheads/yummy.html", True),
        (("disallow: /", "allow: /fish"), "/catfish", False),
        (("disallow: /", "allow: /fish"), "/?id=fish", False),
        (("disallow: /", "allow: /fish*"), "/fish.html?id=any", True),
        (("disallow: /", "allow: /fish/"), "/fish", False),
        (("disallow: /", "allow: /fish/"), "/fish/?salmon", True),
        (("disallow: /", "allow: /*.php"), "/folder/any.php.file.html", True),
        (("disallow: /", "allow: /*.php"), "/index?f=name.php/", True),
        (("disallow: /", "allow: /*.php"), "/windows.PHP", False),
        (("disallow: /", "allow: /*.php$"), "/name.php", True),
        (("disallow: /", "allow: /*.php$"), "/name.php?parameters", False),
        (("disallow: /", "allow: /*.php$"), "/name.php5", False),
        (("disallow: /", "allow: /fish*.php"), "/fishheads/catfish.php?p", True),
        (("allow: /$", "disallow: /"), "/", True),
        (("allow: /$", "disallow: /"), "/page.html", False),
        (("disallow: /foo/bar$",), "/foo/bar", False),
        (("disallow: /foo/bar$",), "/foo/bar/", True),
        (("# disallow: /", "disallow: /quz#qux", "allow: /"), "/quz", False),
        (("# disallow: /", "disallow: /quz#qux", "allow: /"), "/bar", True),
        (("disallow: /", "allow: /a?q=http://b.example?c&d"), "/a?q=http://b.example?c&d", True),
        (("disallow: /", "allow: /bar/ツ"), "/bar/%E3%83%84", True),
        (("disallow: /", "allow: /bar/%e3%83%84"), "/bar/%E3%83%84", True),
        (("disallow: /", "allow: /bar/%62%61%7A"), "/bar/baz", False),
        (("disallow: /", "allow: /bar/%62%61%7A"), "/bar/%62%61%7A", True),
        (("dissallow: /a", "Disalow: /b"), "/a", False),
        (("dissallow: /a", "Disalow: /b"), "/b", False),
        (("foo: /", "bar: /"), "/a", True),
    ],
)
def test_the_most_specific_rule_decides(lines: tuple[str, ...], path: str, expected: bool) -> None:
    assert allowed(rules(*lines), path) is expected


def test_groups_of_one_agent_are_read_together_and_rules_before_any_group_count_for_nobody() -> None:
    text = "\n".join([
        "allow: /before/", "", "user-agent: Letopis", "disallow: /", "allow: /x/",
        "user-agent: Other", "disallow: /", "allow: /y/", "", "", "allow: /w/",
        "user-agent: Third", "", "user-agent: Letopis", "allow: /z/", "disallow: /",
    ])  # fmt: skip
    assert [allowed(text, path) for path in ("/x/", "/z/", "/y/", "/before/")] == [True, True, False, False]
    assert [allowed(text, path, "Other") for path in ("/y/", "/w/", "/z/", "/before/")] == [True, True, False, False]
    assert allowed(text, "/z/", "Third")
    assert not allowed(text, "/before/", "Third")


def test_an_own_group_holds_alone_and_the_group_for_all_otherwise() -> None:
    text = "user-agent: *\ndisallow: /x/\nuser-agent: Letopis\ndisallow: /y/"
    assert allowed(text, "/x/page")
    assert not allowed(text, "/y/page")
    assert not allowed(text, "/x/page", "Other")
    assert allowed("user-agent: Other\ndisallow: /", "/a")
    assert allowed("", "/a")


@pytest.mark.parametrize("name", ["letopis", "LETOPIS", "Letopis Bot", "Letopis/2.1", "Letopis*"])
def test_a_name_counts_up_to_the_first_sign_that_no_name_has(name: str) -> None:
    assert not allowed(f"User-Agent: {name}\nDisallow: /", "/a")


def test_other_names_that_begin_alike_are_others() -> None:
    assert allowed("User-Agent: Letopis-News\nDisallow: /", "/a")
    assert allowed("User-Agent: Leto\nDisallow: /", "/a")


def test_allowing_an_index_page_allows_its_directory() -> None:
    text = "User-agent: *\nAllow: /shop/index.html\nDisallow: /"
    assert [allowed(text, path) for path in ("/shop/", "/shop/index.html")] == [True, True]
    assert [allowed(text, path) for path in ("/shop/index.htm", "/other")] == [False, False]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\ufffd\ufffd"])
def test_any_line_ending_and_a_byte_order_mark_are_read(end: str, start: str) -> None:
    assert not allowed(start + end.join(["User-agent: Letopis", "", "Disallow: /a"]), "/a")


def test_a_long_line_is_cut_and_still_holds() -> None:
    long = "/x/" + "a" * MAX_LINE
    assert not allowed(rules(f"disallow: {long}/qux"), long + "/other")
    assert allowed(rules(f"disallow: {long}/qux"), "/x/b")


def test_delays_and_sitemaps_are_found() -> None:
    text = "Sitemap: http://a.example/1.xml\nUser-agent: Letopis\nCrawl-delay: 2.5\nDisallow:\nsite-map: http://a.example/2.xml"
    found = RobotsFile(text, "Letopis")
    assert found.crawl_delay == 2.5
    assert found.sitemaps == ["http://a.example/1.xml", "http://a.example/2.xml"]
    assert RobotsFile("User-agent: *\nCrawl-delay: soon", "Letopis").crawl_delay is None


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://a.example", "/"), ("http://a.example/a/b?c=http://d.e/", "/a/b?c=http://d.e/"),
        ("http://a.example/a?b#c", "/a?b"), ("a.example?a", "/?a"), ("a.example/a;b#c", "/a;b"), ("//a/b/c", "/b/c"),
        ("a", "/"), ("/a", "/a"), ("http://a.example?b=/c", "/?b=/c"), ("http://a.example;b/c", "/;b/c"),
    ],
)  # fmt: skip
def test_rules_see_path_and_query(url: str, path: str) -> None:
    assert path_and_query(url) == path


SIGNS = "ab/.*$"


@given(st.text(SIGNS, min_size=1, max_size=8), st.text("ab/.", max_size=10))
@settings(max_examples=500)
def test_patterns_mean_what_a_regular_expression_says(pattern: str, path: str) -> None:
    ends = pattern.endswith("$")
    body = pattern[:-1] if ends else pattern
    expression = "/" + "".join(".*" if sign == "*" else re.escape(sign) for sign in body) + ("$" if ends else "")
    expected = re.match(expression + ("" if ends else ".*"), "/" + path, re.S) is not None
    assert allowed(rules(f"disallow: /{pattern}"), "/" + path) is not expected
