import pytest
from ada_url import join_url
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import BadUrl
from letopis.urls import MAX_URL, join, joiner, normalization, normalize, parse_user_url

BASE = "https://example.org/dir/page.html?old=1"

SPELLINGS = [
    ("HTTP://EXAMPLE.org", "http://example.org/"),
    ("http://example.org?a=1", "http://example.org/?a=1"),
    ("http://example.org:80/x", "http://example.org/x"),
    ("https://example.org:443/x", "https://example.org/x"),
    ("http://example.org:443/x", "http://example.org:443/x"),
    ("http://example.org:8080/x", "http://example.org:8080/x"),
    ("http://example.org/a/./b/../c", "http://example.org/a/c"),
    ("http://example.org/a/%2E%2e/c", "http://example.org/c"),
    ("http://example.org/..", "http://example.org/"),
    ("http://example.org/x#part", "http://example.org/x"),
    ("http://example.org/x?#part", "http://example.org/x"),
    ("http://example.org/x?", "http://example.org/x"),
    ("http://example.org/%7euser/%c3%a1", "http://example.org/~user/%C3%A1"),
    ("http://example.org/%41%2f", "http://example.org/A%2F"),
    ("http://example.org/100%", "http://example.org/100%25"),
    ("http://example.org/a b?c d", "http://example.org/a%20b?c%20d"),
    ("http://example.org/á?č=ž", "http://example.org/%C3%A1?%C4%8D=%C5%BE"),
    ("http://Příklad.cz/", "http://xn--pklad-zsa96e.cz/"),
    ("http://example.org./", "http://example.org/"),
    ("http://example.org.:81/", "http://example.org:81/"),
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://0x7f.1../", "http://127.0.0.1/"),
    ("http://[2001:DB8::0:1]/", "http://[2001:db8::1]/"),
    ("http:\\\\example.org\\x", "http://example.org/x"),
    ("http://example.org/a\tb\nc", "http://example.org/abc"),
    ("http://example.org/?b=2&a=1", "http://example.org/?a=1&b=2"),
    ("http://example.org/?b=2&a=9&a=1&b=1", "http://example.org/?a=9&a=1&b=2&b=1"),
    ("http://example.org/?b&&a&", "http://example.org/?a&b"),
    ("http://example.org/?x[]=2&x[]=1", "http://example.org/?x[]=2&x[]=1"),
    ("http://user:word@example.org/", "http://example.org/"),
]


@pytest.mark.parametrize(("url", "expected"), SPELLINGS)
def test_spells_an_address_one_way(url, expected):
    assert normalize(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "/x",
        "ftp://example.org/",
        "mailto:a@b",
        "javascript:1",
        "http://",
        "http://a b/",
        "http://[::1",
        "\ud800",
    ],
)
def test_refuses_what_is_no_web_address(url):
    with pytest.raises(BadUrl):
        normalize(url)


def test_refuses_overlong_addresses():
    with pytest.raises(BadUrl, match="8192"):
        normalize("http://example.org/" + "x" * MAX_URL)
    with pytest.raises(BadUrl, match="8192"):
        normalize("http://example.org/" + "á" * 2000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org/x", "http://example.org/x"),
        ("  example.org ", "http://example.org/"),
        ("//example.org/x", "http://example.org/x"),
        ("localhost:8080/x", "http://localhost:8080/x"),
        ("127.0.0.1:80", "http://127.0.0.1/"),
        ("https://example.org", "https://example.org/"),
        ("example.org/?u=http://other.org/", "http://example.org/?u=http://other.org/"),
    ],
)
def test_completes_what_people_type(text, expected):
    assert parse_user_url(text) == expected


@pytest.mark.parametrize("text", ["", "   ", "mailto:a@b.org", "javascript:alert(1)", "file:///etc/passwd"])
def test_refuses_what_people_cannot_have_meant(text):
    with pytest.raises(BadUrl):
        parse_user_url(text)


JOINS = [
    ("", "https://example.org/dir/page.html?old=1"),
    ("#top", "https://example.org/dir/page.html?old=1"),
    ("other.html", "https://example.org/dir/other.html"),
    ("sub/", "https://example.org/dir/sub/"),
    ("/root", "https://example.org/root"),
    ("../up", "https://example.org/up"),
    ("./here", "https://example.org/dir/here"),
    (".", "https://example.org/dir/"),
    ("?b=2&a=1", "https://example.org/dir/page.html?a=1&b=2"),
    ("x?b=2&a=1#f", "https://example.org/dir/x?a=1&b=2"),
    ("//other.org/x", "https://other.org/x"),
    ("//Other.org", "https://other.org/"),
    ("http://other.org", "http://other.org/"),
    ("httpd.html", "https://example.org/dir/httpd.html"),
    ("http:x", "http://x/"),
    ("https:x", "https://example.org/dir/x"),
    ("  /x \n", "https://example.org/x"),
    ("a:b", None),
    ("./a:b", "https://example.org/dir/a:b"),
    ("/a%20b", "https://example.org/a%20b"),
    ("/%7e", "https://example.org/~"),
    ("/'?'", "https://example.org/'?%27"),
    ("/x/../../y", "https://example.org/y"),
    ("/.well-known/x", "https://example.org/.well-known/x"),
    ("javascript:void(0)", None),
    ("JavaScript:void(0)", None),
    ("mailto:a@b.org", None),
    ("data:text/plain,x", None),
    ("ftp://example.org/x", None),
    ("http://[bad", None),
    ("\ud800", None),
    ("/" + "x" * 9000, None),
]


