"""Assistants ask the archive by the Model Context Protocol: the official client, over standard streams and HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from contract_doors import directly
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult
from served_archive import PAGE, STYLE, WebClient, at, fill, running

from letopis.api import mcp as door
from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.cli.main import main
from letopis.config import ServeSettings, Settings
from letopis.model.rights import READ, WRITE
from letopis.operations import Context
from letopis.operations.operation import all_operations

Work = Callable[[Client], Awaitable[Any]]
HOST = "example.org"


def over_streams(folder: Path, work: Work, *words: str) -> Any:
    """What the official client does with `letopis mcp` as its child."""
    words = ("-m", "letopis.cli", "--archive", str(folder), "mcp", *words)
    server = StdioServerParameters(command=sys.executable, args=list(words), env=dict(os.environ))

    async def talk() -> Any:
        async with Client(stdio_client(server)) as client:
            return await work(client)

    return asyncio.run(talk())


def over_http(web: WebClient, token: str, work: Work) -> Any:
    """What the official client does at `/mcp` with a token."""

    async def talk() -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=300) as http,
            Client(streamable_http_client(f"{web.address}/mcp", http_client=http)) as client,
        ):
            return await work(client)

    return asyncio.run(talk())


def text_of(result: CallToolResult) -> str:
    """The answer; what follows it are remarks."""
    return result.content[0].text


async def story(client: Client) -> dict[str, Any]:
    """Reads the archive as an assistant does: look around, read a page as of a date, see what changed."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    page = await client.call_tool("get", {"url": PAGE, "at": "2024-01-01T12:05:00Z"})
    difference = await client.call_tool("diff", {"url": PAGE})
    history = await client.call_tool("history", {"url": PAGE})
    found = await client.call_tool("search", {"q": "version"})
    broken = await client.call_tool("broken", {"site": HOST})
    map_of_site = await client.call_tool("map", {"site": HOST})
    unknown = await client.call_tool("get", {"url": "http://nosuch.example/"})
    return {
        "tools": tools, "page": text_of(page), "diff": text_of(difference), "map": text_of(map_of_site),
        "history": history.structured_content, "search": found.structured_content,
        "broken": broken.structured_content, "unknown": unknown,
    }  # fmt: skip


def judge(told: dict[str, Any]) -> None:
    assert "version 1" in told["page"]
    assert "-version 1" in told["diff"]
    assert len(told["history"]["history"]) == 6
    assert {row["url"] for row in told["search"]["results"]} >= {PAGE}
    assert "http://example.org/lost" in told["map"]
    assert told["broken"]["site"] == HOST
    assert told["unknown"].is_error
    assert "; try 'letopis check http://nosuch.example/'" in text_of(told["unknown"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mcp") / "archive"
    with Archive(place, clock=lambda: at(100)) as archive:
        fill(archive)
    return place


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Archive, WebClient]]:
    settings = Settings(serve=ServeSettings(public=False))
    with Archive(tmp_path_factory.mktemp("mcp-http") / "archive", settings=settings, clock=lambda: at(100)) as archive:
        fill(archive)
        accounts_of(archive).add("ann", "user", None, 0)
        with running(archive) as web:
            yield archive, web


def token(archive: Archive, scope: str) -> str:
    accounts = accounts_of(archive)
    return accounts.create_token(scope, accounts.user("ann"), scope, 0)


def test_an_assistant_reads_the_archive_over_standard_streams(folder: Path) -> None:
    told = over_streams(folder, story)
    judge(told)
    assert "watch_add" not in told["tools"]


def test_an_assistant_reads_the_archive_over_http_with_a_token(served: tuple[Archive, WebClient]) -> None:
    archive, web = served
    told = over_http(web, token(archive, "read"), story)
    judge(told)
    assert "watch_add" not in told["tools"]


def test_a_token_that_may_write_lets_an_assistant_watch_a_page(served: tuple[Archive, WebClient]) -> None:
    archive, web = served

    async def watch(client: Client) -> tuple[CallToolResult, CallToolResult]:
        added = await client.call_tool("watch_add", {"url": ["http://example.org/page"], "every": "1h"})
        return added, await client.call_tool("watch_list", {})

    added, listed = over_http(web, token(archive, "write"), watch)
    assert not added.is_error, text_of(added)
    assert [row["url"] for row in listed.structured_content["watches"]] == [PAGE]


def test_nobody_comes_in_over_http_without_a_token(served: tuple[Archive, WebClient]) -> None:
    _, web = served
    assert web.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status == 401
    with pytest.raises((MCPError, BaseExceptionGroup)):
        over_http(web, "wrong", story)


