"""The web of the crawl benchmarks that is put together from parts: always the same pages, all of them reachable."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from bench.crawling.long_crawl import NOTHING, Journal
from bench.crawling.vast_web import VastServer, VastWeb

HOSTS, PAGES = 9, 14


def asked(web: VastWeb, url: str) -> tuple[int, bytes]:
    """Status and body, the length checked."""
    parts = urlsplit(url)
    request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: */*\r\n\r\n"
    header, _, body = web.answer(request.encode()).partition(b"\r\n\r\n")
    assert int(header.rpartition(b":")[2]) == len(body)
    return int(header.split()[1]), body


def test_every_page_of_every_host_is_found_from_the_first() -> None:
    web = VastWeb(HOSTS, PAGES, seed=1, port=8000)
    waiting, bodies = [web.home(0)], {}
    while waiting:
        url = waiting.pop()
        if url not in bodies:
            status, bodies[url] = asked(web, url)
            assert status == 200
            waiting += [urljoin(url, link) for link in re.findall(r'href="([^"]+)"', bodies[url].decode())]
    assert len(bodies) == HOSTS * PAGES
    assert len(set(bodies.values())) == HOSTS * PAGES
    assert all(2500 < len(body) < 3500 for body in bodies.values())


def test_a_seed_gives_the_same_bytes_and_another_seed_gives_others() -> None:
    first, again, other = (VastWeb(HOSTS, PAGES, seed, 8000) for seed in (1, 1, 2))
    url = first.home(3) + "5"
    assert asked(first, url) == asked(again, url)
    assert asked(first, url)[1] != asked(other, url)[1]


@pytest.mark.parametrize("url", ["http://127.0.0.2:8000/14", "http://127.0.0.2:8000/robots.txt", "http://127.9.0.2/"])
def test_what_is_no_page_is_not_found(url: str) -> None:
    assert asked(VastWeb(HOSTS, PAGES, seed=1, port=8000), url)[0] == 404


@pytest.fixture(scope="module")
def server() -> tuple[VastServer, VastWeb]:
    made = VastServer()
    web = VastWeb(HOSTS, PAGES, seed=1, port=made.port)
    threading.Thread(target=made.run, args=(web,), daemon=True).start()
    return made, web


def test_a_connection_serves_one_page_after_the_other(server: tuple[VastServer, VastWeb]) -> None:
    made, web = server
    client = http.client.HTTPConnection("127.0.0.4", made.port, timeout=300)
    for page in (0, 3, 13):
        client.request("GET", f"/{page}")
        answer = client.getresponse()
        assert (answer.status, answer.read()) == asked(web, f"{web.home(2)}{page}")
    client.close()


def test_requests_in_pieces_and_several_at_once_are_answered(server: tuple[VastServer, VastWeb]) -> None:
    made, web = server
    request = f"GET /1 HTTP/1.1\r\nHost: {web.address(2)}:{made.port}\r\n\r\n".encode()
    answer = web.answer(request)
    with socket.create_connection(("127.0.0.4", made.port), timeout=300) as client:
        client.sendall(request + request[:11])
        assert received(client, len(answer)) == answer
        client.sendall(request[11:] + request)
        assert received(client, 2 * len(answer)) == answer + answer


def received(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += client.recv(size - len(data))
    return data


def test_costs_of_several_runs_are_those_of_the_second_half_of_each_power_of_ten(tmp_path: Path) -> None:
    for pages in (5_000, 10_000, 50_000, 100_000, 120_000):
        journal = Journal(tmp_path / "journal.jsonl")  # each run goes on with what was spent before it
        more = pages - journal.before.pages
        cpu = journal.before.cpu + 0.001 * more * (2 if pages == 100_000 else 1)
        seconds = journal.before.seconds + more / 500
        journal.add(replace(NOTHING, pages=pages, seconds=seconds, cpu=cpu, disk_bytes=2000 * pages))
    costs = [(one.pages, round(one.a_second), round(one.cpu_ms, 3), one.bytes_a_page) for one in journal.costs()]
    # The last one counts from 50,000 on: 50,000 pages at 2 ms and 20,000 at 1 ms.
    assert costs == [(10_000, 500, 1.0, 2000), (100_000, 500, 2.0, 2000), (120_000, 500, 1.714, 2000)]
