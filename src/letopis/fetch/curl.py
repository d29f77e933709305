"""Requests sent by libcurl: its failures, its cookies, its handles, which are kept and used again."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pycurl

from letopis.binary import make_private_file
from letopis.config.settings import FetchSettings
from letopis.fetch.addresses import FORBIDDEN_ADDRESS, is_public
from letopis.fetch.curl_multi import CurlMulti, TransferWaiter
from letopis.fetch.headers import header_lines, recordable_headers
from letopis.fetch.transfer import Transfer, TransferTimeouts
from letopis.model.web import Failure, FailureKind, Headers, Request, Response, SentRequest

_HTTP2_STREAM = 92
_TOO_LARGE = 100
"""CURLE_HTTP2_STREAM and CURLE_TOO_LARGE (of a header line), for which pycurl has no names."""
_NOT_A_RESET = ("chunk", "header", "hex")
"""libcurl has one code for a broken connection and for broken chunks; its messages distinguish them."""
_CODES_BY_KIND = {
    FailureKind.DNS: (pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_RESOLVE_PROXY),
    FailureKind.CONNECT: (pycurl.E_COULDNT_CONNECT, pycurl.E_INTERFACE_FAILED, pycurl.E_NO_CONNECTION_AVAILABLE),
    FailureKind.TIMEOUT: (pycurl.E_OPERATION_TIMEDOUT,),
    FailureKind.RESET: (pycurl.E_GOT_NOTHING, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR),
    FailureKind.TLS: (
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_SSL_CACERT_BADFILE,
        pycurl.E_SSL_CERTPROBLEM,
        pycurl.E_SSL_CIPHER,
        pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_INVALIDCERTSTATUS,
    ),
    FailureKind.PROTOCOL: (
        pycurl.E_PARTIAL_FILE,
        pycurl.E_FTP_WEIRD_SERVER_REPLY,
        pycurl.E_UNSUPPORTED_PROTOCOL,
        pycurl.E_BAD_CONTENT_ENCODING,
        pycurl.E_HTTP2,
        _HTTP2_STREAM,
        _TOO_LARGE,
    ),
}
_KIND_BY_CODE = {code: kind for kind, codes in _CODES_BY_KIND.items() for code in codes}
_SENTENCES = {
    FailureKind.DNS: "the host's name is not known to the name servers",
    FailureKind.CONNECT: "no connection could be made",
    FailureKind.TIMEOUT: "no connection could be made in time",
    FailureKind.RESET: "the server closed the connection before the answer was complete",
    FailureKind.TLS: "no secure connection could be made",
    FailureKind.PROTOCOL: "the answer is not valid HTTP",
    FailureKind.OTHER: "the request failed",
}


_TRIED = re.compile(r" after \d+ ms", re.ASCII)
_REFUSE_SOCKET: int = pycurl.SOCKET_BAD
_GO_ON: int = pycurl.PREREQFUNC_OK
_ABORT: int = pycurl.PREREQFUNC_ABORT


class _OwnedSocket:
    """A socket for libcurl, which duplicates it; the original is closed when it is released."""

    __slots__ = ("_socket",)

    def __init__(self, address: pycurl.CurlSockAddr) -> None:
        self._socket = socket.socket(address.family, address.socktype, address.protocol)

    def fileno(self) -> int:
        """The descriptor that libcurl duplicates."""
        return self._socket.fileno()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self._socket.close()


class AddressGuard:
    """The two callbacks that see real addresses.

    A name that resolves to a private address is refused before a packet goes out, and a kept connection to one is
    refused before it is used, so neither redirects nor names that change their address get through.
    """

    def __init__(self, easy: pycurl.Curl) -> None:
        self.refused = False
        easy.setopt(pycurl.OPENSOCKETFUNCTION, self._open)
        easy.setopt(pycurl.PREREQFUNCTION, self._before_request)

    def _open(self, _purpose: int, address: pycurl.CurlSockAddr) -> _OwnedSocket | int:
        if address.family not in (socket.AF_INET, socket.AF_INET6) or not is_public(str(address.addr[0])):
            self.refused = True
            return _REFUSE_SOCKET
        try:
            return _OwnedSocket(address)
        except OSError:  # out of descriptors, or no IPv6 here: libcurl reports it as no connection
            return _REFUSE_SOCKET

    def _before_request(self, remote: str, _local: str, _port: int, _local_port: int) -> int:
        if is_public(remote):
            return _GO_ON
        self.refused = True
        return _ABORT


def curl_failure(code: int, words: str) -> Failure:
    """The failure for a code of libcurl; its message follows in brackets."""
    kind = _KIND_BY_CODE.get(code, FailureKind.OTHER)
    if kind is FailureKind.RESET and any(word in words for word in _NOT_A_RESET):
        kind = FailureKind.PROTOCOL
    # How long it tried is another number each time, and the sentence is kept with the check.
    detail = _TRIED.sub("", words) or pycurl.easy_strerror(code)
    return Failure(kind, f"{_SENTENCES[kind]} ({detail})")


MAX_COOKIES = 5000
MAX_PER_DOMAIN = 50
"""Bounds that no honest site notices; browsers have about the same."""


class CookieJar:
    """Cookies shared by all handles of one transport, in memory or in a file.

    The file has the Netscape form that other tools read too; it is read when the jar is made and written by `save`.
    Floods are cut back to the newest cookies of each domain, so one site cannot push out those of the others.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._unchecked = 0
        self._share = pycurl.CurlShare()
        self._share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_COOKIE)
        self._keeper = pycurl.Curl()
        self.attach(self._keeper)
        if path is not None:
            make_private_file(path)  # libcurl keeps the rights of a file that is there
            self._keeper.setopt(pycurl.COOKIEFILE, str(path))
            self._keeper.setopt(pycurl.COOKIELIST, "RELOAD")
            self._keeper.setopt(pycurl.COOKIEJAR, str(path))

    def attach(self, easy: pycurl.Curl) -> None:
        """Makes a handle send and keep the jar's cookies."""
        easy.setopt(pycurl.SHARE, self._share)
        easy.setopt(pycurl.COOKIEFILE, "")

    def note(self, cookies: int) -> None:
        """Counts the cookies of an answer and trims the jar when many have come."""
        self._unchecked += cookies
        if self._unchecked > MAX_COOKIES // 2:
            self.trim()

    def lines(self) -> list[str]:
        """All cookies, a Netscape line each."""
        return list(self._keeper.getinfo(pycurl.INFO_COOKIELIST))

    def trim(self) -> None:
        """Cuts the jar back to its bounds."""
        self._unchecked = 0
        lines = self.lines()
        kept = cookies_within_bounds(lines)
        if len(kept) < len(lines):
            self._keeper.setopt(pycurl.COOKIELIST, "ALL")
            for line in kept:
                self._keeper.setopt(pycurl.COOKIELIST, line)

    def save(self) -> None:
        """Writes the file, when the jar has one."""
        if self._path is not None:
            self.trim()
            self._keeper.setopt(pycurl.COOKIELIST, "FLUSH")

    def close(self) -> None:
        """Saves and lets go; handles must have been closed before."""
        self.save()
        self._keeper.close()
        self._share.close()


