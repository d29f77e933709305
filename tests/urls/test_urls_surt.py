import os
import random
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import BadUrl
from letopis.urls import normalize, surt

GOLDEN = [
    ("http://www.example.com/", "com,example)/"),
    ("http://WWW2.Example.com:80/A/b/?z=1&a=2&a", "com,example)/a/b?a&a=2&z=1"),
    ("http://example.com:8080/x/", "com,example:8080)/x"),
    ("http://1.2.3.4/a", "4,3,2,1)/a"),
    ("http://127.1/", "1,0,0,127)/"),
    ("http://[2001:db8::1]:80/", "2001:db8::1)/"),
    ("http://user:pw@a.b/c", "b,a)/c"),
    ("http://a.b?x=1", "b,a)/?x=1"),
    ("http://a.b//x///y/../z", "b,a)/x/z"),
    ("http://háčky.cz/č?č=ž", "cz,xn--hky-ela4t)/%c4%8d?%c4%8d=%c5%be"),
    ("http://a.b/%25%32%35", "b,a)/%25"),
    ("http://a.b/?jsessionid=0123456789abcdef0123456789abcdef&x=1", "b,a)/?x=1"),
    ("http://a.b/..", "b,a)/.."),
    ("example.com/x", "com,example)/x"),
    ("dns:example.com", "dns:example.com"),
    ("http://https://a.b/x", "b,a)/x"),
]


@pytest.mark.parametrize(("url", "key"), GOLDEN)
def test_makes_the_key_that_other_archives_make(url, key):
    assert surt(url) == key


HOSTS = [
    "a.org",
    "www.a.org",
    "WWW12.a.co.uk",
    "www",
    "1.2.3.4",
    "[::1]",
    "a_b.cz",
    "xn--hky-ela4t.cz",
    "háčky.cz",
    "a..b.cz",
    "a.cz.",
    "127.1",
]
PIECES = [
    "/",
    "//",
    "/.",
    "/..",
    "a",
    "B",
    "%41",
    "%2f",
    "%25%34%31",
    "%e9",
    "č",
    ".aspx",
    ";x",
    "(",
    ")",
    "~",
    "+",
    " ",
    "|",
    "^",
    "%",
    "'",
]
PAIRS = [
    "a=1",
    "B=2",
    "a",
    "=",
    "",
    "%26",
    "sid=" + "0aF" * 10 + "12",
    "phpsessid=" + "a" * 32,
    "cfid=1",
    "cftoken=2",
    "č=ž",
    "%41=%2B",
    "x=y=z",
]


def generated(count):
    source = random.Random(2026)
    for _ in range(count):
        path = "".join(source.choices(PIECES, k=source.randrange(8)))
        query = "&".join(source.choices(PAIRS, k=source.randrange(5)))
        port = source.choice(["", "", "", ":80", ":443", ":8080", ":"])
        scheme = source.choice(["http", "https", "HTTP"])
        yield f"{scheme}://{source.choice(HOSTS)}{port}/{path}{'?' + query if query else ''}"


def test_equals_the_surt_library_on_generated_addresses():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("surt")
    count = 100_000 if os.environ.get("LETOPIS_LONG") else 10_000
    for url in generated(count):
        assert surt(url) == library.surt(url), url


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=80))
def test_any_text_has_a_key(text):
    assert isinstance(surt("http://" + text), str)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(PIECES).flatmap(lambda a: st.lists(st.sampled_from(PIECES)).map(lambda b: a + "".join(b))))
def test_the_key_of_a_key_s_address_is_the_key(path):
    try:
        url = normalize("http://example.org/" + path)
    except BadUrl:
        return
    key = surt(url)
    assert surt("http://example.org" + key.partition(")")[2]) == key
