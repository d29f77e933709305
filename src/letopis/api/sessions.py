"""Sessions of signed-in people: signed cookies, tickets for archived pages, and how often a password may be tried."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie

from itsdangerous import BadData, URLSafeTimedSerializer
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


class Sessions:
    """Gives out and reads session cookies of one archive."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    @cached_property
    def _key(self) -> bytes:
        return self._accounts.signing_key()

    @cached_property
    def _signer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(
            self._key, salt="letopis session", signer_kwargs={"digest_method": hashlib.sha256}
        )

    def issue(self, user: User) -> str:
        """The value of a fresh cookie. Nothing of an earlier session goes into it."""
        return str(self._signer.dumps([user.id, user.epoch, secrets.token_urlsafe(16)]))

    def read(self, scope: Scope) -> Session | None:
        """The session of a request; None when it has none, or one that is forged, over or ended."""
        value = session_cookie(scope)
        if value is None:
            return None
        try:
            number, epoch, nonce = self._signer.loads(value, max_age=SESSION_LIFETIME)
        except (BadData, ValueError, TypeError):
            return None
        user = self._accounts.by_id(number)
        if user is None or user.epoch != epoch:
            return None
        return Session(user, hmac.new(self._key, f"csrf {nonce}".encode(), hashlib.sha256).hexdigest())

    def ticket(self, user: User) -> str:
        """What an archived page shows in place of a cookie: its sandbox has no origin, so no cookie comes along."""
        return str(self._tickets.dumps([user.id, user.epoch]))

    def bearer(self, ticket: str) -> User | None:
        """Whose ticket it is; None when it is forged, over, or its user's sessions have ended."""
        try:
            number, epoch = self._tickets.loads(ticket, max_age=TICKET_LIFETIME)
        except (BadData, ValueError, TypeError):
            return None
        user = self._accounts.by_id(number)
        return user if user is not None and user.epoch == epoch else None

    @cached_property
    def _tickets(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key, salt="letopis replay", signer_kwargs={"digest_method": hashlib.sha256})


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
