"""A web of ten million pages on a hundred thousand hosts, served from a seed for a few microseconds of CPU a page.

    python -m bench.crawling.vast_web [--hosts 100000] [--pages 100] [--port 0] [--seed 0]

Host `n` is the address 127.x.y.z with x.y.z = n + 2; its pages are `/0`, which
is also `/`, to `/99`. A page is put together from parts that were rendered
once: two of 2,048 texts are chosen by a hash of seed, host and page, so that
the same address always gives the same bytes, about 3 KB of them. The pages of
a host form a tree in which every page links to its three children, and home
pages link to home pages of other hosts, so that all are found from the first.

One process, one thread, no framework: what is measured with it is the crawler.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import socket
import sys
from collections.abc import Sequence
from zlib import crc32

FANOUT = 3
"""Children of a page among those of its host, and of a host among all hosts."""
_TEXTS = 2048
_WORDS_A_TEXT = 205
_TAKEN_AT_ONCE = 65536
_BACKLOG = 4096
_SPEECH = (
    "archive river stone letter window garden winter music paper silver bridge market forest signal harbour "
    "mountain library engine summer evening lantern orchard village station theatre compass island meadow"
)
_BODY = b"<title>Page %d of host %d</title></head><body><h1>%08x</h1>%s%s%s</body></html>"
_OPEN = b"<!DOCTYPE html><html><head>"
_HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" + _OPEN + _BODY
_MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nnot here"
_END = b"\r\n\r\n"


class VastWeb:
    """The pages of all hosts; `port` is the one that stands in links."""

    def __init__(self, hosts: int, pages: int, seed: int, port: int) -> None:
        """Renders the parts."""
        self.hosts, self.pages, self.seed, self.port = hosts, pages, seed, port
        chance = random.Random(seed)
        texts = [_text(chance) for _ in range(_TEXTS)]
        width = max(map(len, texts))
        self._texts = [text.ljust(width) for text in texts]
        self._paths = {b"/%d" % page: page for page in range(pages)} | {b"/": 0}
        self._links = [b"<p>" + b"".join(map(_page_link, _children(page, pages))) for page in range(pages)]
        self._rest = [len(_OPEN) + len(_BODY % (page, 0, 0, b"", b"", links)) - 1 + 2 * width
                      for page, links in enumerate(self._links)]  # fmt: skip
        self._names: dict[bytes, int] = {}

    def address(self, host: int) -> str:
        """The name of a host: an address of this machine."""
        number = host + 2
        return f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"

    def home(self, host: int) -> str:
        """The address of a host's first page."""
        return f"http://{self.address(host)}:{self.port}/"

    def answer(self, request: bytes) -> bytes:
        """What is sent for a request, header and body; always the same bytes for the same address."""
        page = self._paths.get(request[4 : request.find(b" ", 4)])
        start = request.find(b"ost: ") + 5
        name = request[start : request.find(b"\r", start)]
        host = self._names.get(name)
        if host is None:
            host = self._names[name] = self._number(name)
        if page is None or host < 0:
            return _MISSING
        chosen = crc32(b"%d.%d.%d" % (self.seed, host, page))
        links, size = self._links[page], self._rest[page] + len(str(host))
        if not page:
            homes = self._homes(host)
            links, size = links + homes, size + len(homes)
        texts = self._texts
        return _HEADER % (size, page, host, chosen, texts[chosen % _TEXTS], texts[chosen // _TEXTS % _TEXTS], links)

    def _homes(self, host: int) -> bytes:
        homes = _children(host, self.hosts)
        return b"".join([b'<a href="%s">Host %d</a> ' % (self.home(one).encode(), one) for one in homes])

    def _number(self, name: bytes) -> int:
        """Of a host by its name; -1 for what is none of ours."""
        parts = name.partition(b":")[0].split(b".")
        if len(parts) != 4 or not all(part.isdigit() for part in parts):
            return -1
        number = int.from_bytes(bytes(min(255, int(part)) for part in parts[1:]), "big") - 2
        return number if number < self.hosts else -1


def _children(number: int, count: int) -> range:
    """The next numbers of a tree in which every number but 0 is the child of one."""
    first = number * FANOUT + 1
    return range(first, min(first + FANOUT, count)) if first < count else range(0)


def _page_link(page: int) -> bytes:
    return b'<a href="/%d">Page %d</a> ' % (page, page)


def _text(chance: random.Random) -> bytes:
    words = " ".join(chance.choices(_SPEECH.split(), k=_WORDS_A_TEXT))
    return f"<p>{words.capitalize()}.\n".encode()


class VastServer:
    """Answers all connections in turns, as the system says which have something to read."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("0.0.0.0", port))
        self._listener.listen(_BACKLOG)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._waiting = select.epoll()
        self._waiting.register(self._listener, select.EPOLLIN)
        self._begun: dict[int, bytes] = {}
        """What came of requests that are not whole yet, by connection."""
        self._late: dict[int, bytes] = {}
        """What could not be sent at once."""

    def run(self, web: VastWeb) -> None:
        """Until the process is ended."""
        listener, begun, answer, poll = self._listener.fileno(), self._begun, web.answer, self._waiting.poll
        while True:
            for client, event in poll():
                if client == listener:
                    self._accept()
                    continue
                if event & select.EPOLLOUT:
                    self._waiting.modify(client, select.EPOLLIN)
                    self._send(client, self._late.pop(client))
                    continue
                try:
                    data = os.read(client, _TAKEN_AT_ONCE)
                except OSError:
                    data = b""
                if not data:
                    self._end(client)
                    continue
                if begun:
                    data = begun.pop(client, b"") + data
                if data.find(_END) == len(data) - 4:
                    self._send(client, answer(data))
                else:
                    *whole, rest = data.split(_END)
                    if rest:
                        begun[client] = rest
                    self._send(client, b"".join([answer(request + _END) for request in whole]))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._waiting.register(client.detach(), select.EPOLLIN)

    def _send(self, client: int, data: bytes) -> None:
        try:
            sent = os.write(client, data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end(client)
            return
        if sent < len(data):
            self._late[client] = data[sent:]
            self._waiting.modify(client, select.EPOLLOUT)

    def _end(self, client: int) -> None:
        self._waiting.unregister(client)
        os.close(client)
        self._begun.pop(client, None)
        self._late.pop(client, None)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the address of the first host's home page, then serves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=100, help="of each host")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    server = VastServer(options.port)
    web = VastWeb(options.hosts, options.pages, options.seed, server.port)
    sys.stdout.write(web.home(0) + "\n")
    sys.stdout.flush()
    server.run(web)
    return 0


if __name__ == "__main__":
    sys.exit(main())
