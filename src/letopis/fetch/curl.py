"""Requests sent by libcurl: connections and handles are kept and used again."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pycurl

from letopis.config.sections import FetchSettings
from letopis.fetch.cookies import CookieJar
from letopis.fetch.faults import failure_of
from letopis.fetch.fields import wire_lines
from letopis.fetch.guard import FORBIDDEN, Guard, resolves_to_public
from letopis.fetch.multi import Multi
from letopis.fetch.transfer import Transfer
from letopis.fetch.waiting import Waiter
from letopis.fetch.watch import Watch
from letopis.model.web import Failure, Headers, Request, Response

_SUPPRESS_CONNECT_HEADERS = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, for which pycurl has no name: a proxy's header is not the answer's."""
_WEB_ONLY = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
_MAX_SPARE_LINES = 256
_PIECE_BYTES = 128 * 1024
"""Most pages then arrive in one or two pieces instead of many."""
_METHODS = {"GET": pycurl.HTTPGET, "HEAD": pycurl.NOBODY}


class _Line:
    """An easy handle with the transfer bound to it, used for one hop after another."""

    __slots__ = ("_connect_ms", "_headers", "_method", "easy", "guard", "guarded", "transfer", "waiter")

    def __init__(self, easy: pycurl.Curl, transfer: Transfer, guarded: bool, proxied: bool) -> None:
        self.easy = easy
        self.transfer = transfer
        self.guarded = guarded
        self.guard = Guard(easy) if guarded and not proxied else None
        self.waiter: Waiter | None = None
        self._headers: Headers = ()
        self._method = "GET"
        self._connect_ms = 0
        easy.setopt(pycurl.HEADERFUNCTION, transfer.on_header)
        easy.setopt(pycurl.WRITEFUNCTION, transfer.on_body)

    def prepare(self, request: Request) -> None:
        """Sets what differs from the hop before, and nothing else."""
        easy = self.easy
        self.transfer.begin(request)
        if self.guard is not None:
            self.guard.refused = False
        easy.setopt(pycurl.URL, request.url)
        if request.headers is not self._headers:
            easy.setopt(pycurl.HTTPHEADER, wire_lines(request.headers))
            self._headers = request.headers
        if request.method != self._method:
            easy.setopt(_METHODS[request.method], 1)
            self._method = request.method
        connect_ms = max(1, int(request.limits.connect_seconds * 1000))
        if connect_ms != self._connect_ms:
            easy.setopt(pycurl.CONNECTTIMEOUT_MS, connect_ms)
            self._connect_ms = connect_ms

    def failure(self, code: int, words: str) -> Failure | None:
        """Why the hop failed, if it did: our own verdict before libcurl's."""
        if self.transfer.failure is not None or self.transfer.skipped or code == 0:
            return self.transfer.failure
        if self.guard is not None and self.guard.refused:
            return FORBIDDEN
        return failure_of(code, words)


class CurlTransport:
    """Sends single hops over HTTP/1.1 and, with TLS, HTTP/2.

    Belongs to the loop in which it is first used. Certificates are checked
    unless the settings say otherwise, only http and https are spoken, and no
    proxy or password of the environment is used. `jar` None keeps no cookies.
    """

    def __init__(
        self,
        settings: FetchSettings,
        *,
        clock: Callable[[], datetime],
        jar: CookieJar | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._jar = jar
        self._multi: Multi | None = None
        self._watch: Watch | None = None
        self._lines: dict[pycurl.Curl, _Line] = {}
        self._by_transfer: dict[Transfer, _Line] = {}
        self._spare: dict[bool, list[_Line]] = {True: [], False: []}

    async def send(self, request: Request) -> Response:
        """One exchange; whatever the network does stands in the response."""
        multi, watch = self._running()
        if not request.private_ok and self._settings.proxy and not await self._proxy_may_fetch(request.url, multi.loop):
            return self._refused(request)
        spare = self._spare[request.private_ok]
        line = spare.pop() if spare else self._new_line(guarded=not request.private_ok)
        code, words = await self._perform(multi, watch, line, request)
        response = self._response(line, code, words)
        line.transfer.release()
        if len(spare) < _MAX_SPARE_LINES:
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

    def _running(self) -> tuple[Multi, Watch]:
        if self._multi is None or self._watch is None:
            self._multi = Multi(self._finished)
            self._watch = Watch(self._multi.loop, self._expire)
        return self._multi, self._watch

    async def _perform(self, multi: Multi, watch: Watch, line: _Line, request: Request) -> tuple[int, str]:
        try:
            line.prepare(request)
        except (pycurl.error, UnicodeEncodeError) as error:
            return pycurl.E_URL_MALFORMAT, str(error)
        line.waiter = waiter = Waiter(loop=multi.loop)
        multi.add(line.easy)
        watch.add(line.transfer)
        try:
            return await waiter
        except asyncio.CancelledError:
            if line.waiter is not None:
                multi.remove(line.easy)
            self._drop(line)
            raise
        finally:
            line.waiter = None
            watch.discard(line.transfer)

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

    def _response(self, line: _Line, code: int, words: str) -> Response:
        transfer, easy = line.transfer, line.easy
        transfer.failure = line.failure(code, words)
        body = b"" if transfer.skipped else transfer.body()
        if transfer.cookies and self._jar is not None:
            self._jar.note(transfer.cookies)
        return Response(
            url=transfer.request.url,
            final_url=transfer.request.url,
            status=transfer.status,
            headers=transfer.headers,
            body=body,
            at=transfer.header_at or self._clock(),
            seconds=time.monotonic() - transfer.started,
            ip=easy.getinfo(pycurl.PRIMARY_IP) or "",
            failure=transfer.failure,
            skipped=transfer.skipped,
            wire_bytes=transfer.received,
            warnings=transfer.warnings,
            http_version=transfer.http_version,
            wire_body=transfer.wire_body() if transfer.request.keep_wire else b"",
            sent_bytes=easy.getinfo(pycurl.REQUEST_SIZE),
        )

    def _refused(self, request: Request) -> Response:
        return Response(request.url, request.url, 0, (), b"", self._clock(), failure=FORBIDDEN)

    async def _proxy_may_fetch(self, url: str, loop: asyncio.AbstractEventLoop) -> bool:
        """A proxy connects for us, so the name itself is judged by what it resolves to here."""
        host = urlsplit(url).hostname or ""
        try:
            found = await loop.getaddrinfo(host, None)
        except OSError:
            return True
        return resolves_to_public(list(found))

    def _new_line(self, guarded: bool) -> _Line:
        easy = pycurl.Curl()
        for option, value in fixed_options(self._settings).items():
            easy.setopt(option, value)
        if self._jar is not None:
            self._jar.attach(easy)
        line = _Line(easy, Transfer(self._clock), guarded, bool(self._settings.proxy))
        self._lines[easy] = self._by_transfer[line.transfer] = line
        return line

    def _drop(self, line: _Line) -> None:
        self._lines.pop(line.easy, None)
        self._by_transfer.pop(line.transfer, None)
        line.easy.close()


def fixed_options(settings: FetchSettings) -> dict[int, int | str]:
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
