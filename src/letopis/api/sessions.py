"""Sessions of signed-in people: signed cookies, tickets for archived pages, and how often a password may be tried."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.types import Scope

from letopis.archive.accounts import Accounts, User

LOGIN_TRIES = 5
LOGIN_WINDOW = 300.0
_MOST_KEYS = 10_000


class LoginThrottle:
    """Counts failures by key; after `tries` within five minutes the next one has to wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, tries: int = LOGIN_TRIES) -> None:
        self._clock = clock
        self._tries = tries
        self._failures: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def wait(self, *keys: str) -> int:
        """Seconds until the next try is allowed; 0 for now."""
        with self._lock:
            return max(self._wait(key) for key in keys)

    def _wait(self, key: str) -> int:
        tries = self._failures.get(key)
        if tries is None or len(tries) < self._tries:
            return 0
        return (
            max(0, int(tries[0] + LOGIN_WINDOW - self._clock()) + 1) if tries[0] + LOGIN_WINDOW > self._clock() else 0
        )

    def failed(self, *keys: str) -> None:
        """A wrong password."""
        with self._lock:
            if len(self._failures) > _MOST_KEYS:
                self._forget_old()
            for key in keys:
                self._failures.setdefault(key, deque(maxlen=self._tries)).append(self._clock())

    def succeeded(self, *keys: str) -> None:
        """The right one: earlier failures are forgiven."""
        with self._lock:
            for key in keys:
                self._failures.pop(key, None)

    def _forget_old(self) -> None:
        horizon = self._clock() - LOGIN_WINDOW
        self._failures = {key: tries for key, tries in self._failures.items() if tries[-1] > horizon}


SESSION_COOKIE = "letopis_session"
SESSION_LIFETIME = 14 * 86_400
"""Seconds after which a session ends by itself."""

TICKET_LIFETIME = 2 * 3600
"""Seconds for which a ticket lets an archived page load what belongs to it."""

_TICKET = re.compile(r"/web/~([\w.-]{1,400})/", re.ASCII)


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody signed in. `csrf` must come with every change."""

    user: User
    csrf: str


class TimedSigner:
    """Small values as texts that nobody without the key can make, and that end by themselves.

    A text is `value.time.signature`, each in base 64 for addresses; `purpose`
    keeps texts of one kind from being taken for those of another.
    """

    def __init__(self, key: bytes, purpose: str, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.new(key, purpose.encode(), hashlib.sha256).digest()
        self._clock = clock

    def sign(self, value: list[int | str]) -> str:
        """The value with the time and a signature of both."""
        body = f"{_encoded(json.dumps(value).encode())}.{_encoded(str(int(self._clock())).encode())}"
        return f"{body}.{self._signature(body)}"

    def read(self, text: str, lifetime: float) -> list[Any]:
        """The value; ValueError when the text is forged, no text of ours, or older than `lifetime` seconds."""
        body, _, signature = text.rpartition(".")
        if not hmac.compare_digest(self._signature(body).encode(), signature.encode("utf-8", "replace")):
            raise ValueError("the signature does not fit")
        value, _, made = body.partition(".")
        if not 0 <= self._clock() - int(_decoded(made)) <= lifetime:
            raise ValueError("its time is over")
        found = json.loads(_decoded(value))
        return found if isinstance(found, list) else [found]

    def _signature(self, body: str) -> str:
        return _encoded(hmac.new(self._key, body.encode("utf-8", "replace"), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Sessions:
    """Gives out and reads session cookies of one archive."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    @cached_property
    def _key(self) -> bytes:
        return self._accounts.signing_key()

    @cached_property
    def _signer(self) -> TimedSigner:
        return TimedSigner(self._key, "letopis session")

    def issue(self, user: User) -> str:
        """The value of a fresh cookie. Nothing of an earlier session goes into it."""
        return self._signer.sign([user.id, user.epoch, secrets.token_urlsafe(16)])

    def read(self, scope: Scope) -> Session | None:
        """The session of a request; None when it has none, or one that is forged, over or ended."""
        value = session_cookie(scope)
        if value is None:
            return None
        try:
            number, epoch, nonce = self._signer.read(value, SESSION_LIFETIME)
        except ValueError:
            return None
        user = self._accounts.by_id(number)
        if user is None or user.epoch != epoch:
            return None
        return Session(user, hmac.new(self._key, f"csrf {nonce}".encode(), hashlib.sha256).hexdigest())

    def ticket(self, user: User) -> str:
        """What an archived page shows in place of a cookie: its sandbox has no origin, so no cookie comes along."""
        return self._tickets.sign([user.id, user.epoch])

    def bearer(self, ticket: str) -> User | None:
        """Whose ticket it is; None when it is forged, over, or its user's sessions have ended."""
        try:
            number, epoch = self._tickets.read(ticket, TICKET_LIFETIME)
        except ValueError:
            return None
        user = self._accounts.by_id(number)
        return user if user is not None and user.epoch == epoch else None

    @cached_property
    def _tickets(self) -> TimedSigner:
        return TimedSigner(self._key, "letopis replay")


def ticket_of(path: str) -> str:
    """The ticket in an address under `/web/`; empty when there is none."""
    found = _TICKET.match(path)
    return found[1] if found else ""


def session_cookie(scope: Scope) -> str | None:
    """The session cookie of a request."""
    for name, value in scope["headers"]:
        if name == b"cookie" and SESSION_COOKIE.encode() in value:
            try:
                found = SimpleCookie(value.decode("latin-1")).get(SESSION_COOKIE)
            except CookieError:
                return None
            return found.value if found else None
    return None
