"""Clients that are slow or many: they are let go, and everybody else is served meanwhile."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from served_archive import PAGE, WebClient, fill

from letopis.api.connections import ConnectionPool, ConnectionTimeouts
from letopis.api.server import Server, listen
from letopis.archive import Archive

BRIEF = ConnectionTimeouts(header=1.0, piece=1.0, body=2.0)
"""Long enough for an honest client on a busy machine."""


@contextmanager
def serving(archive: Archive, connections: ConnectionPool) -> Iterator[WebClient]:
    server, ready = Server(archive, listen("127.0.0.1", 0), connections=connections), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.run(ready.set)), daemon=True)
    thread.start()
    assert ready.wait(300)
    try:
        yield WebClient(server.address)
    finally:
        server.stop()
        thread.join(300)


@pytest.fixture
def archive(make_archive: object) -> Archive:
    made = make_archive()  # type: ignore[operator]
    fill(made)
    assert isinstance(made, Archive)
    return made


def connected(web: WebClient, begun: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
    host, _, port = web.netloc.partition(":")
    line = socket.create_connection((host, int(port)), timeout=300, source_address=(address, 0))
    line.sendall(begun)
    return line


def is_closed(line: socket.socket) -> bool:
    """Waits until the server says something or hangs up."""
    try:
        return line.recv(65536) == b""
    except ConnectionResetError:
        return True


BEGUN = {
    "silent": b"",
    "half a header": b"GET / HTTP/1.1\r\nHost: local",
    "no body": b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nname=",
}


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
def test_a_request_that_does_not_go_on_is_let_go(archive: Archive, begun: bytes) -> None:
    with serving(archive, ConnectionPool(100, BRIEF)) as web, connected(web, begun) as line:
        assert is_closed(line)
        assert web.get("/healthz").status == 200


def test_a_header_that_drips_is_let_go_in_the_same_time(archive: Archive) -> None:
    with serving(archive, ConnectionPool(100, BRIEF)) as web, connected(web, b"GET / HTTP/1.1\r\n") as line:
        line.settimeout(0.02)
        assert any(map(hangs_up_at, [line] * 2000))


def hangs_up_at(line: socket.socket) -> bool:
    """Whether the server has hung up on a client that goes on sending, and reads nothing of what it is told."""
    try:
        line.sendall(b"X")
        return bool(select.select([], [], [line], 0.02)[2]) or not line.getpeername()
    except OSError:
        return True


def test_a_client_that_never_reads_is_let_go(archive: Archive) -> None:
    archive.put("http://example.org/large", bytes(8_000_000), content_type="application/octet-stream")
    asked = b"GET /api/v1/content?url=http://example.org/large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(archive, ConnectionPool(100, BRIEF)) as web, connected(web, asked) as line:
        assert any(map(hangs_up_at, [line] * 2000))
        assert web.get("/healthz").status == 200


def test_when_connections_run_out_those_who_ask_for_nothing_make_room(archive: Archive) -> None:
    with serving(archive, ConnectionPool(40)) as web, ExitStack() as stack:
        idle = [stack.enter_context(connected(web, b"GET / HTTP/1.1\r\n")) for _ in range(120)]
        for path in ("/healthz", f"/api/v1/versions?url={PAGE}", "/login"):
            assert web.get(path).status == 200
        assert all(map(is_closed, idle[:80]))


_POST = b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "one field": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Field: ", b"a" * 50_000),
    "many fields": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-Field: a\r\n" * 5_000),
    "the address": (b"GET /", b"a" * 50_000),
    "fields after the body": (_POST + b"1\r\na\r\n0\r\n", b"X-Field: a\r\n" * 5_000),
    "one field after the body": (_POST + b"0\r\nX-Field: ", b"a" * 50_000),
}


@pytest.mark.parametrize(("begun", "more"), ENDLESS.values(), ids=ENDLESS)
def test_a_header_without_end_is_not_kept_in_memory(archive: Archive, begun: bytes, more: bytes) -> None:
    """The clock alone does not bound it: a fast client sends gigabytes in the seconds that a header may take."""
    with serving(archive, ConnectionPool(100)) as web, connected(web, begun) as line:
        with suppress(ConnectionError):
            for _ in range(400):
                line.sendall(more)
            pytest.fail("20 MB of it were taken")
        assert web.get("/healthz").status == 200


def test_a_header_that_is_too_long_is_told(archive: Archive) -> None:
    with serving(archive, ConnectionPool(100)) as web:
        for size, status in ((60_000, b"200"), (70_000, b"431")):
            with connected(web, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Field: " + b"a" * size) as line:
                if status == b"200":
                    line.sendall(b"\r\n\r\n")
                assert line.recv(100).startswith(b"HTTP/1.1 " + status)


_SERVE = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
sys.argv = ["letopis", "--archive", sys.argv[1], "serve", "--port", "0"]
runpy.run_module("letopis.cli", run_name="__main__")
"""


def test_eleven_hundred_slow_connections_keep_nobody_from_being_served(archive: Archive) -> None:
    """A process with 1,024 descriptors, and more clients than that which never end their headers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    words = [sys.executable, "-c", _SERVE, str(archive.folder)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        web = WebClient(server.stdout.readline().rpartition(" ")[2].strip())
        with ExitStack() as stack:
            for number in range(1100):
                address = "127.0.0.1" if number % 2 else "127.0.0.3"
                stack.enter_context(connected(web, b"GET / HTTP/1.1\r\nHost: local", address))
            for path in ("/healthz", f"/api/v1/versions?url={PAGE}", "/login", "/healthz"):
                assert web.get(path).status == 200
            assert len(os.listdir(f"/proc/{server.pid}/fd")) < 1024
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        server.kill()
        server.communicate()


def test_one_address_has_no_more_than_half(archive: Archive) -> None:
    begun = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    with serving(archive, ConnectionPool(8)) as web, ExitStack() as stack:
        for _ in range(4):
            line = stack.enter_context(connected(web, begun, "127.0.0.2"))
            assert line.recv(100).startswith(b"HTTP/1.1 100 "), "it is at work"
        with connected(web, b"", "127.0.0.2") as further:
            assert is_closed(further), "there is nobody of its own to let go"
        assert web.get("/healthz").status == 200


def test_requests_one_after_the_other_on_one_connection_are_answered(archive: Archive) -> None:
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(archive, ConnectionPool(4)) as web, connected(web) as line:
        for number in (1, 1, 2):  # the last two at once
            line.sendall(number * asked)
            heard = b""
            while heard.count(b'"ok"}') < number:
                piece = line.recv(65536)
                assert piece, "the connection stays open"
                heard += piece
            assert heard.count(b"HTTP/1.1 200 OK\r\n") == number
