"""The server of the simulated web over real sockets."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from letopis.errors import NotReady
from letopis_demo import LOG_FIELDS, DemoServer, SimulatedClock, World, running

WORLD = World(seed=2, hosts=7, pages_per_host=40)
NOON = WORLD.start + timedelta(hours=4)


def ask(authority: str, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(authority, timeout=300)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def raw(authority: str, data: bytes) -> bytes:
    host, _, port = authority.partition(":")
    with socket.create_connection((host, int(port)), timeout=300) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        parts = []
        while part := sock.recv(65536):
            parts.append(part)
    return b"".join(parts)


def test_each_host_has_its_own_address_on_one_port() -> None:
    with running(DemoServer(WORLD, lambda: NOON)) as server:
        ports = {name.partition(":")[2] for name in server.world.hosts}
        assert len(ports) == 1
        assert [name.partition(":")[0] for name in server.world.hosts] == [f"127.0.0.{2 + k}" for k in range(7)]
        for host in server.world.hosts:
            status, headers, body = ask(host, "/")
            assert status == 200
            assert body == server.world.body(f"http://{host}/", NOON)
            assert int(headers["Content-Length"]) == len(body)
            assert headers["Date"] == "Mon, 05 Jan 2026 12:00:00 GMT"


def test_ports_and_names_tell_hosts_apart_too() -> None:
    with running(DemoServer(WORLD, lambda: NOON, addresses="ports")) as server:
        bodies = {ask(host, "/")[2] for host in server.world.hosts[:6]}
        assert len(bodies) == 6
    with running(DemoServer(WORLD, lambda: NOON, addresses="names")) as server:
        for host in WORLD.hosts:
            assert ask(server.address, "/", Host=host)[2] == WORLD.body(f"http://{host}/", NOON)
        assert ask(server.address, "/", Host="elsewhere.example")[0] == 421


def test_conditional_requests_and_redirects_go_over_the_wire() -> None:
    with running(DemoServer(WORLD, lambda: NOON)) as server:
        host = server.world.hosts[0]
        _, headers, _ = ask(host, "/static/style.css")
        status, again, body = ask(host, "/static/style.css", If_None_Match=headers["ETag"])
        assert (status, body) == (304, b"")
        assert again["ETag"] == headers["ETag"]
        assert ask(host, "/r/3/2")[0] in (302, 303, 307, 308)
        assert ask(host, "/missing/1.html")[0] == 404


def test_keep_alive_pipelining_head_and_split_requests() -> None:
    with running(DemoServer(WORLD, lambda: NOON)) as server:
        host = server.world.hosts[2]
        one = f"GET /robots.txt HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        assert raw(host, one * 3).count(b"HTTP/1.1 200 OK") == 3
        head = raw(host, one.replace(b"GET", b"HEAD"))
        assert head.endswith(b"\r\n\r\n")
        assert b"Content-Length: " in head
        name, _, port = host.partition(":")
        with socket.create_connection((name, int(port)), timeout=300) as sock:
            for byte in one[:-1]:
                sock.sendall(bytes([byte]))
            sock.sendall(one[-1:])
            assert sock.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"rubbish\r\n\r\n", b"400"),
        (b"GET / SPDY/9\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, b"431"),
    ],
)
def test_bad_requests_are_refused_and_the_server_lives_on(request_bytes: bytes, status: bytes) -> None:
    with running(DemoServer(WORLD, lambda: NOON)) as server:
        host = server.world.hosts[0]
        assert raw(host, request_bytes).split(b" ")[1] == status
        assert ask(host, "/")[0] == 200


def test_the_log_proves_who_asked_when() -> None:
    log = StringIO()
    with running(DemoServer(WORLD, lambda: NOON, log=log)) as server:
        host = server.world.hosts[1]
        ask(host, "/")
        ask(host, "/nothing?a=b")
    rows = [dict(zip(LOG_FIELDS, line.split("\t"), strict=True)) for line in log.getvalue().splitlines()]
    assert [(row["host"], row["path"], row["status"]) for row in rows] == [
        (host, "/", "200"),
        (host, "/nothing?a=b", "404"),
    ]
    assert float(rows[0]["began"]) <= float(rows[0]["ended"]) <= float(rows[1]["began"])
    assert rows[0]["connection"] != rows[1]["connection"]


def test_kept_answers_follow_the_clock_and_stay_within_their_room() -> None:
    times = [WORLD.start]
    with running(DemoServer(WORLD, lambda: times[0], cache_bytes=20_000)) as server:
        for hours in (0, 5, 50, 5, 0):
            times[0] = WORLD.start + timedelta(hours=hours)
            for url in server.world.urls(server.world.hosts[1]):
                host, path = server.world.hosts[1], url.split(server.world.hosts[1])[1]
                assert ask(host, path)[2] == server.world.body(url, times[0])


def test_a_taken_port_is_said_in_a_sentence() -> None:
    with running(DemoServer(WORLD, lambda: NOON)) as server:
        port = int(server.address.partition(":")[2])
        with pytest.raises(NotReady, match="another port"), running(DemoServer(WORLD, lambda: NOON, port=port)):
            pass


def test_simulated_time_runs_faster_than_ours() -> None:
    clock = SimulatedClock(WORLD.start, speed=1e6)
    first = clock()
    assert first >= WORLD.start
    assert clock() > first


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_process_says_where_it_listens_and_stops_cleanly(tmp_path: Path, ending: signal.Signals) -> None:
    log = tmp_path / "requests.log"
    command = [sys.executable, "-m", "letopis_demo", "--hosts", "2", "--speed", "3600", "--log", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on http://127.0.0.2:")
    assert ask(line.split("/")[2], "/")[0] == 200
    process.send_signal(ending)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    assert log.read_text().count("\n") == 1