@pytest.mark.parametrize(("ref", "expected"), JOINS)
def test_joins_a_link_to_its_page(ref, expected):
    assert join(BASE, ref) == expected


def test_joins_to_a_base_that_needs_the_full_parser():
    assert join("HTTP://Example.org:80/a/../b/c", "d") == "http://example.org/b/d"


pieces = st.lists(
    st.sampled_from(
        [*"aZ09%/?#&=.:;@~[]|'\"^ \\+-_", "..", "/.", "//", "%2e", "%41", "%c3%A9", "č", "x=1", "xn--", "\t"]
    ),
    max_size=12,
).map("".join)
addresses = st.builds(
    "{}{}{}".format, st.sampled_from(["http://a.org/", "https://a.b.cz:81/", "HTTP://A.", "http:"]), pieces, pieces
)


@settings(max_examples=600, deadline=None)
@given(addresses)
def test_normalising_twice_changes_nothing(url):
    try:
        once = normalize(url)
    except BadUrl:
        return
    assert normalize(once) == once
    assert normalization._parsed(once) == once


@settings(max_examples=600, deadline=None)
@given(addresses)
def test_the_fast_path_agrees_with_the_full_parser(url):
    try:
        slow = normalization._parsed(url)
    except BadUrl:
        slow = None
    try:
        fast = normalize(url)
    except BadUrl:
        fast = None
    assert fast == slow


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from([BASE, "http://a.org/", "http://a.org/x/./y", "https://a.org/%41/b?c=/d/e"]),
    st.one_of(pieces, addresses),
)
def test_joining_agrees_with_the_url_standard(base, ref):
    try:
        expected = normalize(join_url(base, ref))
    except (ValueError, BadUrl):
        expected = None
    assert join(base, ref) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_joining_any_text_never_fails(base, ref):
    found = join(base, ref)
    assert found is None or normalize(found) == found


HOSTS = [
    "a.org", "b.org", "xn--pklad-zsa96e.cz", "Příklad.cz", "my_site.org", "your_site.org", "[::1]", "[2001:DB8::2]",
    "127.0.0.1", "127.1", "a.org.", "A.ORG", "münchen.de",
]  # fmt: skip
bases = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "file:///", "ws://", "odd+scheme://", "data:", ""]),
    st.sampled_from(["", "", "user@", "user:pass@", "other:word@"]),
    st.sampled_from(HOSTS),
    st.sampled_from(["", ":80", ":443", ":8080", ":81"]),
    st.sampled_from(["", "/", "/x/y.html", "/.well-known/p", "/a/./b", "/a/../b/", "/x?q=/.", "/C:/d", "/x#part"]),
)
references = st.one_of(
    st.sampled_from(
        [
            "/logo.png",
            "/a?b=2&a=1",
            "//a.org/x",
            "/",
            "http://",
            "https://c.org",
            "/.x",
            "/\\c.org/y",
            "//c.org:80",
            "/C|/x",
        ]
    ),
    st.builds("{}{}".format, st.sampled_from(["/", "//", "http://", "https://", ""]), pieces),
)


def expected_target(base, ref):
    """What the URL standard says, in the archive's spelling."""
    try:
        return normalize(join_url(base, ref))
    except (ValueError, BadUrl):
        return None


@settings(max_examples=600, deadline=None)
@given(st.lists(st.tuples(bases, st.lists(references, min_size=1, max_size=6)), min_size=1, max_size=8))
def test_pages_of_many_sites_read_in_a_row_keep_their_own_links(pages):
    for base, refs in pages:
        target = joiner(base)
        assert [target(ref) for ref in refs * 2] == [expected_target(base, ref) for ref in refs * 2]


@pytest.mark.parametrize("base", ["http://{}.test/.well-known/p", "http://{}_x.test/"])
def test_a_link_of_one_site_is_never_given_to_another(base):
    found = [joiner(base.format(name))("/logo.png") for name in ("one", "two")]
    assert found == [join(base.format(name), "/logo.png") for name in ("one", "two")]
    assert found[0] != found[1]