def test_a_stream_on_which_nothing_would_ever_come_is_not_opened(served: tuple[Archive, WebClient]) -> None:
    archive, web = served
    accounts = accounts_of(archive)
    bearer = f"Bearer {accounts.create_token('stream', accounts.user('ann'), 'read', 0)}"
    assert web.get("/mcp", Accept="text/event-stream", Authorization=bearer).status == 405


def test_rights_that_were_not_given_are_refused_with_a_sentence(folder: Path) -> None:
    with Archive(folder) as archive:
        refused = door.call_tool(door.local_context(archive, write=False), "watch_add", {"url": [PAGE]})
    assert refused.is_error
    assert "letopis mcp --write" in text_of(refused)


def test_only_what_the_owner_allowed_is_fetched_for_an_assistant(folder: Path) -> None:
    with Archive(folder) as archive:
        refused = door.call_tool(door.local_context(archive, write=True), "check", {"url": ["http://127.0.0.1:9/"]})
    assert refused.is_error
    assert "private network" in text_of(refused)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("search", {"q": "version", "limit": 0}),
        ("search", {"q": "version", "colour": "red"}),
        ("users", {}),
        ("get", {"url": STYLE, "at": "no time"}),
    ],
)
def test_bad_questions_are_answered_with_what_is_wrong(folder: Path, name: str, given: dict[str, Any]) -> None:
    with Archive(folder) as archive:
        result = door.call_tool(door.local_context(archive, write=False), name, given)
    assert result.is_error
    assert text_of(result).startswith("UsageError: ")


def test_tools_say_what_the_operations_say(folder: Path) -> None:
    """The names, words, schemas and rows of a tool are those of its operation."""
    asked = {
        "history": {"url": PAGE}, "versions": {"url": PAGE}, "links": {"url": HOST}, "broken": {"site": HOST},
        "when": {"phrase": "version"}, "search": {"q": "version"}, "watch_list": {},
    }  # fmt: skip
    with Archive(folder, clock=lambda: at(100)) as archive:
        context = Context(archive, rights=READ | WRITE, form="json")
        for name, given in asked.items():
            operation = all_operations()[name]
            tool = door.tool_of(operation)
            assert (tool.name, tool.description) == (name, operation.help)
            assert set(tool.input_schema["properties"]) == {one.alias for one in operation.parameters_in("http")}
            found = door.call_tool(context, name, given).structured_content
            rows = found.get(operation.listed, [found])
            assert rows == directly(operation, archive, given).rows


def test_an_assistant_is_told_that_no_version_is_as_old_as_it_asked(folder: Path) -> None:
    async def ask(client: Client) -> list[str]:
        return [part.text for part in (await client.call_tool("get", {"url": PAGE, "at": "2001"})).content]

    page, remark = over_streams(folder, ask)
    assert "<" in page
    assert remark.startswith("no version is as old as 2001-12-31T23:59:59.999Z; this is the first, of 2024-01-01")


def test_answers_have_a_length_that_can_be_read(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        archive.put("http://example.org/long", b"<p>" + b"word " * 60_000)
        archive.put("http://example.org/picture", b"\x89PNG\r\n\x1a\n" + bytes(100), content_type="image/png")
        context = door.local_context(archive, write=False)
        text = text_of(door.call_tool(context, "get", {"url": "http://example.org/long"}))
        picture = door.call_tool(context, "get", {"url": "http://example.org/picture"})
    assert len(text) < door.LONGEST_ANSWER + 100
    assert text.endswith("characters are shown]")
    assert "image/png, not text" in text_of(picture)


def test_rows_that_do_not_fit_are_left_out_and_said_to_be(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(door, "LONGEST_ANSWER", 500)
    with Archive(folder) as archive:
        found = door.call_tool(door.local_context(archive, write=False), "history", {"url": PAGE}).structured_content
    assert 0 < len(found["history"]) < 6
    assert found["truncated"].startswith(f"only the first {len(found['history'])} rows")


def test_a_question_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(door, "MOST_SECONDS", -1.0)
    with Archive(folder) as archive:
        stopped = door.call_tool(door.local_context(archive, write=False), "map", {"site": HOST})
    assert stopped.is_error
    assert text_of(stopped).startswith("TooCostly: ")


def test_a_public_archive_can_be_asked_by_anybody(tmp_path: Path) -> None:
    settings = Settings(serve=ServeSettings(public=True))
    with Archive(tmp_path / "archive", settings=settings, clock=lambda: at(100)) as archive:
        fill(archive)
        with running(archive) as web:
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            accept = "application/json, text/event-stream"
            answer = web.post("/mcp", asked, Accept=accept, MCP_Protocol_Version="2025-06-18")
    assert {tool["name"] for tool in answer.json()["result"]["tools"]} >= {"search", "get", "diff", "map", "broken"}


def test_rights_over_http_are_those_of_a_token(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["--archive", str(folder), "mcp", "--http", "--write"]) == 2
    assert "leave out --write" in capsys.readouterr().err
