"""Redirects of common kinds: whether whoever opens the first address in the end sees the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from served_peers import Peer, answered, served_warc
from small_warcs import Answered, redirect, stamp, write_warc
from tries import Score, compared

_DAY = 86_400
PAGE = b"<!doctype html><title>The page</title><p>the page of day %d"


class Pattern(NamedTuple):
    """Captures, and the address and time that are asked for; the page of that day is what has to be seen."""

    name: str
    captures: tuple[Answered, ...]
    url: str
    after: float
    day: int = 0


def _page(url: str, after: float) -> Answered:
    return Answered(url, after, 200, PAGE % (after // _DAY))


PATTERNS = (
    Pattern(
        "bare host to www a second later",
        (redirect("http://bare.test/", 0, "http://www.bare.test/"), _page("http://www.bare.test/", 1)),
        "http://bare.test/", 0,
    ),
    Pattern(
        "http to https a second later",
        (redirect("http://secure.test/", 0, "https://secure.test/"), _page("https://secure.test/", 1)),
        "http://secure.test/", 0,
    ),
    Pattern(
        "http to https in the same second",
        (redirect("http://quick.test/", 0, "https://quick.test/"), _page("https://quick.test/", 0)),
        "http://quick.test/", 0,
    ),
    Pattern(
        "a directory to itself with a slash",
        (redirect("http://dir.test/dir", 0, "/dir/"), _page("http://dir.test/dir/", 2)),
        "http://dir.test/dir", 0,
    ),
    Pattern(
        "to itself, to set a cookie",
        (redirect("http://cookie.test/", 0, "http://cookie.test/", 302), _page("http://cookie.test/", 3)),
        "http://cookie.test/", 0,
    ),
    Pattern(
        "the same in other letters",
        (redirect("http://case.test/Page", 0, "/page"), _page("http://case.test/page", 1)),
        "http://case.test/Page", 0,
    ),
    Pattern(
        "http to https every day",
        tuple(
            one
            for day in range(3)
            for one in (
                redirect("http://daily.test/", day * _DAY, "https://daily.test/"),
                _page("https://daily.test/", day * _DAY + 5),
            )
        ),
        "http://daily.test/", _DAY, 1,
    ),
    Pattern(
        "to a login and back",
        (
            redirect("http://login.test/a", 0, "/login?next=/a", 302),
            redirect("http://login.test/login?next=/a", 1, "/a", 302),
            _page("http://login.test/a", 2),
        ),
        "http://login.test/a", 0,
    ),
)  # fmt: skip
_MOST_STEPS = 12


def _seen(get: Callable[[str], tuple[int, str, bytes]], address: str, day: int) -> bool:
    """Follows redirects as a browser does."""
    for _ in range(_MOST_STEPS):
        status, location, body = get(address)
        if not (300 <= status < 400 and location):
            return status == 200 and PAGE % day in body
        parts = urlsplit(urljoin(address, location))
        address = parts.path + (f"?{parts.query}" if parts.query else "")
    return False


def _sees(get: Callable[[str], tuple[int, str, bytes]], folder: str) -> dict[str, object]:
    return {one.name: _seen(get, f"{folder}{stamp(one.after)}id_/{one.url}", one.day) for one in PATTERNS}


def _written(folder: Path) -> Path:
    return write_warc(folder / "redirects.warc", [capture for one in PATTERNS for capture in one.captures])


def quick(folder: Path) -> Score:
    with served_warc(folder, _written(folder)) as web:
        return compared(_sees(lambda path: answered(web, path), "/web/"), {one.name: True for one in PATTERNS})


def full(folder: Path, environment: Path) -> Score:
    """pywb shows some of these pages only: what it shows, Letopis has to show."""
    file = _written(folder)
    with Peer.pywb(folder, environment, [file]) as peer:
        theirs = _sees(lambda path: answered(peer, path), "/all/")
    with served_warc(folder, file) as web:
        ours = _sees(lambda path: answered(web, path), "/web/")
    return compared(ours, {name: True if seen else ours[name] for name, seen in theirs.items()})
