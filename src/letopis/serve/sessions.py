"""Sessions of people: a signed cookie that names the user, and the token that forms must repeat."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.types import Scope

from letopis.catalog.accounts import Accounts, User

COOKIE = "letopis_session"
LIFETIME = 14 * 86_400
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
        value = cookie(scope)
        if value is None:
            return None
        try:
            number, epoch, nonce = self._signer.loads(value, max_age=LIFETIME)
        except (BadData, ValueError, TypeError):
            return None
        user = self._accounts.by_id(number)
        if user is None or user.epoch != epoch:
            return None
        return Session(user, hmac.new(self._key, f"csrf {nonce}".encode(), hashlib.sha256).hexdigest())

    def ticket(self, user: User) -> str:
        """What an archived page shows in place of a cookie: its cage has no origin, so no cookie comes along."""
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


def cookie(scope: Scope) -> str | None:
    """The session cookie of a request."""
    for name, value in scope["headers"]:
        if name == b"cookie" and COOKIE.encode() in value:
            try:
                found = SimpleCookie(value.decode("latin-1")).get(COOKIE)
            except CookieError:
                return None
            return found.value if found else None
    return None
