"""The doors to questions about words, without a server: the verb, the route, the web page, the step of a job."""

from __future__ import annotations

import asyncio
import json
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from lxml import etree

from letopis import Archive
from letopis.api.app import create_app
from letopis.archive.jobs import Requester
from letopis.cli.main import main
from letopis.jobs.execution import JobContext
from letopis.jobs.language.interpreter import run_query
from letopis.model.rights import OWN, READ, WRITE
from letopis.operations.job_files import parse_job_file


@dataclass
class HttpAnswer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def http(archive: Archive, path: str, query: dict[str, Any] | None = None, body: Any = None) -> HttpAnswer:
    """One request to the application, a POST where there is a body."""
    sent: list[dict[str, Any]] = []
    data = b"" if body is None else json.dumps(body).encode()
    scope = {
        "type": "http", "method": "GET" if body is None else "POST", "path": path, "raw_path": path.encode(),
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "query_string": urlencode(query or {}, doseq=True).encode(), "http_version": "1.1", "scheme": "http",
        "server": ("localhost", 80), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    asyncio.run(create_app(archive)(scope, receive, send))
    whole = b"".join(message.get("body", b"") for message in sent)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return HttpAnswer(sent[0]["status"], headers, whole)


def verb(folder: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit status of a verb and its rows."""
    out = StringIO()
    with redirect_stdout(out):
        status = main([*words, "--json", "--archive", str(folder)])
    return status, [json.loads(line) for line in out.getvalue().splitlines()]


@dataclass
class QuietProgress:
    """The progress of a job; stopped where a test wants that."""

    stopped: bool = False
    steps: list[str] = field(default_factory=list)

    def step(self, number: int, of: int, what: str) -> None:
        self.steps.append(what)

    def share(self, done: float, figures: str = "") -> None: ...

    def log(self, line: str) -> None: ...

    def cancelled(self) -> bool:
        return self.stopped


def job(archive: Archive, step: str, rights: int = READ | WRITE | OWN) -> etree._Element:
    """The element that a step answers with."""
    query = parse_job_file(f"<query>{step}</query>".encode(), archive.settings)
    context = JobContext(
        archive, archive.settings, QuietProgress(), Requester("tester", rights, "cli"), True, None, archive.clock
    )
    return etree.fromstring(run_query(query, context))
