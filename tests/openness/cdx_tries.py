"""CDX: the same questions to Letopis and to pywb, over the same WARC file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from served_peers import Peer, answered, served_warc
from small_warcs import Answered, redirect, write_warc
from tries import Score, compared

RECORDED = Path(__file__).with_name("pywb-answers.json")
_HOUR = 3600
_JSON = (("Content-Type", "application/json"),)


def _page(path: str, after: float, text: str) -> Answered:
    return Answered(f"http://example.test{path}", after, 200, text.encode())


CAPTURES = (
    _page("/", 0, "home one"),
    _page("/", _HOUR, "home two"),
    _page("/", 2 * _HOUR, "home two"),
    Answered("http://example.test/", 3 * _HOUR, 304, b"home two", revisit_of=_HOUR),
    Answered("http://example.test/", 4 * _HOUR, 404, b"gone"),
    _page("/a", 10, "a"),
    _page("/a/b", 20, "b"),
    _page("/a/b?q=1&r=2", 30, "query"),
    _page("/about", 40, "about"),
    Answered("http://example.test/data.json", 50, 200, b"{}", _JSON),
    Answered("http://example.test/lib.js?_=1234567890", 55, 200, b"js", (("Content-Type", "text/javascript"),)),
    redirect("http://example.test/moved", 60, "http://example.test/a"),
    Answered("http://sub.example.test/x", 70, 200, b"x"),
    Answered("http://www.example.test/about", 80, 200, b"about"),
    Answered("https://example.test:8443/secure", 90, 500, b"broken"),
    Answered("http://other.test/", 100, 200, b"other"),
)
_HOME = "http://example.test/"
_ALL = "example.test"
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"url": _HOME},
    {"url": "example.test"},
    {"url": "HTTP://EXAMPLE.TEST:80/"},
    {"url": "www.example.test/about"},
    {"url": "http://nowhere.test/"},
    {"url": "http://example.test/a/b?r=2&q=1"},
    {"url": "http://example.test/moved"},
    {"url": "http://example.test/a", "matchType": "exact"},
    {"url": "http://example.test/a", "matchType": "prefix"},
    {"url": "http://example.test/a/", "matchType": "prefix"},
    {"url": "http://example.test/a*"},
    {"url": "http://example.test/a/*"},
    {"url": "http://example.test/*"},
    {"url": _ALL, "matchType": "host"},
    {"url": _ALL, "matchType": "domain"},
    {"url": "*.example.test"},
    {"url": _HOME, "limit": 1},
    {"url": _HOME, "limit": 3},
    {"url": _ALL, "matchType": "domain", "limit": 4},
    {"url": _HOME, "sort": "reverse"},
    {"url": _HOME, "sort": "reverse", "limit": 2},
    {"url": _HOME, "closest": "20240301140000"},
    {"url": _HOME, "closest": "20240301140000", "limit": 1},
    {"url": _HOME, "sort": "closest", "closest": "20240301120000", "limit": 2},
    {"url": _HOME, "closest": "2025", "limit": 1},
    {"url": _HOME, "from": "20240301130000"},
    {"url": _HOME, "to": "20240301130000"},
    {"url": _HOME, "from": "20240301130000", "to": "20240301150000"},
    {"url": _HOME, "from": "2024030113", "to": "2024030114"},
    {"url": _HOME, "from": "2025"},
    {"url": _HOME, "filter": "=status:200"},
    {"url": _HOME, "filter": "!=status:200"},
    {"url": _HOME, "filter": "status:4"},
    {"url": _HOME, "filter": "!status:4"},
    {"url": _HOME, "filter": "~status:[24].."},
    {"url": _HOME, "filter": "!~status:4.."},
    {"url": _ALL, "matchType": "domain", "filter": "mime:json"},
    {"url": _ALL, "matchType": "domain", "filter": "~url:.*/a/.*"},
    {"url": _ALL, "matchType": "domain", "filter": "=urlkey:test,example)/a"},
    {"url": _ALL, "matchType": "domain", "filter": ["mime:text/html", "=status:200"]},
    {"url": _HOME, "filter": "mime:revisit"},
    {"url": _HOME, "resolveRevisits": "true"},
    {"url": _HOME, "resolveRevisits": "true", "filter": "=status:200"},
    {"url": _HOME, "fl": "timestamp,url"},
    {"url": _HOME, "fields": "urlkey,timestamp,status,mime"},
    {"url": _HOME, "fl": "timestamp,digest", "limit": 2},
    {"url": _HOME, "output": "json"},
    {"url": _HOME, "output": "json", "fl": "url,status"},
    {"url": _HOME, "output": "text", "fl": "timestamp,status"},
    {"url": _HOME, "output": "cdxj", "limit": 2},
    {"url": "http://example.test/lib.js?_=1234567890"},
    {"url": "http://example.test/lib.js?_=999999999999"},
    {"url": "http://example.test/lib.js?_=999999999999", "allowFuzzy": "0"},
    {"url": "http://example.test/a?unknown=1"},
    {"url": "https://example.test:8443/secure"},
)
_COMPARED = ("urlkey", "timestamp", "url", "mime", "status", "digest")
"""Where a record lies in a file is nobody else's business."""


def _rows(text: str) -> object:
    """Rows of an answer in any form; fields that only one side can know are left out."""
    return [_row(line) for line in text.splitlines() if line.strip()]


def _row(line: str) -> object:
    head, brace, tail = line.partition("{")
    if not brace:
        return line
    fields = json.loads(brace + tail)
    found = {name: str(value).removeprefix("sha1:") for name, value in fields.items() if name in _COMPARED}
    return [head.strip(), found]


def _ask(web: Any, path: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for question in QUESTIONS:
        query = urlencode(question, doseq=True)
        status, _, body = answered(web, f"{path}?{query}")
        found[query] = [status, _rows(body.decode())] if status == 200 else [status]
    return found


def _written(folder: Path) -> Path:
    return write_warc(folder / "cdx.warc", CAPTURES)


def ours(folder: Path) -> dict[str, object]:
    with served_warc(folder, _written(folder)) as web:
        return _ask(web, "/web/cdx")


def quick(folder: Path) -> Score:
    """Against what pywb answered when it was asked last."""
    return compared(ours(folder), json.loads(RECORDED.read_text("utf-8")))


def full(folder: Path, environment: Path) -> Score:
    file = _written(folder)
    with Peer.pywb(folder, environment, [file]) as peer:
        theirs = _ask(peer, "/all/cdx")
    RECORDED.write_text(json.dumps(theirs, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return compared(ours(folder), theirs)
