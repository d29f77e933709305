import pytest

from letopis.frontier.filters import TrapDetector, url_pattern

SITE = "http://a.example"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/a/b/a/b/a/b", "repeats"),
        ("/x/x/x", "repeats"),
        ("/en/shop/en/list/en/view/en/item", "repeats"),
        ("/" + "/".join(str(part) for part in range(17)), "segments"),
        ("/page;jsessionid=1A530637289A03B07199A44E8D531427", "session"),
        ("/page?PHPSESSID=4f8e2b1c9d3a7e6f5b0c", "session"),
        ("/calendar/2199/03/", "calendar"),
        ("/events?month=1950-01", "calendar"),
    ],
)
def test_recognises_traps_by_their_shape(path: str, reason: str) -> None:
    assert reason in TrapDetector().why(SITE + path, 2026)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/2024/05/17/title",
        "/a/b/c/a",
        "/list?page=3&sort=up",
        "/product/8855",
        "/news?date=2025-11-02",
        "/s?sid=7",
    ],
)
def test_lets_ordinary_addresses_pass(path: str) -> None:
    assert TrapDetector().why(SITE + path, 2026) == ""


def test_bounds_the_pages_of_one_pattern_for_each_host() -> None:
    judge = TrapDetector(most_pages=10)
    verdicts = [judge.why(f"{SITE}/day/{day}", 2026) for day in range(20)]
    assert [bool(verdict) for verdict in verdicts] == [False] * 10 + [True] * 10
    assert judge.why("http://b.example/day/1", 2026) == ""
    assert judge.why(f"{SITE}/other/1", 2026) == ""


def test_parameters_count_by_their_names() -> None:
    assert url_pattern("/l", "b=2&a=1") == url_pattern("/l", "a=9&b=x")
    assert url_pattern("/x/0f3a9c77de01b2c4", "") == url_pattern("/x/9912ccaa00bb77ff", "")


def test_memory_is_bounded_and_busy_patterns_are_remembered() -> None:
    judge = TrapDetector(most_pages=100, most_patterns=1000)
    for number in range(20_000):
        judge.why(f"{SITE}/p{chr(97 + number % 26)}{number}x{'abcdefghij'[number % 10] * (number % 50)}/", 2026)
        judge.why(f"{SITE}/endless/{number}", 2026)
        assert len(judge._counts) <= 1001
    assert judge.why(f"{SITE}/endless/1", 2026)


def test_limits_can_be_turned_off() -> None:
    judge = TrapDetector(most_depth=0, most_pages=0)
    assert judge.why(SITE + "/" + "/".join(str(part) for part in range(40)), 2026) == ""