def cookies_within_bounds(lines: Sequence[str]) -> list[str]:
    """The newest cookies of each domain and of all, in their order."""
    kept: list[str] = []
    of_domain: Counter[str] = Counter()
    for line in reversed(lines):
        domain = line.removeprefix("#HttpOnly_").split("\t", 1)[0]
        of_domain[domain] += 1
        if of_domain[domain] <= MAX_PER_DOMAIN and len(kept) < MAX_COOKIES:
            kept.append(line)
    return kept[::-1]


_SUPPRESS_CONNECT_HEADERS = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, for which pycurl has no name: a proxy's header is not the answer's."""
_WEB_ONLY = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
_MAX_SPARE_HANDLES = 256
_PIECE_BYTES = 128 * 1024
"""Most pages then arrive in one or two pieces instead of many."""
_ADDRESS_SECONDS = 1
"""How long libcurl keeps the address of a name: after each answer it looks through all that it keeps.

A minute's worth of a crawl of ten thousand hosts took longer to look through than their pages to read.
"""
_METHOD_OPTIONS = {"GET": pycurl.HTTPGET, "HEAD": pycurl.NOBODY}


class _CurlHandle:
    """An easy handle with the transfer bound to it, used for one hop after another."""

    __slots__ = ("_connect_ms", "_headers", "_method", "easy", "guard", "guarded", "transfer", "waiter")

    def __init__(self, easy: pycurl.Curl, transfer: Transfer, guarded: bool, proxied: bool) -> None:
        self.easy = easy
        self.transfer = transfer
        self.guarded = guarded
        self.guard = AddressGuard(easy) if guarded and not proxied else None
        self.waiter: TransferWaiter | None = None
        self._headers: Headers = ()
        self._method = "GET"
        self._connect_ms = 0
        easy.setopt(pycurl.HEADERFUNCTION, transfer.on_header)
        easy.setopt(pycurl.WRITEFUNCTION, transfer.on_body)

    def prepare(self, request: Request, pinned: str = "") -> None:
        """Sets what differs from the hop before, and nothing else; `pinned` is where a proxy has to connect to."""
        easy = self.easy
        self.transfer.begin(request)
        if self.guard is not None:
            self.guard.refused = False
        easy.setopt(pycurl.URL, request.url)
        if pinned:
            easy.setopt(pycurl.CONNECT_TO, [pinned])
        if request.headers is not self._headers:
            easy.setopt(pycurl.HTTPHEADER, header_lines(request.headers))
            self._headers = request.headers
        if request.method != self._method or request.body:
            self._set_method(request)
        connect_ms = max(1, int(request.limits.connect_seconds * 1000))
        if connect_ms != self._connect_ms:
            easy.setopt(pycurl.CONNECTTIMEOUT_MS, connect_ms)
            self._connect_ms = connect_ms

    def _set_method(self, request: Request) -> None:
        self.easy.unsetopt(pycurl.CUSTOMREQUEST)
        if request.method in _METHOD_OPTIONS:
            self.easy.setopt(_METHOD_OPTIONS[request.method], 1)
        else:
            self.easy.setopt(pycurl.POSTFIELDS, request.body)
            self.easy.setopt(pycurl.CUSTOMREQUEST, request.method)
        self._method = request.method

    def failure(self, code: int, words: str) -> Failure | None:
        """Why the hop failed, if it did: our own verdict before libcurl's."""
        if self.transfer.failure is not None or self.transfer.skipped or code == 0:
            return self.transfer.failure
        if self.guard is not None and self.guard.refused:
            return FORBIDDEN_ADDRESS
        return curl_failure(code, words)


Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a host's name; OSError or UnicodeError when it has none."""

