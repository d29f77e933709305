"""How secrets are kept: passwords as argon2id, tokens as the hash of a long random text."""

from __future__ import annotations

import hashlib
import secrets
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from letopis.errors import UsageError

LEAST_LENGTH = 8
MOST_LENGTH = 1024
_HASHER = PasswordHasher()


@cache
def _nobody() -> str:
    """A hash that no password has, made at the first login: it is costly on purpose, and few commands need it."""
    return _HASHER.hash("nobody has this password")


def hash_password(password: str) -> str:
    """What is stored of a password; UsageError when it is too short or too long."""
    if not LEAST_LENGTH <= len(password) <= MOST_LENGTH:
        raise UsageError(f"a password has {LEAST_LENGTH} to {MOST_LENGTH} characters")
    return _HASHER.hash(password)


def is_password(stored: str | None, password: str) -> bool:
    """Whether a password fits; takes as long for names that do not exist."""
    nobody = _nobody()  # for every name, so that the first login tells nothing either
    try:
        return _HASHER.verify(stored or nobody, password[:MOST_LENGTH]) and bool(stored)
    except (Argon2Error, InvalidHashError):
        return False


def new_token() -> tuple[str, bytes]:
    """A token of 256 random bits, and what is stored of it."""
    token = "let_" + secrets.token_urlsafe(32)
    return token, hash_token(token)


def hash_token(token: str) -> bytes:
    """A fast hash suffices: nobody can guess 256 bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
