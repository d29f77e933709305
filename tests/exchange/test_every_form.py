"""Every form that comes in does so as a file, from standard input and over HTTP, packed or not."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from served_archive import running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.cli.main import main

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
DATE = "2024-03-01T12:00:00Z"
PAGE = "http://example.org/page"


def record(number: int, kind: str, target: str, block: bytes, content_type: str = "text/plain") -> bytes:
    fields = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {target}\r\nWARC-Date: {DATE}\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-0000000000{number:02}>\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(fields.encode() + block + b"\r\n\r\n")


def answer(number: int, url: str = PAGE) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>page %d" % number
    return record(number, "response", url, block, "application/http; msgtype=response")


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as package:
        for name, data in members.items():
            package.writestr(name.replace("__", "/").replace("_", "."), data)
    return packed.getvalue()


WET = record(1, "conversion", PAGE, b"words of a page") + record(2, "conversion", PAGE + "/2", b"words of another")
WACZ = zipped(archive__a_warc=answer(1), archive__b_warc=answer(2, PAGE + "/2"))


class Form(NamedTuple):
    """What is taken in, with which words, and what there must be of it."""

    data: bytes
    brought: dict[str, int]
    watches: bool = False


def corpus(*path: str) -> bytes:
    return CORPUS.joinpath(*path).read_bytes()


FORMS = {
    "WARC": Form(answer(1) + answer(2, PAGE + "/2"), {"versions": 2}),
    "WET": Form(WET, {"versions": 2}),
    "urn: and screenshot: resources": Form(
        record(1, "resource", f"urn:view:{PAGE}", b"\x89PNG", "image/png")
        + record(2, "resource", f"urn:text:{PAGE}", b"words")
        + record(3, "resource", f"screenshot:{PAGE}", b"\x89PNG2", "image/png"),
        {"versions": 3},
    ),
    "WACZ with two WARC files": Form(WACZ, {"versions": 2}),
    "WACZ in a WACZ": Form(zipped(inner_wacz=WACZ), {"versions": 2}),
    "HAR": Form(corpus("har", "session.har"), {"versions": 2}),
    "MHTML": Form(corpus("mhtml", "page.mhtml"), {"versions": 2}),
    "SingleFile": Form(corpus("mhtml", "single-file.html"), {"versions": 1}),
    "OPML": Form(corpus("lists", "feeds.opml"), {"watches": 3}, watches=True),
    "bookmarks": Form(corpus("lists", "bookmarks.html"), {"watches": 3}, watches=True),
    "list of addresses": Form(corpus("lists", "list.txt"), {"watches": 3}, watches=True),
    "sitemap": Form(corpus("lists", "sitemap.xml"), {"watches": 2}, watches=True),
    "list of sitemaps": Form(corpus("lists", "sitemaps.xml"), {"watches": 1}, watches=True),
    "Distill": Form(corpus("watch-lists", "distill.json"), {"watches": 2}, watches=True),
    "Visualping JSON": Form(corpus("watch-lists", "visualping.json"), {"watches": 2}, watches=True),
    "Visualping CSV": Form(corpus("watch-lists", "visualping.csv"), {"watches": 2}, watches=True),
    "urlwatch": Form(corpus("watch-lists", "urls.yaml"), {"watches": 2}, watches=True),
}
PACKED = [name for name in FORMS if not name.startswith(("WARC", "WET", "WACZ", "urn"))]
Way = Callable[[Path, Form, Any], dict[str, int]]


def as_file(folder: Path, form: Form, patch: Any) -> dict[str, int]:
    (folder / "what-is-it").write_bytes(form.data)
    return by_command(folder, str(folder / "what-is-it"), form, patch)


def from_standard_input(folder: Path, form: Form, patch: Any) -> dict[str, int]:
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(form.data)))
    return by_command(folder, "-", form, patch)


def by_command(folder: Path, source: str, form: Form, patch: Any) -> dict[str, int]:
    said = io.StringIO()
    patch.setattr(sys, "stdout", said)
    words = ["--watches"] if form.watches else []
    assert main(["--archive", str(folder / "a"), "--json", "import", source, *words]) == 0
    return dict(json.loads(said.getvalue()))


def over_http(folder: Path, form: Form, patch: Any) -> dict[str, int]:
    with Archive(folder / "a") as archive, running(archive) as web:
        token = accounts_of(archive).create_token("owner", None, "write", 0)
        path = f"/api/v1/import?watches={str(form.watches).lower()}"
        answered = web.ask("POST", path, form.data, Authorization=f"Bearer {token}")
        assert answered.status == 200, answered.text
        return dict(answered.json())


@pytest.mark.parametrize("way", [as_file, from_standard_input, over_http], ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_brings_the_same_through_every_door(
    name: str, way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = way(tmp_path, FORMS[name], monkeypatch)
    assert {what: brought[what] for what in FORMS[name].brought} == FORMS[name].brought


@pytest.mark.parametrize("form", ["list.cdxj", "list.cdxj.gz", "eleven.cdx"])
def test_an_index_from_standard_input_leads_to_the_files_that_it_names(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "warcs").mkdir()
    (tmp_path / "warcs" / "a.warc.gz").write_bytes(answer(1))
    place = {"url": PAGE, "filename": "a.warc.gz", "offset": "0", "length": str(len(answer(1)))}
    line = f"org,example)/page 20240301120000 {json.dumps(place)}\n"
    if form == "eleven.cdx":
        fields = f"org,example)/page 20240301120000 {PAGE} text/html 200 - - - {len(answer(1))} 0 a.warc.gz\n"
        line = f" CDX N b a m s k r M S V g\n{fields}"
    data = gzip.compress(line.encode()) if form.endswith("gz") else line.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    words = ["import", "-", "--base", str(tmp_path / "warcs")]
    assert main(["--archive", str(tmp_path / "a"), *words]) == 0
    with Archive(tmp_path / "a") as archive:
        assert archive.get(PAGE).body == b"<p>page 1"


@pytest.mark.parametrize("name", PACKED)
def test_a_form_may_be_packed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = FORMS[name]._replace(data=gzip.compress(FORMS[name].data))
    brought = from_standard_input(tmp_path, form, monkeypatch)
    assert {what: brought[what] for what in form.brought} == form.brought
