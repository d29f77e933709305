"""Capture sets go out and come in again: WARC and WACZ give the same sets and pages, HAR sets without pictures."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written_warc import export_warc

from letopis.archive import Archive
from letopis.archive.sets import CaptureSet
from letopis.exchange.har import har_pieces
from letopis.exchange.imports import import_sources
from letopis.exchange.page_export import page_har, page_parts
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz
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


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Archive]:
    """Two looks at a page, the second of which found it again; one at another page."""
    with Archive(tmp_path / "origin") as archive:
        archive.record([look(PAGE, 0, b"<p>one", PNG, "one")])
        archive.record([look(PAGE, 1, b"<p>one", PNG, "one", reused=True)])
        archive.record([look(OTHER, 2, b"", b"", "")])
        yield archive


def members_of(archive: Archive) -> list[tuple[CaptureSet, tuple[SetMember, ...]]]:
    return [(one._replace(has_screenshot=False, has_text=False), members) for one, members, _, _ in sets_of(archive)]


def test_a_har_brings_sets_with_their_members_and_without_pictures(captured: Archive, tmp_path: Path) -> None:
    file = to_har(captured, tmp_path)
    with Archive(tmp_path / "b") as other:
        assert dict(import_sources(other, [file]).refused) == {}
        assert members_of(other) == members_of(captured)
        assert other.get(PAGE).body == SHELL, "a HAR holds what the server sent"
        assert import_sources(other, [file]).sets == 0
        out = warc_bytes(other)
        (tmp_path / "again.warc.gz").write_bytes(out)
        with Archive(tmp_path / "c") as third:
            import_sources(third, [tmp_path / "again.warc.gz"])
            assert members_of(third) == members_of(captured), "also by way of a WARC file"
            assert warc_bytes(third) == out


def test_the_har_of_one_page_brings_its_set(captured: Archive, tmp_path: Path) -> None:
    parts = page_parts(captured, PAGE, START)
    (tmp_path / "page.har").write_bytes(b"".join(page_har(captured, parts)))
    with Archive(tmp_path / "b") as other:
        import_sources(other, [tmp_path / "page.har"])
        assert members_of(other) == members_of(captured)[:1]


def test_a_file_that_lacks_the_list_of_resources_loses_no_picture(captured: Archive, tmp_path: Path) -> None:
    out = io.BytesIO()
    export_warc(captured, out, ExportSelection(), "none")
    cut = out.getvalue()[: out.getvalue().index(b"urn:pageinfo:")]
    (tmp_path / "cut.warc").write_bytes(cut[: cut.rindex(b"WARC/1.1")])
    (tmp_path / "whole.warc").write_bytes(out.getvalue())
    with Archive(tmp_path / "b") as other:
        import_sources(other, [tmp_path / "cut.warc"])
        assert sets_of(other) == []
        assert other.get(f"{PAGE}?__wb_record=urn:view").body == PNG
        import_sources(other, [tmp_path / "whole.warc"])
        assert sets_of(other) == sets_of(captured)


def test_sets_of_an_archive_that_lacks_them_come_by_another_import(captured: Archive, tmp_path: Path) -> None:
    """An import that was stopped between the captures and their sets is repeated."""
    file = to_warc(captured, tmp_path)
    with Archive(tmp_path / "b") as other:
        import_sources(other, [file])
        with other.transaction() as (cursor, _):
            cursor.run("DELETE FROM capture_set")
        assert (import_sources(other, [file]).sets, sets_of(other)) == (3, sets_of(captured))
