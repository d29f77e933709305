"""Capture sets go out and come in again: WARC and WACZ give the same sets and pages, HAR sets without pictures."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from letopis.archive import Archive
from letopis.archive.sets import CaptureSet
from letopis.exchange.har import har_pieces
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz
from letopis.exchange.warc_export import export_warc
from letopis.model import Observation, Outcome, Response, SentRequest, SetMember, WholePage

PAGE, OTHER, STYLE = "http://example.org/", "http://example.org/other", "http://example.org/style.css"
POSTED = "http://example.org/search?__wb_method=POST&q=brno"
START = datetime(2026, 1, 1, tzinfo=UTC)
SHELL = b"<!doctype html><title>Shell</title><div id=app></div>"
ASKED = SentRequest("GET", (("User-Agent", "Letopis"), ("Accept", "*/*")), "1.1", "192.0.2.1")


def answered(url: str, body: bytes, at: datetime, kind: str = "text/html") -> Response:
    return Response(url, url, 200, (("Content-Type", kind), ("X-Sent", "yes")), body, at, request=ASKED)


def look(url: str, minute: int, shown: bytes, picture: bytes, text: str, *, reused: bool = False) -> Observation:
    """A page that a browser made of a shell, with a style, and what its script asked for twice."""
    at = START + timedelta(minutes=minute)
    sent = answered(url, SHELL, at)
    parts = [answered(STYLE, b"p {}", at + timedelta(milliseconds=30), "text/css")]
    parts += [answered(POSTED, b'{"count": %d}' % n, at + timedelta(milliseconds=40 + n)) for n in (1, 2)]
    members = tuple(Observation(one, Outcome.CHANGED) for one in parts)
    earlier = (SetMember(STYLE, START + timedelta(milliseconds=30)),) if reused else ()
    page = sent
    if shown:
        kept = (("Content-Type", "text/html; charset=utf-8"), ("X-Sent", "yes"))
        page = sent._replace(headers=kept, body=shown, as_sent=sent)
    return Observation(page, Outcome.CHANGED, whole=WholePage(members, earlier, picture, text))


Fact = tuple[CaptureSet, tuple[SetMember, ...], bytes, str]


def sets_of(archive: Archive, urls: tuple[str, ...] = (PAGE, OTHER)) -> list[Fact]:
    found = []
    for one in (one for url in urls for one in archive.sets.of(url)):
        picture = archive.sets.screenshot(one) if one.has_screenshot else b""
        text = archive.sets.text(one) if one.has_text else ""
        found.append((one, archive.sets.members(one), picture, text))
    return found


def pages_of(archive: Archive) -> list[Any]:
    """Everything that is known of pages and resources: checks, what was shown, what was sent."""
    found: list[Any] = []
    for url in sorted(row.url for row in archive.catalog.resources.all()):
        found.append([check._replace(length=0) for check in archive.history(url)])
        for version in archive.versions(url):
            whole = archive.get(url, version=version.number)
            sent = archive.as_sent(whole)
            found.append((whole.body, whole.headers, sent.body, sent.headers, whole.time))
    return found


def warc_bytes(archive: Archive) -> bytes:
    out = io.BytesIO()
    export_warc(archive, out, ExportSelection())
    return out.getvalue()


def to_warc(archive: Archive, folder: Path) -> Path:
    (folder / "out.warc.gz").write_bytes(warc_bytes(archive))
    return folder / "out.warc.gz"


def to_wacz(archive: Archive, folder: Path) -> Path:
    export_wacz(archive, folder / "out.wacz", ExportSelection())
    return folder / "out.wacz"


def to_har(archive: Archive, folder: Path) -> Path:
    (folder / "out.har").write_bytes(b"".join(har_pieces(archive, ExportSelection(), lambda done: None)))
    return folder / "out.har"


PNG, WEBP = b"\x89PNG picture", b"RIFF....WEBPpicture"
looks = st.builds(
    look,
    st.sampled_from([PAGE, OTHER]),
    st.integers(0, 5),
    st.sampled_from([b"", b"<p>one", b"<p>two"]),
    st.sampled_from([b"", PNG, WEBP]),
    st.sampled_from(["", "Text as shown: č \x85 one"]),
    reused=st.booleans(),
)


@pytest.mark.parametrize("written", [to_warc, to_wacz])
@given(captured=st.lists(looks, min_size=1, max_size=5))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sets_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, written: Callable[[Archive, Path], Path], captured: list[Observation]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    with Archive(folder / "a") as origin, Archive(folder / "b") as other:
        for one in captured:
            origin.record([one])
        file = written(origin, folder)
        report = import_sources(other, [file])
        assert dict(report.refused) == {}
        assert sets_of(other) == sets_of(origin)
        assert report.sets == len(sets_of(origin))
        assert pages_of(other) == pages_of(origin)
        assert warc_bytes(other) == warc_bytes(origin)
        again = import_sources(other, [file])
        assert (again.checks, again.sets, dict(again.refused)) == (0, 0, {})
        assert sets_of(other) == sets_of(origin)
        assert list(other.verify()) == []
