"""Keeps a handle off private networks, judging the address it really connects to."""

from __future__ import annotations

import contextlib
import socket

import pycurl

from letopis.fetch.addresses import is_public
from letopis.model.web import Failure, FailureKind

_REFUSE_SOCKET: int = pycurl.SOCKET_BAD
_GO_ON: int = pycurl.PREREQFUNC_OK
_ABORT: int = pycurl.PREREQFUNC_ABORT
FORBIDDEN = Failure(
    FailureKind.FORBIDDEN_ADDRESS,
    "the address belongs to a private network, which this request may not reach; fetch.private can allow it",
)


class _Opened:
    """A socket for libcurl, which duplicates it; ours is closed when it is let go."""

    __slots__ = ("_socket",)

    def __init__(self, address: pycurl.CurlSockAddr) -> None:
        self._socket = socket.socket(address.family, address.socktype, address.protocol)

    def fileno(self) -> int:
        """The descriptor that libcurl duplicates."""
        return self._socket.fileno()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self._socket.close()


class Guard:
    """The two callbacks that see real addresses.

    A name that resolves to a private address is refused before a packet
    goes out, and a kept connection to one is refused before it is used, so
    neither redirects nor names that change their address get through.
    """

    def __init__(self, easy: pycurl.Curl) -> None:
        self.refused = False
        easy.setopt(pycurl.OPENSOCKETFUNCTION, self._open)
        easy.setopt(pycurl.PREREQFUNCTION, self._before_request)

    def _open(self, _purpose: int, address: pycurl.CurlSockAddr) -> _Opened | int:
        if address.family not in (socket.AF_INET, socket.AF_INET6) or not is_public(str(address.addr[0])):
            self.refused = True
            return _REFUSE_SOCKET
        try:
            return _Opened(address)
        except OSError:  # out of descriptors, or no IPv6 here: libcurl reports it as no connection
            return _REFUSE_SOCKET

    def _before_request(self, remote: str, _local: str, _port: int, _local_port: int) -> int:
        if is_public(remote):
            return _GO_ON
        self.refused = True
        return _ABORT


def resolves_to_public(found: list[tuple[object, ...]]) -> bool:
    """Whether all results of getaddrinfo are public; true for none, which only a proxy can look up."""
    return all(isinstance(row[4], tuple) and is_public(str(row[4][0])) for row in found)
