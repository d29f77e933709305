"""Messages to web addresses: one POST by libcurl, under the same rule about private addresses as every look."""

from __future__ import annotations

import pycurl

from letopis.config.settings import FetchSettings
from letopis.errors import NotReady, Refused
from letopis.fetch.addresses import FORBIDDEN_ADDRESS
from letopis.fetch.curl import AddressGuard, curl_failure, curl_options
from letopis.model.web import Headers

_POST_SECONDS = 30
_MAX_POST_ANSWER = 1 << 20


def post_webhook(url: str, body: bytes, headers: Headers, settings: FetchSettings, *, private_ok: bool) -> int:
    """Sends a body and answers with the status; blocks for 30 s at most, follows no redirects.

    NotReady when no answer came, Refused for an address that is not allowed.
    A proxy would connect for us, so it is not used where addresses are guarded.
    """
    easy = pycurl.Curl()
    try:
        for option, value in curl_options(settings).items():
            easy.setopt(option, value)
        if not private_ok:
            easy.setopt(pycurl.PROXY, "")
        guard = None if private_ok else AddressGuard(easy)
        return _perform_post(easy, guard, url, body, headers)
    finally:
        easy.close()


def _perform_post(easy: pycurl.Curl, guard: AddressGuard | None, url: str, body: bytes, headers: Headers) -> int:
    easy.setopt(pycurl.URL, url)
    easy.setopt(pycurl.POST, 1)
    easy.setopt(pycurl.POSTFIELDS, body)
    easy.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in (*headers, ("Expect", ""))])
    easy.setopt(pycurl.CONNECTTIMEOUT, 10)
    easy.setopt(pycurl.TIMEOUT, _POST_SECONDS)
    easy.setopt(pycurl.WRITEFUNCTION, _DiscardedBody().take)
    try:
        easy.perform()
    except pycurl.error as error:
        if guard is not None and guard.refused:
            raise Refused(f"{url} was not asked: {FORBIDDEN_ADDRESS.message}") from None
        status = int(easy.getinfo(pycurl.RESPONSE_CODE))
        if not status:
            code, words = error.args[0], error.args[1]
            raise NotReady(f"{url} did not answer: {curl_failure(code, words).message}") from None
    return int(easy.getinfo(pycurl.RESPONSE_CODE))


class _DiscardedBody:
    """Throws an answer away, and hangs up when it does not end."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self, data: bytes) -> int:
        """Less than was given makes libcurl stop."""
        self._taken += len(data)
        return len(data) if self._taken <= _MAX_POST_ANSWER else -1
