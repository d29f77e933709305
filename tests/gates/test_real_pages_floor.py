"""Replay keeps what it reached on captures of other tools: their pages find what they need, and look as they did.

All pages by what their markup and style sheets name, asked of the replay without a browser; a few of them in Chromium.
`python -m bench.replay` measures all of them there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser

from letopis.archive import Archive
from letopis.errors import LetopisError
from letopis.exchange.imports import import_sources
from letopis.model import to_millis
from letopis.replay.origin import ReplayOrigin
from letopis.replay.sites import SiteRequest, site_response

sys.path.insert(0, str(Path(__file__).parents[2]))
pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: replays were not judged")

from bench.replay import OTHERS, PAGES_OF_ONE, figures, in_chromium, judged, row_of, sources_of
from bench.replaying.players import letopis
from bench.replaying.warc_files import KeptAnswer, KeptWeb, key_of

SAMPLES = Path(os.environ.get("LETOPIS_CORPUS", Path(__file__).parents[3] / "shared" / "corpus")) / "warc"
pytestmark = pytest.mark.skipif(
    not SAMPLES.is_dir(),
    reason="NO SAMPLES of other tools (LETOPIS_CORPUS names their folder): replays of real pages were NOT judged",
)
SHOWN = (
    "py-wacz/example-iana.warc", "replayweb.page/example.wacz",
    "webarchive-discovery/flashfrozen-jwat-recompressed.warc.gz",
)  # fmt: skip
"""Of which one page each is shown in Chromium: with an error of a script, with many scripts, with many pictures."""
ORIGIN = ReplayOrigin("http", "letopis.localhost:8081")
_NAMED = {
    "img": "src", "script": "src", "iframe": "src", "frame": "src", "source": "src", "video": "src", "audio": "src",
    "input": "src", "embed": "src", "object": "data", "body": "background", "td": "background",
}  # fmt: skip
_FRAMES = ("iframe", "frame")
_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s;]+)""")
_MOST_DEEP = 4
_IN_URL = "/%:@!$&'()*+,;=~?[]|"


class Fetched(NamedTuple):
    """An answer: where it stands, and what it is."""

    url: str
    content_type: str
    text: str


Fetch = Callable[[str, str, str], Fetched | None]
"""The answer to an address, asked for by a page and for a purpose; None for what there is not."""


def needed(fetch: Fetch, url: str, why: str = "iframe", page: str = "", deep: int = 0) -> Iterator[str]:
    """The addresses that get an answer: a page, what it names, and what its frames and style sheets name."""
    found = fetch(url, page or url, why)
    if found is None:
        return
    yield url
    if deep == _MOST_DEEP:
        return
    names = _markup(found) if why in _FRAMES else _css(found.text) if found.content_type == "text/css" else ()
    for purpose, name in {one: None for one in names if not one[1].startswith(("data:", "#", "javascript:", "about:"))}:
        yield from needed(fetch, urljoin(found.url, name.strip()).partition("#")[0], purpose, found.url, deep + 1)


def _css(text: str) -> Iterator[tuple[str, str]]:
    return (("style" if "@import" in found[0] else "image", found[1]) for found in _STYLES.finditer(text))


def _markup(page: Fetched) -> Iterator[tuple[str, str]]:
    """Purpose and name of whatever a browser loads with a page, whatever its scripts do."""
    if not page.content_type.endswith("html"):
        return
    tree = LexborHTMLParser(page.text)
    base = tree.css_first("base[href]")
    start = urljoin(page.url, base.attributes["href"] or "") if base is not None else page.url
    for node in tree.css(", ".join(f"{tag}[{name}]" for tag, name in _NAMED.items())):
        tag = node.tag or ""
        name = node.attributes[_NAMED[tag]]
        if name:
            yield tag, urljoin(start, name.strip())
    for node in tree.css("link[rel~=stylesheet][href], link[rel~=icon][href]"):
        why = "image" if "icon" in (node.attributes["rel"] or "") else "style"
        yield why, urljoin(start, node.attributes["href"] or "")
    for node in tree.css("style"):
        yield from ((why, urljoin(start, name)) for why, name in _css(node.text()))


