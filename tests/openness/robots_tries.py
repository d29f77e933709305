"""robots.txt: what may be fetched, by RFC 9309 and the cases that the largest crawler of the web publishes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tries import Score, compared

from letopis.look.robots import RobotsFile, path_and_query


class Rules(NamedTuple):
    """A file, and the addresses that an agent may and may not fetch by it."""

    text: str
    allowed: str
    refused: str
    agent: str = "FooBot"


def _own(*lines: str, allowed: str = "", refused: str = "") -> Rules:
    return Rules("\n".join(("user-agent: FooBot", *lines, "")), allowed, refused)


def _fish(allow: str, allowed: str, refused: str) -> Rules:
    return _own("disallow: /", f"allow: {allow}", allowed=allowed, refused=refused)


_GROUPS = """allow: /foo/bar/

user-agent: FooBot
disallow: /
allow: /x/
user-agent: BarBot
disallow: /
allow: /y/


allow: /w/
user-agent: BazBot

user-agent: FooBot
allow: /z/
disallow: /
"""
_GLOBAL = "user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /\n"
_NAMED = "user-agent: FooBot\nallow: /\nuser-agent: BarBot\ndisallow: /\nuser-agent: BazBot\ndisallow: /\n"
_SPACE = "User-Agent: *\nDisallow: /\nUser-Agent: Foo Bar\nAllow: /x/\nDisallow: /\n"
_UTF8 = "User-Agent: foo\nAllow: /AnyValue\nDisallow: /\n"
_FISH = "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=anything"
_SITEMAP = "Sitemap: http://foo.bar/sitemap\n"
CASES = (
    Rules("", "/ /x/y", ""),
    Rules("user-agent: FooBot\ndisallow: /\n", "/x", "", ""),
    _own("disallow: /", refused="/ /x"),
    Rules("user-agent: FooBot\ndisallow: /\n", "", "/x/y"),
    Rules("foo: FooBot\nbar: /\n", "/x/y", ""),
    Rules("user-agent FooBot\ndisallow /\n", "", "/x/y"),
    Rules(_GROUPS, "/x/b /z/d", "/y/c /foo/bar/"),
    Rules(_GROUPS, "/y/c /w/a", "/z/d /foo/bar/", "BarBot"),
    Rules(_GROUPS, "/z/d", "/foo/bar/", "BazBot"),
    Rules("User-agent: BarBot\nSitemap: https://foo.bar/sitemap\nUser-agent: *\nDisallow: /\n", "", "/"),
    Rules("User-agent: BarBot\nSitemap: https://foo.bar/sitemap\nUser-agent: *\nDisallow: /\n", "", "/", "BarBot"),
    Rules("User-agent: FooBot\nInvalid-Unknown-Line: unknown\nUser-agent: *\nDisallow: /\n", "", "/"),
    Rules("User-agent: FooBot\nInvalid-Unknown-Line: unknown\nUser-agent: *\nDisallow: /\n", "", "/", "BarBot"),
    Rules("USER-AGENT: FooBot\nALLOW: /x/\nDISALLOW: /\n", "/x/y", "/a/b"),
    Rules("user-agent: FooBot\nallow: /x/\ndisallow: /\n", "/x/y", "/a/b"),
    Rules("uSeR-aGeNt: FooBot\nAlLoW: /x/\ndIsAlLoW: /\n", "/x/y", "/a/b"),
    *(Rules(f"User-Agent: {name}\nAllow: /x/\nDisallow: /\n", "/x/y", "/a/b", agent)
      for name in ("FOO BAR", "foo bar", "FoO bAr") for agent in ("Foo", "foo")),
    Rules(_SPACE, "/x/y", "/a/b", "Foo"),
    Rules(_SPACE, "", "/x/y", "Foo Bar"),
    Rules(_GLOBAL, "", "/x/y"),
    Rules(_GLOBAL, "/x/y", "", "BarBot"),
    Rules(_NAMED, "/x/y", ""),
    Rules(_NAMED, "", "/x/y", "BarBot"),
    Rules(_NAMED, "/x/y", "", "QuxBot"),
    _own("disallow: /x/", refused="/x/y"),
    _own("disallow: /X/", allowed="/x/y"),
    _own("disallow: /x/page.html", "allow: /x/", refused="/x/page.html"),
    _own("allow: /x/page.html", "disallow: /x/", allowed="/x/page.html", refused="/x/"),
    _own("disallow: ", "allow: ", allowed="/x/page.html"),
    _own("disallow: /", "allow: /", allowed="/x/page.html"),
    _own("disallow: /x", "allow: /x/", allowed="/x/", refused="/x"),
    _own("disallow: /x/page.html", "allow: /x/page.html", allowed="/x/page.html"),
    _own("allow: /page", "disallow: /*.html", allowed="/page", refused="/page.html"),
    _own("allow: /x/page.", "disallow: /*.html", allowed="/x/page.html", refused="/x/y.html"),
    Rules("User-agent: *\nDisallow: /x/\nUser-agent: FooBot\nDisallow: /y/\n", "/x/page", "/y/page"),
    _own("disallow: /", "allow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par",
         allowed="/foo/bar?qux=taz&baz=http://foo.bar?tar&par"),
    _own("disallow: /", "allow: /foo/bar/ツ", allowed="/foo/bar/%E3%83%84", refused="/foo/bar/ツ"),
    _own("disallow: /", "allow: /foo/bar/%E3%83%84", allowed="/foo/bar/%E3%83%84", refused="/foo/bar/ツ"),
    _own("disallow: /", "allow: /foo/bar/%62%61%7A", allowed="/foo/bar/%62%61%7A", refused="/foo/bar/baz"),
    _own("disallow: /foo/bar/quz", "allow: /foo/*/qux",
         allowed="/foo/quz /foo//quz /foo/bax/quz", refused="/foo/bar/quz"),
    _own("disallow: /foo/bar$", "allow: /foo/bar/qux",
         allowed="/foo/bar/qux /foo/bar/ /foo/bar/baz", refused="/foo/bar"),
    _own("# disallow: /", "disallow: /foo/quz#qux", "allow: /", allowed="/foo/bar", refused="/foo/quz"),
    Rules("User-Agent: *\nAllow: /allowed-slash/index.html\nDisallow: /\n",
          "/allowed-slash/ /allowed-slash/index.html", "/allowed-slash/index.htm /anyother-url"),
    _own("disallow: /x/" + "a" * 16_660 + "/qux", allowed="/fux", refused="/x/" + "a" * 16_700 + "/fux"),
    _own("disallow: /", f"allow: /x/{'a' * 8_000}/qux", f"allow: /x/{'b' * 8_000}/qux",
         allowed=f"/x/{'a' * 8_000}/qux /x/{'b' * 8_000}/qux", refused=f"/ /x/{'c' * 8_000}/qux"),
    _fish("/fish", _FISH, "/bar /Fish.asp /catfish /?id=fish"),
    _fish("/fish*", _FISH, "/bar /Fish.asp /catfish /?id=fish"),
    _fish("/fish/", "/fish/ /fish/salmon /fish/?salmon /fish/salmon.html /fish/?id=anything",
          "/bar /fish /fish.html /Fish/Salmon.html"),
    _fish("/*.php", "/filename.php /folder/filename.php /folder/filename.php?parameters //folder/any.php.file.html "
          "/filename.php/ /index?f=filename.php/", "/bar /php/ /index?php /windows.PHP"),
    _fish("/*.php$", "/filename.php /folder/filename.php", "/bar /filename.php?parameters /filename.php/ "
          "/filename.php5 /php/ /filename?php /aaaphpaaa //windows.PHP"),
    _fish("/fish*.php", "/fish.php /fishheads/catfish.php?parameters", "/bar /Fish.PHP"),
    _own("allow: /p", "disallow: /", allowed="/page"),
    _own("allow: /folder", "disallow: /folder", allowed="/folder/page"),
    _own("allow: /page", "disallow: /*.htm", refused="/page.htm"),
    _own("allow: /$", "disallow: /", allowed="/", refused="/page.html"),
    Rules("\ufeff" + _UTF8, "/AnyValue", "/x", "foo"),
    Rules("\ufffd\ufffd" + _UTF8, "/AnyValue", "/x", "foo"),
    Rules(_SITEMAP + "User-Agent: foo\nAllow: /some/path\nDisallow: /\n", "/some/path", "/x", "foo"),
    Rules("User-Agent: foo\nAllow: /some/path\nDisallow: /\n" + _SITEMAP, "/some/path", "/x", "foo"),
    Rules(_UTF8.replace("\n", "\r\n"), "/AnyValue", "/x", "foo"),
    Rules(_UTF8.replace("\n", "\r"), "/AnyValue", "/x", "foo"),
    Rules(_UTF8.removesuffix("\n"), "/AnyValue", "/x", "foo"),
    Rules("user-agent: * baz\ndisallow: /x\n", "/y", "/x", "foo"),
    _own("disallow: /%aa", refused="/%AA"),
    _own("disallow: /á", refused="/%C3%A1"),
)  # fmt: skip
PATHS = {
    "": "/", "http://www.example.com": "/", "http://www.example.com/": "/", "http://www.example.com/a": "/a",
    "http://www.example.com/a/": "/a/", "http://www.example.com/a/b?c=http://d.e/": "/a/b?c=http://d.e/",
    "http://www.example.com/a/b?c=d&e=f#fragment": "/a/b?c=d&e=f", "example.com": "/", "example.com/": "/",
    "example.com/a": "/a", "example.com/a/": "/a/", "example.com/a/b?c=d&e=f#fragment": "/a/b?c=d&e=f", "a": "/",
    "a/": "/", "/a": "/a", "a/b": "/b", "example.com?a": "/?a", "example.com/a;b#c": "/a;b", "//a/b/c": "/b/c",
}  # fmt: skip
"""What rules are compared with, by address."""


def quick(_: Path) -> Score:
    theirs: dict[str, object] = {}
    ours: dict[str, object] = {}
    for number, case in enumerate(CASES):
        rules = RobotsFile(case.text, case.agent)
        for paths, allowed in ((case.allowed, True), (case.refused, False)):
            for path in paths.split():
                name = f"rules {number + 1}, {path[:60]}"
                theirs[name], ours[name] = allowed, rules.allowed("http://foo.bar" + path)
    theirs |= {f"path of '{url}'": path for url, path in PATHS.items()}
    return compared(ours | {f"path of '{url}'": path_and_query(url) for url in PATHS}, theirs)
