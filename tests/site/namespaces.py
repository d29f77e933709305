"""Hosts of their own on one machine: network namespaces joined to it by links that can be cut.

Each namespace has three links, to the database, to the object store and to
the web, in private nets that no other interface routes. Inside, the web is
met at the same loopback addresses as outside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LINKS = ("database", "store", "web")
RELAY = Path(__file__).with_name("relay.py")


def ip(*words: str) -> None:
    """One command of iproute2."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def why_not() -> str:
    """What keeps this machine from making namespaces; empty when nothing does."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need Debian's iproute2"
    name = f"ltp{os.getpid()}"
    try:
        ip("netns", "add", name)
        ip("-n", name, "link", "add", "probe", "type", "veth", "peer", "name", "eborp")
    except subprocess.CalledProcessError as error:
        return f"this machine makes no network namespaces: {error.stderr.decode().strip()}"
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
    return ""


@contextmanager
def carrying(routes: Sequence[tuple[str, str]], within: Sequence[str] = ()) -> Iterator[list[int]]:
    """Connections to some addresses and ports are carried to others, maybe inside a namespace; the ports."""
    words = [*within, sys.executable, str(RELAY), *(f"{where}={target}" for where, target in routes)]
    relay = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert relay.stdout is not None
    try:
        yield [int(port) for port in relay.stdout.readline().split()]
    finally:
        relay.kill()
        relay.communicate()


class Namespace:
    """One host. `outer` names this machine's address on a link."""

    def __init__(self, number: int) -> None:
        self.name = f"lt{os.getpid()}n{number}"
        self.within = ["ip", "netns", "exec", self.name]
        self._number = number
        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "set", "lo", "up")
        for place in range(len(LINKS)):
            self._join(place)

    def _join(self, place: int) -> None:
        here, there = self._ends(place)
        ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", self.name)
        ip("address", "add", f"{self.outer(LINKS[place])}/30", "dev", here)
        ip("-n", self.name, "address", "add", f"{self._net(place)}.2/30", "dev", there)
        ip("link", "set", here, "up")
        ip("-n", self.name, "link", "set", there, "up")

    def _ends(self, place: int) -> tuple[str, str]:
        return f"lt{os.getpid() % 100000}{self._number}{place}", f"up{place}"

    def _net(self, place: int) -> str:
        return f"10.{200 + place}.{os.getpid() % 50 * 5 + self._number}"

    def outer(self, link: str) -> str:
        """This machine's address on a link."""
        return f"{self._net(LINKS.index(link))}.1"

    def cut(self, link: str) -> None:
        """Nothing passes any more, and nobody is told."""
        ip("link", "set", self._ends(LINKS.index(link))[0], "down")

    def mend(self, link: str) -> None:
        """Everything passes again."""
        ip("link", "set", self._ends(LINKS.index(link))[0], "up")

    def remove(self) -> None:
        """The links go with it."""
        ip("netns", "delete", self.name)