def as_kept(web: KeptWeb, page: KeptAnswer) -> Fetch:
    """The web as the file has it."""

    def fetch(url: str, _: str, why: str) -> Fetched | None:
        for _hop in range(5):
            found = web.nearest(url, page.time)
            if found is None or found.status >= 400:
                return None
            fields = {name.lower(): value for name, value in found.headers}
            if not 300 <= found.status < 400 or "location" not in fields:
                type_ = fields.get("content-type", "").partition(";")[0].strip().lower()
                return Fetched(url, type_, found.body.decode("utf-8", "replace"))
            url = urljoin(url, fields["location"])
        return None

    return fetch


def as_replayed(archive: Archive) -> Fetch:
    """The web as the replay answers; what its policy would keep a browser from is not answered."""

    def fetch(url: str, page: str, why: str) -> Fetched | None:
        for _hop in range(5):
            place = urlsplit(url)
            site = ORIGIN.site_of(place.netloc)
            if site is None or place.scheme != "http":
                return None
            path = quote(place.path or "/", safe=_IN_URL)
            fields = {"host": place.netloc, "referer": page, "sec-fetch-dest": why, "accept": "*/*"}
            scope: dict[str, Any] = {
                "type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(), "root_path": "",
                "query_string": quote(place.query, safe=_IN_URL).encode(), "scheme": "http",
                "headers": [(name.encode(), value.encode("utf-8")) for name, value in fields.items()],
            }  # fmt: skip
            try:
                answer = site_response(archive, SiteRequest(site, ORIGIN, scope))
            except LetopisError:
                return None
            if answer.status_code >= 400:
                return None
            if answer.status_code != 302:
                type_ = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
                return Fetched(url, type_, bytes(answer.body).decode("utf-8", "replace"))
            url = answer.headers["location"]
        return None

    return fetch


def judge(file: Path, folder: Path) -> Iterator[tuple[str, set[str], set[str]]]:
    """Of the first pages of a file that need something: its address, what it needs there, what of that is replayed."""
    web, pages = KeptWeb(file), 0
    with Archive(folder) as archive:
        import_sources(archive, [file])
        for page in web.pages():
            asked = {key_of(url) for url in needed(as_kept(web, page), page.url)}
            start = ORIGIN.address(page.url, to_millis(page.time))
            if len(asked) < 2 or start is None:
                continue
            found = {key_of(ORIGIN.restored(ORIGIN.original(url) or "")) for url in needed(as_replayed(archive), start)}
            yield page.url, asked, found
            pages += 1
            if pages == PAGES_OF_ONE:
                return


def test_what_pages_of_other_tools_need_is_answered(tmp_path: Path) -> None:
    rows = [row for number, name in enumerate(OTHERS) for row in judge(SAMPLES / name, tmp_path / str(number))]
    asked = sum(len(needs) for _, needs, _ in rows)
    missing = {url: sorted(needs - found) for url, needs, found in rows if needs - found}
    assert (len(rows), asked) >= (36, 450), "pages were lost from what is judged"
    assert sum(map(len, missing.values())) <= 0.005 * asked, missing


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_they_look_as_they_did_and_their_scripts_run_in_chromium(tmp_path: Path) -> None:
    rows = []
    with in_chromium() as bench:
        for source in sources_of(tmp_path, SAMPLES, SHOWN):
            with letopis(source.archive) as ours:
                rows += [row_of(row) for row in judged(bench, source, [ours], 1)]
    found = figures(rows, bench.leaving)["letopis"]
    assert len(rows) == len(SHOWN)
    assert found["R1"] == 1, rows
    assert found["R2"] <= 1, rows
    assert found["R3"] == 1, rows
    assert found["R4"] == 0, bench.leaving
