"""Revisits serve the body they mean, in any order, across files and addresses; what has none is told."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path

import pytest
from foreign_warc import DAY, answer, revisit
from hypothesis import given, settings
from hypothesis import strategies as st
from written_warc import export_warc

from letopis.archive import Archive
from letopis.archive.captures import load_capture, timeline_of
from letopis.cli.main import main
from letopis.exchange.imports import import_sources
from letopis.exchange.revisits import NO_BODY, digest_key
from letopis.exchange.selection import ExportSelection
from letopis.model import to_millis

URL, OTHER = "http://a.test/page", "http://b.test/copy"
A, B = b"<p>first</p>", b"<p>second</p>"


def at(day: int) -> datetime:
    return datetime(2024, 1, day, 12, tzinfo=UTC)


def taken(archive: Archive, folder: Path, *files: bytes) -> dict[str, int]:
    names = [folder / f"{number}.warc" for number in range(len(files))]
    for name, data in zip(names, files, strict=True):
        name.write_bytes(data)
    return dict(import_sources(archive, names).refused)


def served(archive: Archive, url: str, day: int) -> tuple[int, bytes]:
    capture = timeline_of(archive, url).closest(to_millis(at(day)))
    assert capture is not None
    assert capture.time == to_millis(at(day))
    response = load_capture(archive, capture)
    return response.status, response.body


def test_a_revisit_serves_the_body_it_refers_to(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        assert taken(archive, tmp_path, answer(URL, 1, A) + answer(URL, 2, B) + revisit(URL, 3, A)) == {}
        assert [served(archive, URL, day) for day in (1, 2, 3)] == [(200, A), (200, B), (200, A)]
        assert archive.get(URL).body == A
        assert list(archive.verify()) == []


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("together", [True, False])
def test_revisits_and_originals_come_in_any_order(tmp_path: Path, order: tuple[int, ...], together: bool) -> None:
    records = [answer(URL, 1, A), answer(URL, 2, B), revisit(URL, 3, A)]
    files = [records[number] for number in order]
    with Archive(tmp_path / "a") as archive:
        assert taken(archive, tmp_path, *([b"".join(files)] if together else files)) == {}
        assert [served(archive, URL, day) for day in (1, 2, 3)] == [(200, A), (200, B), (200, A)]


def test_a_revisit_of_another_address_finds_its_body(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        assert taken(archive, tmp_path, answer(URL, 1, A) + revisit(OTHER, 2, A)) == {}
        assert archive.get(OTHER).body == A


def test_a_revisit_that_came_in_an_earlier_import_is_completed(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        assert taken(archive, tmp_path, revisit(OTHER, 2, A)) == {NO_BODY: 1}
        assert taken(archive, tmp_path, revisit(OTHER, 2, A)) == {}
        assert taken(archive, tmp_path, answer(URL, 1, A)) == {}
        assert served(archive, OTHER, 2) == (200, A)
        report = import_sources(archive, [tmp_path / "0.warc"])
        assert (report.checks, report.waiting) == (0, 0)


def test_a_revisit_that_waits_is_no_other_version(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        assert taken(archive, tmp_path, answer(URL, 1, B) + revisit(URL, 2, A)) == {NO_BODY: 1}
        assert [check.checked_at for check in archive.history(URL)] == [at(1)]
        out = io.BytesIO()
        export_warc(archive, out, ExportSelection(), "none")
        assert revisit(URL, 2, A) in out.getvalue()


def test_a_revisit_of_an_error_keeps_status_and_body(tmp_path: Path) -> None:
    missing = b"<h1>not here</h1>" * 9000
    with Archive(tmp_path / "a") as archive:
        original = answer(URL, 1, missing, "404 Not Found")
        assert taken(archive, tmp_path, original + revisit(URL, 2, missing, "404 Not Found")) == {}
        assert [served(archive, URL, day) for day in (1, 2)] == [(404, missing)] * 2
        assert archive.history(URL)[1].status == 404


def test_a_revisit_without_a_head_has_that_of_its_original(tmp_path: Path) -> None:
    refers = (("WARC-Refers-To-Target-URI", URL), ("WARC-Refers-To-Date", DAY.format(1)))
    with Archive(tmp_path / "a") as archive:
        original = answer(URL, 1, A, "404 Not Found")
        assert taken(archive, tmp_path, original + revisit(URL, 2, A, "", *refers, head=False)) == {}
        assert served(archive, URL, 2) == (404, A)


def test_a_revisit_with_a_digest_of_another_kind_goes_by_address_and_date(tmp_path: Path) -> None:
    refers = (("WARC-Refers-To-Target-URI", URL), ("WARC-Refers-To-Date", DAY.format(1)))
    other = revisit(OTHER, 3, A, "200 OK", *refers).replace(b"WARC-Payload-Digest: sha1:", b"WARC-Payload-Digest: x:")
    with Archive(tmp_path / "a") as archive:
        assert taken(archive, tmp_path, answer(URL, 1, A) + answer(URL, 2, B) + other) == {}
        assert archive.get(OTHER).body == A


def test_each_check_keeps_the_headers_of_its_revisit(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        taken(archive, tmp_path, answer(URL, 1, A) + revisit(URL, 2, A) + revisit(URL, 3, A))
        assert [dict(check.headers).get("X-Day") for check in archive.history(URL)] == [None, "2", "3"]


def test_what_waits_is_told_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.warc").write_bytes(revisit(URL, 2, A))
    assert main(["--archive", str(tmp_path / "a"), "import", str(tmp_path / "x.warc")]) == 0
    said = capsys.readouterr()
    assert "1 fault" in said.out
    assert NO_BODY in said.err


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_any_history_of_revisits_is_served_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, states: list[tuple[int, bool]], dice: random.Random
) -> None:
    """Whoever writes the first sight of a payload in full and others as revisits is read as if all were in full."""
    folder = tmp_path_factory.mktemp("revisits")
    seen: set[bytes] = set()
    records = []
    for day, (number, short) in enumerate(states, 1):
        body = b"<p>state %d</p>" % number
        records.append(revisit(URL, day, body) if short and body in seen else answer(URL, day, body))
        seen.add(body)
    dice.shuffle(records)
    with Archive(folder / "a") as archive:
        assert taken(archive, folder, b"".join(records)) == {}
        assert [served(archive, URL, day)[1] for day in range(1, len(states) + 1)] == [
            b"<p>state %d</p>" % number for number, _ in states
        ]


def test_spellings_of_a_digest_are_one_key() -> None:
    spellings = ("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "SHA-1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
                 "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709", "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")  # fmt: skip
    assert len({digest_key(text) for text in spellings}) == 1
    assert digest_key("sha256:abc") == b"sha256:abc"
    assert digest_key("") == b""
