from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import UsageError
from letopis.frontier.filters import FilterFacts, parse_crawl_filter

PAGE = FilterFacts(
    url="http://a.cz/en/x", host="a.cz", path="/en/x", depth=3, type="text/html", status=200, bytes=5000, lang="en",
    words="the old town square",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ('host == "a.cz" and depth < 5 and path ~ "^/en/"', True),
        ('host != "a.cz" or depth >= 4', False),
        ('not (lang == "en" and status == 200)', False),
        ("bytes <= 5k", True),
        ("bytes > 1MiB", False),
        ("'town' in words and not 'castle' in words", True),
        ('lang in ("cs", "en")', True),
        ("status in (301, 302)", False),
        ('type == "text/html" or status == 404 and depth > 9', True),
        (r'path ~ "\\."', False),
    ],
)
def test_expressions_mean_what_they_say(text: str, expected: bool) -> None:
    assert parse_crawl_filter(text).passes(PAGE) is expected


@pytest.mark.parametrize(
    "text", ["status == 404", "not status == 404", "status == 404 and depth < 9", "not (status in (1, 2))"]
)
def test_never_refuses_for_want_of_knowledge(text: str) -> None:
    assert parse_crawl_filter(text).passes(FilterFacts(depth=3))


def test_what_is_known_decides_despite_what_is_not() -> None:
    assert not parse_crawl_filter("depth > 5 and status == 200").passes(FilterFacts(depth=3))
    assert not parse_crawl_filter("not (depth == 3 or status == 200)").passes(FilterFacts(depth=3))


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("depth", 6),
        ("depth <", 8),
        ('depth < "5"', 9),
        ("host == 5", 9),
        ("colour == 1", 1),
        ("depth < 5 5", 11),
        ("(depth < 5", 11),
        ('path ~ "("', 8),
        ("depth < 5 and $", 15),
        ("bytes < 5parsecs", 9),
        ("'x' words", 5),
        ('host "~" "x"', 6),
        ("or", 1),
    ],
)
def test_errors_point_at_the_column(text: str, column: int) -> None:
    with pytest.raises(UsageError, match=f"column {column}:"):
        parse_crawl_filter(text)


def test_depth_and_length_are_bounded() -> None:
    with pytest.raises(UsageError, match="50 levels"):
        parse_crawl_filter("(" * 500 + "depth < 1" + ")" * 500)
    with pytest.raises(UsageError, match="4096"):
        parse_crawl_filter("depth < 1 or " * 1000)


@given(st.text(alphabet='()<>=!~,"\\ andornti5depthwos', max_size=40))
@settings(max_examples=400)
def test_any_text_is_a_filter_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        assert parse_crawl_filter(text).passes(PAGE) in (True, False)
