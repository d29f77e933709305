"""One HTTP exchange as values: what is asked, what came back, what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

from letopis.tuples import NamedTuple

Headers = tuple[tuple[str, str], ...]
"""Header fields in the order they came, names as they came."""


def header(headers: Headers, name: str, default: str = "") -> str:
    """The first value of a field, whatever the case of its name."""
    wanted, length = name.lower(), len(name)
    for key, value in headers:
        if len(key) == length and key.lower() == wanted:  # the first costs less, and hardly ever holds
            return value
    return default


HOP_FIELDS = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})
_BODY_FIELDS = HOP_FIELDS | {
    "content-type", "content-md5", "content-range", "accept-ranges", "digest", "repr-digest", "etag", "last-modified",
}  # fmt: skip
"""Fields that speak of the bytes that were sent, and not of the document that became of them."""


def shown_headers(sent: Headers, content_type: str) -> Headers:
    """Those of the document that a browser made of an answer."""
    return (("Content-Type", content_type), *(field for field in sent if field[0].lower() not in _BODY_FIELDS))


class FailureKind(StrEnum):
    """Why there is no usable answer. The words are part of the JSON output."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    PROTOCOL = "protocol"
    TOO_LARGE = "too-large"
    BOMB = "bomb"
    REDIRECT_LOOP = "redirect-loop"
    TOO_MANY_HOPS = "too-many-hops"
    BAD_REDIRECT = "bad-redirect"
    FORBIDDEN_ADDRESS = "forbidden-address"
    ROBOTS = "robots"
    SETTING = "setting"
    CANCELLED = "cancelled"
    OTHER = "other"


OVER_LIMIT = (FailureKind.TOO_LARGE, FailureKind.BOMB)
"""The document is there, and more than may be taken."""
NOT_ASKED = (FailureKind.FORBIDDEN_ADDRESS, FailureKind.ROBOTS, FailureKind.SETTING)
"""Nobody was asked for the document, so nothing is known of it."""


class Failure(NamedTuple):
    """Why an exchange failed: a kind for programs, a sentence for people."""

    kind: FailureKind
    message: str


class Limits(NamedTuple):
    """Bounds of one exchange; every one of them holds whatever the server does."""

    max_bytes: int = 10 * 1024 * 1024
    max_header_bytes: int = 256 * 1024
    max_hops: int = 30
    connect_seconds: float = 10.0
    first_byte_seconds: float = 30.0
    total_seconds: float = 120.0
    min_bytes_per_second: int = 256
    slow_seconds: float = 20.0


DEFAULT_LIMITS = Limits()


class Request(NamedTuple):
    """One look at one URL.

    `etag` and `last_modified` make it conditional. `unchanged_if` holds the Content-Length and digest fields of the
    stored version: an answer that repeats them is not downloaded (Response.skipped). Both belong to the URL
    `validators_for` and are sent to no other hop; empty means every hop. `private_ok` allows loopback, private and
    link-local addresses. `keep_partial` keeps what had arrived of a body that failed or was too large, which is dropped
    otherwise. `sink` takes the body of an answer 200 piece by piece as it comes, decoded; the response then has none.
    `body` is what other methods than GET and HEAD send.
    """

    url: str
    method: str = "GET"
    headers: Headers = ()
    etag: str = ""
    last_modified: str = ""
    unchanged_if: Headers = ()
    limits: Limits = DEFAULT_LIMITS
    private_ok: bool = True
    follow: bool = True
    validators_for: str = ""
    keep_partial: bool = False
    sink: Callable[[bytes], object] | None = None
    body: bytes = b""


class SentRequest(NamedTuple):
    """The head of a request as it went out, but for what may prove who asks, and the address of the server it went to.

    `headers` are in their order, without Host; `address` is empty behind a proxy.
    """

    method: str
    headers: Headers
    http_version: str = "1.1"
    address: str = ""


class Hop(NamedTuple):
    """One redirect that was followed."""

    url: str
    status: int
    location: str
    ip: str
    headers: Headers = ()


class LoadedPage(NamedTuple):
    """What a look at a page brought beside its own answer: those to its requests, the picture, the text as shown.

    `reused` are URLs and times of answers that were recorded before and used again.
    """

    resources: tuple[Response, ...] = ()
    reused: tuple[tuple[str, datetime], ...] = ()
    screenshot: bytes = b""
    text: str = ""


class Response(NamedTuple):
    """What came back. `status` is 0 when no HTTP answer arrived at all.

    `body` is decoded (content codings undone); `wire_bytes` counts what came in, headers included, `sent_bytes` what
    went out, over all hops. `at` is when the response header arrived, or when the failure was seen. `failure` may stand
    beside a status: a body that was too large keeps its headers. `as_sent` is the answer of the server where a browser
    made this one of it, or failed to; `loaded` what came with a whole page. `request` is what the last hop was asked;
    None for one with a body.
    """

    url: str
    final_url: str
    status: int
    headers: Headers
    body: bytes
    at: datetime
    seconds: float = 0.0
    ip: str = ""
    hops: tuple[Hop, ...] = ()
    failure: Failure | None = None
    skipped: bool = False
    wire_bytes: int = 0
    warnings: tuple[str, ...] = ()
    sent_bytes: int = 0
    as_sent: Response | None = None
    loaded: LoadedPage | None = None
    request: SentRequest | None = None

    @property
    def available(self) -> bool:
        """The server answered with a status below 400."""
        if not 0 < self.status < 400:
            return False
        return self.failure is None or self.failure.kind in OVER_LIMIT

    @property
    def held_bytes(self) -> int:
        """Bytes of its body and of all that was loaded with it."""
        loaded = self.loaded
        if loaded is None:
            return len(self.body)
        return len(self.body) + len(loaded.screenshot) + sum(len(one.body) for one in loaded.resources)

    def header(self, name: str, default: str = "") -> str:
        """The first value of a header field."""
        return header(self.headers, name, default)
