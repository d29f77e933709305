import pytest

from letopis.errors import BadUrl, UsageError
from letopis.urls.scope import Scope, ScopeKind

SEED = "http://www.example.org/docs/index.html"


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        ("page", [SEED], ["http://www.example.org/docs/", "http://www.example.org/docs/index.html?x"]),
        (
            "prefix",
            ["https://www.example.org/docs/a/b", SEED],
            ["http://www.example.org/doc", "http://example.org/docs/"],
        ),
        (
            "host",
            ["https://www.example.org/x"],
            ["http://example.org/", "http://www.example.org:81/", "http://www.example.org.evil.cz/"],
        ),
        (
            "domain",
            ["http://a.example.org/x", "http://example.org:81/"],
            ["http://example.com/", "http://badexample.org/"],
        ),
        ("any", ["http://whatever.cz/"], []),
    ],
)
def test_each_kind_has_its_bounds(kind, inside, outside):
    scope = Scope(ScopeKind(kind), (SEED,))
    assert all(map(scope.allows, inside))
    assert not any(map(scope.allows, outside))


def test_includes_and_excludes_by_pattern():
    scope = Scope("host", ("http://a.org/",), include=(r"/keep/", r"\.pdf$"), exclude=(r"secret",))
    assert scope.allows("http://a.org/keep/x")
    assert scope.allows("http://a.org/x.pdf")
    assert not scope.allows("http://a.org/x")
    assert not scope.allows("http://a.org/keep/secret")


@pytest.mark.parametrize("excluded", [("b$", "^x"), ("b$", "(?i)^X|q{9}"), ("b$|^x",)])
def test_patterns_are_read_alike_whether_plain_or_not(excluded):
    scope = Scope("any", (), exclude=excluded)
    assert not scope.chooses("a/b")
    assert not scope.chooses("x/a")
    assert scope.chooses("a/bx")


def test_patterns_see_a_bounded_part_of_the_address():
    scope = Scope("any", (), exclude=("end$",))
    assert scope.allows("http://a.org/" + "x" * 3000 + "end")


@pytest.mark.parametrize("pattern", ["(", "*", "[a", "x" * 2000])
def test_a_bad_pattern_is_named(pattern):
    with pytest.raises(UsageError, match=r"pattern|expression"):
        Scope("any", (), include=(pattern,))


def test_a_bad_seed_is_refused():
    with pytest.raises(BadUrl):
        Scope("host", ("nonsense",))


def test_scopes_are_values():
    assert Scope("host", (SEED,)) == Scope(ScopeKind.HOST, (SEED,))


def test_an_address_on_which_a_pattern_takes_too_long_is_not_followed() -> None:
    slow = "(a|aa|a?a?)+$(?<=x)"
    hostile = "http://a.test/" + "a" * 200 + "!"
    assert not Scope(ScopeKind.ANY, include=(slow,)).chooses(hostile)
    assert not Scope(ScopeKind.ANY, exclude=(slow,)).chooses(hostile)
    assert Scope(ScopeKind.ANY, exclude=(slow,)).chooses("http://b.test/")
