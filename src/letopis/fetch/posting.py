"""One small POST, for notifications: bounded, and kept off private networks like every other request."""

from __future__ import annotations

import pycurl

from letopis.config.sections import FetchSettings
from letopis.errors import NotReady, Refused
from letopis.fetch.curl import fixed_options
from letopis.fetch.faults import failure_of
from letopis.fetch.guard import FORBIDDEN, Guard
from letopis.model.web import Headers

_SECONDS = 30
_MOST_ANSWER = 1 << 20


def post(url: str, body: bytes, headers: Headers, settings: FetchSettings, *, private_ok: bool) -> int:
    """Sends a body and answers with the status; blocks for 30 s at most, follows no redirects.

    NotReady when no answer came, Refused for an address that is not allowed.
    A proxy would connect for us, so it is not used where addresses are guarded.
    """
    easy = pycurl.Curl()
    try:
        for option, value in fixed_options(settings).items():
            easy.setopt(option, value)
        if not private_ok:
            easy.setopt(pycurl.PROXY, "")
        guard = None if private_ok else Guard(easy)
        return _perform(easy, guard, url, body, headers)
    finally:
        easy.close()


def _perform(easy: pycurl.Curl, guard: Guard | None, url: str, body: bytes, headers: Headers) -> int:
    easy.setopt(pycurl.URL, url)
    easy.setopt(pycurl.POST, 1)
    easy.setopt(pycurl.POSTFIELDS, body)
    easy.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in (*headers, ("Expect", ""))])
    easy.setopt(pycurl.CONNECTTIMEOUT, 10)
    easy.setopt(pycurl.TIMEOUT, _SECONDS)
    easy.setopt(pycurl.WRITEFUNCTION, _Bounded().take)
    try:
        easy.perform()
    except pycurl.error as error:
        if guard is not None and guard.refused:
            raise Refused(f"{url} was not asked: {FORBIDDEN.message}") from None
        status = int(easy.getinfo(pycurl.RESPONSE_CODE))
        if not status:
            code, words = error.args[0], error.args[1]
            raise NotReady(f"{url} did not answer: {failure_of(code, words).message}") from None
    return int(easy.getinfo(pycurl.RESPONSE_CODE))


class _Bounded:
    """Throws an answer away, and hangs up when it does not end."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self, data: bytes) -> int:
        """Less than was given makes libcurl stop."""
        self._taken += len(data)
        return len(data) if self._taken <= _MOST_ANSWER else -1
