from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letopis.errors import BadUrl
from letopis.urls import (
    host,
    hostname,
    login,
    normalize,
    parse_seed_url,
    parse_user_url,
    registered_domain,
    site,
    url_key,
)
from letopis.urls.rules import is_tracking, without_tracking


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://Example.org/x", "example.org"),
        ("http://example.org:8080/x", "example.org:8080"),
        ("http://u:p@example.org:8080/x@y", "example.org:8080"),
        ("http://example.org?x=/y", "example.org"),
        ("http://[::1]:81/", "[::1]:81"),
    ],
)
def test_names_the_host(url, expected):
    assert host(url) == expected


@pytest.mark.parametrize("url", ["http:///x", "nothing", ""])
def test_refuses_addresses_without_host(url):
    with pytest.raises(BadUrl):
        host(url)


@pytest.mark.parametrize("text", ["http//example.org/", "HTTPS//example.org", "http/example.org", "/srv/page.html"])
def test_a_slip_of_the_pen_is_no_host(text):
    with pytest.raises(BadUrl, match="is not an address"):
        site(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("//example.org/x", "example.org"),
        ("http:/example.org/x", "example.org"),
        ("httpbin.example", "httpbin.example"),
        ("example.org", "example.org"),
        ("Example.org:80", "example.org"),
        ("example.org:8080", "example.org:8080"),
        ("https://example.org/x/y", "example.org"),
        ("příklad.cz", "xn--pklad-zsa96e.cz"),
    ],
)
def test_reads_a_site(text, expected):
    assert site(text) == expected


@pytest.mark.parametrize(
    ("netloc", "expected"),
    [
        ("www.example.co.uk:8080", "example.co.uk"),
        ("a.b.example.cz", "example.cz"),
        ("example.cz", "example.cz"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("localhost:80", "localhost"),
        ("127.0.0.1:8080", "127.0.0.1"),
        ("[::1]:80", "[::1]"),
        ("user.github.io", "user.github.io"),
    ],
)
def test_finds_the_registered_domain_offline(netloc, expected):
    assert registered_domain(netloc) == expected


def test_cuts_the_port_off_a_host():
    assert hostname("example.org:81") == "example.org"
    assert hostname("[::1]") == "[::1]"


@given(st.text(alphabet="abc/?", max_size=20))
def test_keys_fit_a_signed_64_bit_column(tail):
    assert -(2**63) <= url_key("http://example.org/" + tail) < 2**63


def test_keys_of_different_addresses_differ():
    assert len({url_key(f"http://example.org/{n}") for n in range(10_000)}) == 10_000


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.org/x?a=1&fbclid=I&utm_source=n", "http://a.org/x?a=1"),
        ("http://a.org/x?utm_source=n", "http://a.org/x"),
        ("http://a.org/x;jsessionid=AB12?a=1", "http://a.org/x?a=1"),
        ("http://a.org/x?PHPSESSID=1234&a=1", "http://a.org/x?a=1"),
        ("http://a.org/x?sid=0123456789abcdef0123456789abcdef", "http://a.org/x"),
        ("http://a.org/x?sid=12", "http://a.org/x?sid=12"),
        ("http://a.org/x?s=words", "http://a.org/x?s=words"),
        ("http://a.org/x", "http://a.org/x"),
        ("http://a.org/(S(abcdefghijklmnopqrstuvwx))/x.aspx", "http://a.org/x.aspx"),
    ],
)
def test_drops_sessions_and_tracking_only(url, expected):
    assert without_tracking(url) == expected
    assert normalize(expected) == expected


def test_knows_a_tracking_parameter():
    assert is_tracking("gclid=x")
    assert not is_tracking("id=1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://ada:secret@a.org/", "ada:secret"), ("ada@a.org/x", "ada:"), ("//a:b@a.org", "a:b"),
        ("http://a%40x:p%2Fq@a.org/", "a@x:p/q"), ("http://@a.org/", ""), ("http://a.org/@x", ""), ("a.org/?q=a@b", ""),
        ("http://a.org/#a:b@c", ""),
    ],
)  # fmt: skip
def test_a_name_and_password_become_a_header_and_are_no_part_of_the_address(text, expected):
    header = (("Authorization", f"Basic {b64encode(expected.encode()).decode()}"),)
    assert login(text) == (header if expected else ())
    assert parse_user_url(text).startswith("http://a.org/")


def test_a_crawl_does_not_sign_in():
    with pytest.raises(BadUrl, match="does not sign in"):
        parse_seed_url("http://ada:secret@a.org/")
    assert parse_seed_url("a.org/@x") == "http://a.org/@x"
