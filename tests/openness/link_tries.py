"""Broken links: what Letopis lists of a small site, and what LinkChecker lists of it, link by link with its line."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

from contract_doors import by_command
from scripted_site import ScriptedSite
from tries import Score, compared

from letopis.archive import Archive
from letopis.operations.links import broken

RECORDED = Path(__file__).with_name("linkchecker-answers.json")
_HOME = """<!doctype html><html><head><title>Home</title>
<link rel="stylesheet" href="/style">
<link rel="icon" href="/icon"><link rel="alternate" type="application/rss+xml" href="/feed">
<script src="/script"></script>
</head><body background="/background"><p id="here">
<a href="/a">a</a> <a href="/fine">fine</a> <a href="#here">here</a>
<a href="/fine#nothing">nothing</a> <a href="/fine#part">part</a>
<a rel="nofollow" href="/nofollow">nofollow</a>
<img src="/img" alt=""> <img srcset="/srcset 2x" src="/fine.png" alt="" longdesc="/longdesc">
<object data="/object"></object><embed src="/embed"><iframe src="/iframe"></iframe>
<blockquote cite="/blockquote">x</blockquote> <q cite="/q">x</q> <ins cite="/ins">x</ins>
<form action="/action" method="get"><button formaction="/formaction">x</button>
<input type="image" src="/input" alt=""></form>
<video src="/video"></video><audio src="/audio"></audio><video><source src="/source"><track src="/track"></video>
<map name="m"><area href="/area" alt=""></map>
<table background="/table"><tr><td background="/td">x</td></tr></table>
<a href="{other}">another host</a> <a href="/moved">moved</a> <a href="/forbidden">x</a> <a href="/failing">x</a>
<div style="background: url(/inline)">x</div></body></html>
"""
_FINE = b"<title>Fine</title><a name=part></a>\n<a href='/deep'>x</a>"


class _Sites(NamedTuple):
    """The site, and the host beside it to which one link leads."""

    site: ScriptedSite
    other: str

    def told(self, source: str, target: str, line: object) -> str:
        """A link without the ports of this run."""
        link = f"{source} -> {target}, line {line}"
        return link.replace(self.other, "http://other.test").replace(self.site.url(""), "")


@contextmanager
def _sites() -> Iterator[_Sites]:
    site, beside = ScriptedSite(), ScriptedSite()
    other = beside.url("").replace("127.0.0.1", "localhost")
    site.set("/", _HOME.replace("{other}", f"{other}/never").encode())
    site.set("/fine", _FINE)
    site.set("/fine.png", b"\x89PNG", Content_Type="image/png")
    site.redirect("/moved", "/moved-away")
    site.set("/forbidden", b"no", 403)
    site.set("/failing", b"no", 500)
    try:
        yield _Sites(site, other)
    finally:
        site.close()
        beside.close()


def _ours(folder: Path, sites: _Sites) -> set[str]:
    """What is broken on the pages of the site, when all that they link to was checked."""
    place = folder / "archive"
    with Archive(place) as archive:
        for path in ("/", "/fine"):
            archive.put(sites.site.url(path), sites.site.pages[path].body)
    asked = {"site": sites.site.url("/").split("/")[2], "fragments": True, "check": "all"}
    told = by_command(broken, place, asked, folder)
    assert told.status == 0, told.error
    return {sites.told(row["source"], row["target"], row["line"]) for row in told.rows}


def _linkchecker(folder: Path, sites: _Sites, environment: Path) -> set[str]:
    settings = folder / "linkcheckerrc"
    settings.write_text("[AnchorCheck]\n[filtering]\nignorewarnings=url-content-size-zero,http-redirected\n")
    settings.chmod(0o644)
    folder.chmod(0o755)  # it gives up the rights of the owner of the machine
    told = subprocess.run(
        [environment / "bin" / "linkchecker", "-f", settings, "--check-extern", "--no-robots", "--no-status", "-t", "1",
         "-o", "csv", sites.site.url("/")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    lines = (line for line in StringIO(told.stdout) if not line.startswith("#"))
    rows = list(csv.DictReader(lines, delimiter=";"))
    assert rows, told.stderr
    return {sites.told(row["parentname"], urljoin(row["parentname"], row["urlname"]), row["line"]) for row in rows}


def _scored(ours: set[str], theirs: set[str]) -> Score:
    """Every link that one of the two lists."""
    links = sorted(ours | theirs)
    return compared({link: link in ours for link in links}, {link: link in theirs for link in links})


def quick(folder: Path) -> Score:
    with _sites() as sites:
        return _scored(_ours(folder, sites), set(json.loads(RECORDED.read_text("utf-8"))))


def full(folder: Path, environment: Path) -> Score:
    with _sites() as sites:
        theirs = _linkchecker(folder, sites, environment)
        RECORDED.write_text(json.dumps(sorted(theirs), indent=1) + "\n", "utf-8")
        return _scored(_ours(folder, sites), theirs)
