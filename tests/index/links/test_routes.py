"""The routes of maps, broken links and ranks, over a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import uvicorn
from fastapi import FastAPI

from letopis import Archive
from letopis.api.door import operation_routes
from letopis.api.requests import install_problems
from letopis.model import Observation, Outcome, Response
from letopis.operations.operation import operations_in

START = datetime(2026, 1, 1, tzinfo=UTC)
Get = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def get(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Get]:
    with Archive(tmp_path_factory.mktemp("routes") / "a", clock=lambda: START) as archive:
        fill(archive)
        app = FastAPI()
        app.state.archive = archive
        install_problems(app)
        app.router.routes += operation_routes("", operations_in("links").values())
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run)
        thread.start()
        deadline = monotonic() + 300
        while not server.started and monotonic() < deadline:
            sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield lambda path, **query: fetch(f"http://127.0.0.1:{port}{path}?{urlencode(query)}")
        server.should_exit = True
        thread.join()


def fill(archive: Archive) -> None:
    archive.put("http://x.org/", b'<title>Home</title><a href="/a">A</a><a href="/gone">gone</a>', at=START)
    archive.put("http://x.org/a", b'<title>A</title><a href="/">up</a>', at=START)
    lost = Response("http://x.org/gone", "http://x.org/gone", 404, (), b"", START)
    archive.record([Observation(lost, Outcome.UNAVAILABLE)])


def fetch(address: str) -> tuple[int, str]:
    try:
        with urlopen(address) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_map_is_a_nested_object(get: Get) -> None:
    status, text = get("/map", site="x.org", at="2026-01-01T00:00:00Z")
    assert status == 200
    assert json.loads(text)["children"][0]["url"] == "http://x.org/a"
    assert "<page " in get("/map", site="x.org", format="xml")[1]


def test_broken_links_and_ranks_are_rows(get: Get) -> None:
    (row,) = json.loads(get("/broken", site="x.org")[1])["broken"]
    assert (row["target"], row["status"], row["since"]) == ("http://x.org/gone", 404, "2026-01-01T00:00:00Z")
    ranks = json.loads(get("/rank", site="http://x.org/")[1])["rank"]
    assert {row["url"] for row in ranks} == {"http://x.org/", "http://x.org/a"}
    assert json.loads(get("/rank")[1])["rank"] == ranks


def test_links_to_a_page_and_events_between_dates(get: Get) -> None:
    (row,) = json.loads(get("/links/in", url="http://x.org/a")[1])["links"]
    assert (row["source"], row["text"]) == ("http://x.org/", "A")
    events = json.loads(get("/map/diff", **{"site": "x.org", "from": "2025-01-01", "to": "2026-01-02"})[1])["events"]
    assert {(row["event"], row["url"]) for row in events} == {
        ("appeared", "http://x.org/"),
        ("appeared", "http://x.org/a"),
    }


def test_unknown_sites_and_bad_times_are_problems(get: Get) -> None:
    for path in ("/map", "/broken", "/rank"):
        assert get(path, site="nowhere.org")[0] == 404
        assert get(path, site="x.org", at="soon")[0] == 400
    assert get("/map", site="x.org", at="2020-01-01")[0] == 404
    assert get("/links/in", url="http://nowhere.org/")[0] == 404
