"""`/api/v1/watches` on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from served_archive import Answer, WebClient, running

from letopis import Archive
from letopis.catalog.accounts import Accounts

URL = "http://example.org/"


class Client:
    """Asks with a token that may write."""

    def __init__(self, web: WebClient, token: str) -> None:
        self._web = web
        self._head = {"Authorization": f"Bearer {token}"}

    def post(self, body: object) -> Answer:
        return self._web.post("/api/v1/watches", body, **self._head)

    def get(self, path: str = "") -> Answer:
        return self._web.get("/api/v1/watches" + path)

    def delete(self, url: str) -> Answer:
        return self._web.ask("DELETE", f"/api/v1/watches?url={quote(url, '')}", **self._head)


@pytest.fixture
def client(make_archive: Callable[..., Archive]) -> Iterator[Client]:
    archive = make_archive()
    token = Accounts(archive.catalog.database).create_token("t", None, "write", 0)
    with running(archive) as web:
        yield Client(web, token)


def test_add_list_remove(client: Client) -> None:
    body = {"url": URL, "every": "1h", "tag": "t", "filters": [{"kind": "css", "expression": "main"}]}
    made = client.post(body)
    assert made.status == 201
    assert (made.json()["every"], made.json()["when"]) == (3600.0, "changed")
    assert [one["url"] for one in client.get().json()["watches"]] == [URL]
    assert client.get("?tag=other").json() == {"watches": []}
    assert client.get("/alerts").json() == {"alerts": []}
    assert client.delete(URL).json() == {"url": URL, "removed": 1}
    assert client.delete(URL).status == 404


def test_targets_are_never_shown(client: Client) -> None:
    made = client.post({"url": URL, "notify": ["https://user:secret@example.org/"]})
    assert made.json()["targets"] == 1
    assert "secret" not in client.get().text


def test_wrong_bodies(client: Client) -> None:
    cases: list[tuple[dict[str, object], int]] = [
        ({}, 422),
        ({"url": URL, "unknown": 1}, 422),
        ({"url": URL, "filters": [{"kind": "x", "expression": "y"}]}, 422),
        ({"url": "ftp://example.org/"}, 422),
        ({"url": URL, "cron": "x"}, 422),
        ({"url": URL, "every": "x"}, 422),
        ({"url": URL, "every": "1000000y"}, 422),
        ({"url": URL, "when": "x"}, 422),
        ({"url": URL, "notify": ["file:/etc/passwd"]}, 403),
        ({"url": "http://127.0.0.1/"}, 403),
    ]
    assert [client.post(body).status for body, _ in cases] == [status for _, status in cases]
