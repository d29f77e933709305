"""Sessions of signed-in people: cookies, and devices that are known."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

from letopis.archive.accounts import Accounts, SessionRows, User
from letopis.tuples import NamedTuple


def login_keys(name: str, address: str, device: str = "") -> tuple[str, ...]:
    """What a try counts for: the name and the address; for a device that its user is known by, that device alone.

    So nobody can keep people out of their accounts by trying their names.
    """
    if device:
        return (f"device {device}",)
    return f"name {name[:64]}", f"address {network_of(address)}"


def network_of(address: str) -> str:
    """An address, of IPv6 the network that one customer has."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(IPv6Address(int(parsed) >> 64 << 64)) if isinstance(parsed, IPv6Address) else address


SESSION_COOKIE = "letopis_session"
SESSION_LIFETIME = 14 * 86_400
"""Seconds after which a session ends by itself."""

DEVICE_COOKIE = "letopis_device"
DEVICE_LIFETIME = 365 * 86_400

HALF_COOKIE = "letopis_half_signed_in"
HALF_LIFETIME = 600
"""Seconds within which a code must follow a password."""


def cookie_of(scope: Scope, name: str) -> str:
    """A cookie as this service names it: browsers share cookies among the ports of a host, so a port is in the name."""
    asked = next((value.decode("latin-1") for field, value in scope["headers"] if field == b"host"), "")
    port = asked.rpartition(":")[2] if ":" in asked else ""
    return f"{name}_{port}" if port.isdigit() else name


class Session(NamedTuple):
    """Somebody signed in. `csrf` must come with every change."""

    user: User
    csrf: str


class Sessions:
    """Gives out and reads the cookies of one archive. Each is a random text of which the record has a hash."""

    def __init__(
        self, accounts: Accounts, rows: SessionRows, *, lacks_factor: Callable[[User], bool] = lambda user: False
    ) -> None:
        """Whoever `lacks_factor` counts as signed out: sessions from before it was asked for end by that."""
        self._accounts = accounts
        self._rows = rows
        self._lacks_factor = lacks_factor

    def issue(self, user: User) -> str:
        """The value of a fresh cookie. Nothing of an earlier session goes into it."""
        return self._rows.begin(user.id, "session", int(time.time()), SESSION_LIFETIME)

    def read(self, scope: Scope) -> Session | None:
        """The session of a request; None when it has none, or one that is forged, over or ended."""
        value = session_cookie(scope)
        owner = self._rows.owner(value, "session", int(time.time())) if value else None
        user = self._accounts.by_id(owner) if owner is not None else None
        if user is None or value is None or self._lacks_factor(user):
            return None
        return Session(user, hmac.new(value.encode(), b"csrf", hashlib.sha256).hexdigest())

    def password_given(self, user: User) -> str:
        """The value of a cookie by which a browser is known whose user has given the password; a code is to come."""
        return self._rows.begin(user.id, "password", int(time.time()), HALF_LIFETIME)

    def who_gave_password(self, value: str) -> User | None:
        """Whose password was given before that cookie."""
        owner = self._rows.owner(value, "password", int(time.time())) if value else None
        return self._accounts.by_id(owner) if owner is not None else None

    def code_given(self, value: str) -> bool:
        """Uses the cookie up; whether it was there still."""
        return self._rows.take(value, "password", int(time.time())) is not None

    def know_device(self, user: User) -> str:
        """The value of a cookie by which a browser is known as one of a user's from now on."""
        return self._rows.begin(user.id, "device", int(time.time()), DEVICE_LIFETIME)

    def is_device_of(self, name: str, device: str) -> bool:
        """Whether the user of a name has signed in on a device before."""
        owner = self._rows.owner(device, "device", int(time.time())) if device else None
        user = self._accounts.by_id(owner) if owner is not None else None
        return user is not None and user.name == name


def session_cookie(scope: Scope) -> str | None:
    """The session cookie of a request."""
    for name, value in scope["headers"]:
        if name == b"cookie" and SESSION_COOKIE.encode() in value:
            try:
                found = SimpleCookie(value.decode("latin-1")).get(cookie_of(scope, SESSION_COOKIE))
            except CookieError:
                return None
            return found.value if found else None
    return None
