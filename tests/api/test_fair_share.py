"""Questions that take long: a few at a time, fewer of one network, and everybody else is answered meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from served_archive import PAGE, WebClient, fill, running
from starlette.types import Message, Receive, Scope, Send

from letopis.api import door
from letopis.api.middleware import FairShare
from letopis.archive import Archive
from letopis.config import ServeSettings, Settings


class LongWork:
    """Answers begin when they are let; `begun` counts who is worked for, by address."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.let = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun[scope["client"][0]] += 1
        await self.let.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait() if scope["path"] == "/api/v1/export" else None


class Client:
    """Somebody who asks, and may leave."""

    def __init__(self, address: str, path: str = "/api/v1/map", method: str = "GET") -> None:
        self.scope = {"type": "http", "client": (address, 1), "path": path, "method": method}
        self.heard: list[Message] = []
        self.left = asyncio.Event()
        self._asked = False

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.heard.append(message)

    def ask(self, app: FairShare) -> asyncio.Task[None]:
        return asyncio.create_task(app(self.scope, self.receive, self.send))


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_one_network_has_a_few_turns_and_all_together_fewer_than_there_are_threads() -> None:
    work = LongWork()
    app = FairShare(work)
    clients = [Client(f"192.0.2.{number % 6}") for number in range(120)]
    asked = [client.ask(app) for client in clients]
    await settled()
    assert sum(work.begun.values()) == app.most < 40
    assert max(work.begun.values()) <= app.of_one_network
    work.let.set()
    await asyncio.gather(*asked)
    assert all(client.heard for client in clients)


@pytest.mark.parametrize("path", ["/healthz", "/web/2024id_/http://a.test/", "/login", "/static/letopis.css"])
async def test_replay_health_and_signing_in_never_wait(path: str) -> None:
    work = LongWork()
    app = FairShare(work)
    asked = [Client("192.0.2.1").ask(app) for _ in range(100)]
    await settled()
    other = Client("192.0.2.1", path)
    asked.append(other.ask(app))
    await settled()
    assert work.begun["192.0.2.1"] == app.of_one_network + 1
    work.let.set()
    await asyncio.gather(*asked)


async def test_whoever_left_while_waiting_is_not_answered() -> None:
    work = LongWork()
    app = FairShare(work)
    clients = [Client("192.0.2.1") for _ in range(20)]
    asked = [client.ask(app) for client in clients]
    await settled()
    for client in clients:
        client.left.set()
    work.let.set()
    await asyncio.gather(*asked)
    assert work.begun["192.0.2.1"] == app.of_one_network


async def test_a_download_that_is_read_slowly_takes_nobodys_turn() -> None:
    work = LongWork()
    app = FairShare(work)
    work.let.set()
    downloads = [Client("192.0.2.1", "/api/v1/export").ask(app) for _ in range(30)]
    await settled()
    assert work.begun["192.0.2.1"] == 30
    for one in downloads:
        one.cancel()


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebClient]:
    monkeypatch.setattr(door, "STRANGER_SECONDS", -1.0)
    settings = Settings(serve=ServeSettings(public=True))
    with Archive(tmp_path / "archive", settings=settings, clock=lambda: datetime(2025, 1, 1, tzinfo=UTC)) as archive:
        fill(archive)
        with running(archive) as web:
            yield web


def test_what_a_stranger_asks_of_a_public_archive_is_stopped_when_it_takes_too_long(public: WebClient) -> None:
    for path in (f"/api/v1/origin?url={PAGE}", "/api/v1/search?q=page", "/api/v1/map?site=example.org"):
        answer = public.get(path)
        assert (answer.status, answer.json()["title"]) == (413, "TooCostly"), path
    assert public.get(f"/api/v1/versions?url={PAGE}").status == 200