_UNKNOWN_HERE = Failure(
    FailureKind.DNS,
    "the host's name is not known here, and a proxy is asked only for names that are, where private addresses are "
    "refused; fetch.private can allow them",
)


async def resolve_host(host: str) -> Sequence[str]:
    """The addresses that the name service of this machine has for a host."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in found]


class CurlTransport:
    """Sends single hops over HTTP/1.1 and, with TLS, HTTP/2.

    Belongs to the loop in which it is first used. Certificates are checked unless the settings say otherwise, only http
    and https are spoken, and no proxy or password of the environment is used. `jar` None keeps no cookies. `resolve`
    finds the addresses of names that a proxy is to connect to.
    """

    def __init__(
        self,
        settings: FetchSettings,
        *,
        clock: Callable[[], datetime],
        jar: CookieJar | None = None,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._resolve = resolve
        self._settings = settings
        self._clock = clock
        self._jar = jar
        self._multi: CurlMulti | None = None
        self._watch: TransferTimeouts | None = None
        self._lines: dict[pycurl.Curl, _CurlHandle] = {}
        self._by_transfer: dict[Transfer, _CurlHandle] = {}
        self._spare: dict[bool, list[_CurlHandle]] = {True: [], False: []}

    async def send(self, request: Request) -> Response:
        """One exchange; failures of the network are in the response."""
        multi, watch = self._running()
        pinned = await self._pinned(request.url) if self._settings.proxy and not request.private_ok else ""
        if isinstance(pinned, Failure):
            return Response(request.url, request.url, 0, (), b"", self._clock(), failure=pinned)
        spare = self._spare[request.private_ok]
        line = spare.pop() if spare else self._new_line(guarded=not request.private_ok)
        try:
            code, words = await self._start(multi, watch, line, request, pinned)
        except asyncio.CancelledError:
            if line.waiter is not None:
                multi.remove(line.easy)
            self._drop(line)
            raise
        finally:
            line.waiter = None
            watch.discard(line.transfer)
        response = self._response(line, code, words)
        line.transfer.release()
        if len(spare) < _MAX_SPARE_HANDLES:
            spare.append(line)
        else:
            self._drop(line)
        return response

    async def close(self) -> None:
        """Cancels what is in flight, closes all connections and saves the cookies."""
        if self._watch is not None and self._multi is not None:
            self._watch.close()
            for line in self._lines.values():
                waiter, line.waiter = line.waiter, None
                if waiter is not None:
                    self._multi.remove(line.easy)
                    waiter.cancel()
            self._multi.close()
            self._multi = self._watch = None
        for line in list(self._lines.values()):
            self._drop(line)
        self._spare = {True: [], False: []}
        if self._jar is not None:
            self._jar.close()
            self._jar = None

    def _running(self) -> tuple[CurlMulti, TransferTimeouts]:
        if self._multi is None or self._watch is None:
            self._multi = CurlMulti(self._finished)
            self._watch = TransferTimeouts(self._multi.loop, self._expire)
        return self._multi, self._watch

    def _start(
        self, multi: CurlMulti, watch: TransferTimeouts, line: _CurlHandle, request: Request, pinned: str
    ) -> TransferWaiter:
        """Sends a request; what is waited for has libcurl's code and words."""
        waiter = TransferWaiter(loop=multi.loop)
        try:
            line.prepare(request, pinned)
        except (pycurl.error, UnicodeEncodeError) as error:
            waiter.set_result((pycurl.E_URL_MALFORMAT, str(error)))
            return waiter
        line.waiter = waiter
        multi.add(line.easy)
        watch.add(line.transfer)
        return waiter

    def _finished(self, easy: pycurl.Curl, code: int, words: str, alone: bool) -> None:
        """Libcurl is done with a handle."""
        line = self._lines[easy]
        waiter, line.waiter = line.waiter, None
        if waiter is not None:
            waiter.finish(code, words, at_once=alone)

    def _expire(self, transfer: Transfer) -> None:
        """A transfer ran out of time; its failure says which."""
        line = self._by_transfer[transfer]
        waiter = line.waiter
        if waiter is not None and self._multi is not None:
            self._multi.remove(line.easy)
            line.waiter = None
            waiter.finish(pycurl.E_OPERATION_TIMEDOUT, "", at_once=False)

    def _response(self, line: _CurlHandle, code: int, words: str) -> Response:
        transfer, easy = line.transfer, line.easy
        transfer.failure = line.failure(code, words)
        body = b"" if transfer.skipped else transfer.body()
        if transfer.cookies and self._jar is not None:
            self._jar.note(transfer.cookies)
        asked, address = transfer.request, easy.getinfo(pycurl.PRIMARY_IP) or ""
        where = "" if self._settings.proxy else address
        sent = SentRequest(asked.method, recordable_headers(asked.headers), transfer.http_version, where)
        # By position, in half the time: every answer comes through here.
        return Response(
            asked.url, asked.url, transfer.status, transfer.headers, body, transfer.header_at or self._clock(),
            time.monotonic() - transfer.started, address, (), transfer.failure, transfer.skipped,
            transfer.header_bytes + transfer.body_bytes, transfer.warnings, easy.getinfo(pycurl.REQUEST_SIZE),
            None, None, None if asked.body else sent,
        )  # fmt: skip

    async def _pinned(self, url: str) -> str | Failure:
        """Where a proxy has to connect to: it gets the address that was judged here, and looks no name up."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        try:
            found = await self._resolve(host)
        except (OSError, UnicodeError):  # the latter for names that cannot be sent to a name service
            return _UNKNOWN_HERE
        if not found or not all(map(is_public, found)):
            return FORBIDDEN_ADDRESS if found else _UNKNOWN_HERE
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return f"{_bracketed(host)}:{port}:{_bracketed(found[0])}:{port}"

    def _new_line(self, guarded: bool) -> _CurlHandle:
        easy = pycurl.Curl()
        for option, value in curl_options(self._settings).items():
            easy.setopt(option, value)
        if self._jar is not None:
            self._jar.attach(easy)
        line = _CurlHandle(easy, Transfer(self._clock), guarded, bool(self._settings.proxy))
        self._lines[easy] = self._by_transfer[line.transfer] = line
        return line

    def _drop(self, line: _CurlHandle) -> None:
        self._lines.pop(line.easy, None)
        self._by_transfer.pop(line.transfer, None)
        line.easy.close()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def curl_options(settings: FetchSettings) -> dict[int, int | str]:
    """Options that hold for every hop of a transport."""
    paths = ssl.get_default_verify_paths()
    options: dict[int, int | str] = {
        pycurl.NOSIGNAL: 1,
        pycurl.PROTOCOLS: _WEB_ONLY,
        pycurl.REDIR_PROTOCOLS: _WEB_ONLY,
        pycurl.FOLLOWLOCATION: 0,
        pycurl.HTTP09_ALLOWED: 0,
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_2TLS,
        pycurl.USERAGENT: "",
        pycurl.PROXY: settings.proxy,
        pycurl.NETRC: pycurl.NETRC_IGNORED,
        pycurl.TCP_NODELAY: 1,
        pycurl.BUFFERSIZE: _PIECE_BYTES,
        pycurl.DNS_CACHE_TIMEOUT: _ADDRESS_SECONDS,
        pycurl.SSL_VERIFYPEER: int(settings.verify_tls),
        pycurl.SSL_VERIFYHOST: 2 if settings.verify_tls else 0,
        _SUPPRESS_CONNECT_HEADERS: 1,
    }
    ca_file = settings.ca_file or paths.cafile
    if ca_file and Path(ca_file).exists():
        options[pycurl.CAINFO] = ca_file
    if paths.capath and not settings.ca_file:
        options[pycurl.CAPATH] = paths.capath
    return options
