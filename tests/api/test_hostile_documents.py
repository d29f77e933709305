"""Documents made to keep a service busy: each is bounded, told once, and never keeps others from being served."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from served_archive import Answer, WebClient, running

from letopis import bounded
from letopis.api import middleware
from letopis.archive import Archive

START = datetime(2024, 1, 1, tzinfo=UTC)
NESTED = "http://a.test/nested"
WIDE = "http://a.test/wide"
LONG = "http://a.test/long"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebClient]:
    wide = b"<p " + b" ".join(b"a%d=1" % number for number in range(100_000)) + b">"
    sheet = b"<!doctype html><img srcset='" + b" " * 400_000 + b"'><a href=x>"
    folder = tmp_path_factory.mktemp("hostile") / "archive"
    with pytest.MonkeyPatch.context() as patched, Archive(folder, clock=lambda: START + timedelta(days=9)) as archive:
        patched.setattr(middleware, "DOCUMENT_SECONDS", 1.0)
        patched.setattr(bounded, "_workers", bounded.BoundedWorkers())
        for day, more in enumerate((b"", b"<p>more")):
            at = START + timedelta(days=day)
            for url, body in ((NESTED, b"<div>" * 400_000), (WIDE, wide), (LONG, sheet)):
                archive.put(url, body + more, at=at, content_type="text/html; charset=utf-8")
        with running(archive) as client:
            yield client
        bounded._workers.close()


def test_many_requests_for_a_nested_page_start_few_helpers_and_others_are_served(hostile: WebClient) -> None:
    asked = [f"/compare/{NESTED}", f"/feed/{NESTED}", f"/compare/{NESTED}?view=frame"] * 10
    with ThreadPoolExecutor(len(asked)) as threads:
        waiting = [threads.submit(hostile.get, path) for path in asked]
        others = [hostile.get("/healthz"), hostile.get(f"/web/2024id_/{LONG}")]
        answers = [one.result() for one in waiting]
    assert {one.status for one in answers} <= {200, 503}
    assert [one.status for one in others] == [200, 302]
    # One for each version that is read and one for each pair that is drawn, never one for each request.
    assert bounded._workers.started <= 5
    settled = hostile.get(f"/compare/{NESTED}")
    assert (settled.status, bounded._workers.started) == (200, bounded._workers.started)


@pytest.mark.parametrize("url", [NESTED, WIDE])
def test_what_cannot_be_drawn_is_said(hostile: WebClient, url: str) -> None:
    drawn = hostile.get(f"/compare/{url}?view=frame")
    assert drawn.status == 200
    assert "cannot be drawn inside this page: it took longer than 1 s" in drawn.text


def test_a_long_page_is_rewritten_off_the_loop(hostile: WebClient) -> None:
    shown: Answer = hostile.get(f"/web/20240102000000if_/{LONG}")
    assert shown.status == 200
    assert b"/web/20240102000000/http://a.test/x" in shown.body


@pytest.mark.parametrize("pattern", ["(%3F:" * 30 + "a%3F" + ")%7B9%7D" * 30, "(a|aa|a%3Fa%3F)%2B$(%3F%3C=x)"])
def test_a_filter_of_a_cdx_question_cannot_stall_the_service(hostile: WebClient, pattern: str) -> None:
    for query in (
        f"/cdx/search/cdx?url=a.test/*&%66ilter=original:{pattern}",
        f"/web/cdx?url=a.test/*&filter=~url:{pattern}",
    ):
        assert hostile.get(query).status in (200, 400)
    assert hostile.get("/healthz").status == 200
