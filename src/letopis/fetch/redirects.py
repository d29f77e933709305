"""Where a redirect leads, and when following has to end. Pure decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urldefrag, urlsplit

from letopis.model.web import Failure, FailureKind, Headers, Response

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_SAME = 3
_SECRETS = frozenset({"authorization", "cookie", "proxy-authorization"})


def location(response: Response) -> str:
    """The raw Location of a redirect answer; empty when it is none."""
    return response.header("location") if response.status in REDIRECTS else ""


def target(base: str, raw: str) -> str:
    """The absolute address without fragment; empty when it is not one of http or https.

    Header bytes are UTF-8 in practice, whatever the standard says.
    """
    try:
        text = raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        text = raw
    import ada_url  # noqa: PLC0415 - most checks are not redirected, and all of them start

    try:
        joined: str = ada_url.join_url(base, text)
    except ValueError:
        return ""
    return urldefrag(joined).url if joined.startswith(("http://", "https://")) else ""


def method_after(status: int, method: str) -> str:
    """The method of the next hop: only 303 changes it, and never for HEAD."""
    return "GET" if status == 303 and method != "HEAD" else method


def without_secrets(headers: Headers, old: str, new: str) -> Headers:
    """The user's fields for the next hop; those that prove who he is stay with their origin."""
    if _origin(old) == _origin(new):
        return headers
    return tuple(item for item in headers if item[0].lower() not in _SECRETS)


@dataclass(slots=True)
class Trail:
    """The addresses of one exchange so far.

    A site may send the same address once more after it has set a cookie, so
    coming back counts as a loop only when no cookie came meanwhile, or at
    the third time.
    """

    max_hops: int
    hops: int = 0
    _seen: Counter[str] = field(default_factory=Counter)
    _new_cookie: bool = False

    def step(self, response: Response, to: str) -> Failure | None:
        """Counts one redirect; the failure when following has to end here."""
        self._seen[urldefrag(response.url).url] += 1
        self._new_cookie = self._new_cookie or bool(response.header("set-cookie"))
        if not to:
            raw = response.header("location")
            return Failure(FailureKind.BAD_REDIRECT, f"the redirect to '{raw[:200]}' leads to no web address")
        if self._seen[to] and (not self._new_cookie or self._seen[to] >= _MAX_SAME):
            return Failure(FailureKind.REDIRECT_LOOP, f"the redirects lead in a circle, back to {to}")
        if self.hops >= self.max_hops:
            return Failure(FailureKind.TOO_MANY_HOPS, f"more than {self.max_hops} redirects follow one another")
        if self._seen[to]:
            self._new_cookie = False
        self.hops += 1
        return None


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port
