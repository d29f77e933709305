"""Users, tokens and projects: who may sign in, and the pages they collected.

Passwords are kept as argon2id, tokens as the hash of a long random text. The tables are created with the first account.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from letopis.catalog.database import Cursor
from letopis.catalog.saved_searches import end_searches_of
from letopis.catalog.schema import TopicTables, ensure_tables, has_table
from letopis.catalog.sessions import TokenTimes, end_sessions, forget_second_factor, hash_token
from letopis.errors import Busy, NotFound, UsageError
from letopis.lazy import lazy
from letopis.model.rights import OWN, ROLES, SCOPES
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    import secrets

    import argon2
else:
    argon2, secrets = lazy("argon2"), lazy("secrets")  # few commands sign anybody in

MIN_PASSWORD_LENGTH = 8
MAX_PASSWORD_LENGTH = 1024
HASHINGS = max(1, min(4, (os.cpu_count() or 1) // 2))
"""Passwords that are hashed at once in a process: each takes 64 MiB, and others wait for the cores."""
_HASHING = threading.BoundedSemaphore(HASHINGS)
_HASHING_SECONDS = 10.0


@contextmanager
def _hashing() -> Iterator[None]:
    if not _HASHING.acquire(timeout=_HASHING_SECONDS):
        raise Busy("too many passwords are being checked; try again in a moment")
    try:
        yield
    finally:
        _HASHING.release()


@cache
def _hasher() -> argon2.PasswordHasher:
    return argon2.PasswordHasher()


@cache
def _hash_of_nobody() -> str:
    """A hash that no password has, created at the first login: it is slow on purpose, and few commands need it."""
    return _hasher().hash("nobody has this password")


def hash_password(password: str) -> str:
    """What is stored of a password; UsageError when it is too short or too long."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise UsageError(f"a password has {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters")
    with _hashing():
        return _hasher().hash(password)


def is_password(stored: str | None, password: str) -> bool:
    """Whether a password fits; takes as long for names that do not exist."""
    with _hashing():
        nobody = _hash_of_nobody()  # for every name, so that the first login reveals nothing either
        try:
            return _hasher().verify(stored or nobody, password[:MAX_PASSWORD_LENGTH]) and bool(stored)
        except (argon2.exceptions.Argon2Error, argon2.exceptions.InvalidHashError):
            return False


def new_token(prefix: str = "let_") -> tuple[str, bytes]:
    """A token of 256 random bits, and what is stored of it."""
    token = prefix + secrets.token_urlsafe(32)
    return token, hash_token(token)


ACCOUNT_TABLES = """
CREATE TABLE IF NOT EXISTS account_user (
    id {id}, name TEXT NOT NULL UNIQUE, hash TEXT, mask SMALLINT NOT NULL, team TEXT NOT NULL DEFAULT '',
    email TEXT NOT NULL DEFAULT '', language TEXT NOT NULL DEFAULT '', system SMALLINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS account_token (
    id {id}, name TEXT NOT NULL UNIQUE, hash {blob} NOT NULL UNIQUE, owner BIGINT, scope TEXT NOT NULL,
    created BIGINT NOT NULL
);
"""
INVITATION_TABLES = """
CREATE TABLE IF NOT EXISTS account_invitation (
    id {id}, hash {blob} NOT NULL UNIQUE, role TEXT NOT NULL, team TEXT NOT NULL, inviter TEXT NOT NULL,
    created BIGINT NOT NULL, until BIGINT NOT NULL
);
"""
_USER_COLUMNS = "id, name, mask, team, email, language, system, created"
_NAME = re.compile(r"[\w.@+-]{1,64}")


class User(NamedTuple):
    """A user with its rights. Ids are never reused, even after the user is removed."""

    id: int
    name: str
    mask: int
    team: str
    email: str
    language: str
    system: int
    created: int

    @property
    def role(self) -> str:
        """The largest role whose permissions the user has."""
        return next((role for role in ("owner", "user") if self.mask & ROLES[role] == ROLES[role]), "guest")


class Token(NamedTuple):
    """What may be shown of a token; the token itself is shown once and never stored."""

    name: str
    owner: str | None
    scope: str
    created: int
    used: int | None = None
    expires: int | None = None


def check_name(name: str) -> str:
    """A name of a user, token or project; UsageError for an invalid one."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name[:70]}' is not a name; use 1 to 64 letters, digits and . @ + - _")
    return name


class Accounts(TopicTables):
    """Users and tokens; writes are durable when they return."""

    topic, table, ddl = "accounts", "account_user", ACCOUNT_TABLES

    # Users

    def add(
        self, name: str, role: str, password: str | None, now: int, *, email: str = "", group: str = "",
        first: bool = False,
    ) -> User:  # fmt: skip
        """A new user; without a password only tokens work. Users of a group share their projects.

        With `first` it is UsageError if there is an account already.
        """
        check_name(name)
        if group:
            check_name(group)
        hashed = hash_password(password) if password is not None else None
        self.ensure()
        with self._database.transaction() as cursor:
            if first and cursor.one("SELECT 1 FROM account_user LIMIT 1") is not None:
                raise UsageError("this archive already has accounts; sign in")
            insert_user(cursor, name, role, hashed, now, email=email, group=group)
        return self.user(name)

    def users(self) -> list[User]:
        """All users by name."""
        return [User(*row) for row in self._all(f"SELECT {_USER_COLUMNS} FROM account_user ORDER BY name")]

    def user(self, name: str) -> User:
        """The user of a name; NotFound when there is none."""
        found = self._user("name = ?", name)
        if found is None:
            raise NotFound(f"there is no user '{name[:70]}'; see the list of users")
        return found

    def by_id(self, number: int) -> User | None:
        """The user of an id."""
        return self._user("id = ?", number)

    def _user(self, condition: str, value: Any) -> User | None:
        row = self._one(f"SELECT {_USER_COLUMNS} FROM account_user WHERE {condition}", (value,))
        return User(*row) if row else None

    def sign_in(self, name: str, password: str) -> User | None:
        """The user with this name and password; None for anything else, after the same time."""
        user = self._user("name = ?", name)
        row = self._database.one("SELECT hash FROM account_user WHERE id = ?", (user.id,)) if user else None
        return user if is_password(row[0] if row else None, password) else None

    def set_password(self, name: str, password: str) -> None:
        """A new password; all sessions of the user end."""
        user, hashed = self.user(name), hash_password(password)
        with self._database.transaction() as cursor:
            cursor.run("UPDATE account_user SET hash = ? WHERE id = ?", (hashed, user.id))
            end_sessions(self._database, cursor, user.id)

    def set_role(self, name: str, role: str) -> None:
        """Sets another role. The last owner stays one."""
        user = self.user(name)
        with self._database.transaction() as cursor:
            if role != "owner":
                self._keep_an_owner(cursor, user)
                self._end_invitations(cursor, user)
            cursor.run("UPDATE account_user SET mask = ? WHERE id = ?", (mask_of_role(role), user.id))

    def set_group(self, name: str, group: str) -> None:
        """Sets another group; empty for none."""
        user = self.user(name)
        with self._database.transaction() as cursor:
            cursor.run("UPDATE account_user SET team = ? WHERE id = ?", (group and check_name(group), user.id))

    def share(self, one: str, other: str) -> bool:
        """Whether two names are of one user, or of two users of one group."""
        if one == other:
            return True
        groups = {user.name: user.team for user in self.users()}
        return bool(groups.get(one)) and groups.get(one) == groups.get(other)

    def set_language(self, name: str, language: str) -> None:
        """The language in which a user reads pages; empty: as the browser says."""
        user = self.user(name)
        with self._database.transaction() as cursor:
            cursor.run("UPDATE account_user SET language = ? WHERE id = ?", (language, user.id))

    def end_sessions(self, number: int) -> None:
        """Ends every session of a user."""
        with self._database.transaction() as cursor:
            end_sessions(self._database, cursor, number)

    def remove(self, name: str) -> None:
        """Removes a user with all tokens, sessions and saved searches. The last owner stays while there are others."""
        user = self.user(name)
        with self._database.transaction() as cursor:
            if len(cursor.all("SELECT id FROM account_user LIMIT 2")) > 1:
                self._keep_an_owner(cursor, user)
            cursor.run("DELETE FROM account_token WHERE owner = ?", (user.id,))
            end_sessions(self._database, cursor, user.id, devices=True)
            self._end_invitations(cursor, user)
            end_searches_of(self._database, cursor, user.name)
            forget_second_factor(self._database, cursor, user.id)
            cursor.run("DELETE FROM account_user WHERE id = ?", (user.id,))
            cursor.run(
                "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (_LAST_REMOVED, str(max(user.id, _last_removed(cursor)))),
            )

    def _keep_an_owner(self, cursor: Cursor, leaving: User) -> None:
        others = cursor.all("SELECT mask FROM account_user WHERE id != ?", (leaving.id,))
        if leaving.mask & OWN and not any(row[0] & OWN for row in others):
            raise UsageError(f"'{leaving.name}' is the only owner; make another one first")

    def _end_invitations(self, cursor: Cursor, inviter: User) -> None:
        if has_table(self._database, "account_invitation"):
            cursor.run("DELETE FROM account_invitation WHERE inviter = ?", (inviter.name,))

    # Tokens

    def create_token(self, name: str, user: User | None, scope: str, now: int, expires: int | None = None) -> str:
        """A new token, shown only once. Without a user it acts for the operator of the archive.

        Once it `expires` it is refused.
        """
        check_name(name)
        if scope not in SCOPES:
            raise UsageError(f"unknown scope '{scope[:20]}'; choose read or write")
        token, hashed = new_token()
        self.ensure()
        with self._database.transaction() as cursor:
            if cursor.one("SELECT 1 FROM account_token WHERE name = ?", (name,)) is not None:
                raise UsageError(f"there is already a token '{name}'; revoke it or choose another name")
            cursor.run(
                "INSERT INTO account_token (name, hash, owner, scope, created) VALUES (?, ?, ?, ?, ?)",
                (name, hashed, user.id if user else None, scope, now),
            )
        if expires is not None:
            TokenTimes(self._database).set("expires", {hashed: expires})
        return token

    def tokens(self) -> list[Token]:
        """All tokens by name."""
        rows = self._all(
            "SELECT t.hash, t.name, u.name, t.scope, t.created FROM account_token t "
            "LEFT JOIN account_user u ON u.id = t.owner ORDER BY t.name"
        )
        times = TokenTimes(self._database)
        return [
            Token(name, owner, scope, created, *times.find(bytes(hashed)))
            for hashed, name, owner, scope, created in rows
        ]

    def revoke(self, name: str) -> None:
        """Revokes the token."""
        if all(token.name != name for token in self.tokens()):
            raise NotFound(f"there is no token '{name[:70]}'; see the list of tokens")
        with self._database.transaction() as cursor:
            cursor.run("DELETE FROM account_token WHERE name = ?", (name,))

    def bearer(self, token: str, now: int) -> tuple[str, int] | None:
        """Name and permissions of a token that has not expired, or None."""
        row = self._one(
            "SELECT t.name, t.scope, t.owner, u.name, u.mask FROM account_token t "
            "LEFT JOIN account_user u ON u.id = t.owner WHERE t.hash = ?",
            (hash_token(token),),
        )
        if row is None or now >= (TokenTimes(self._database).find(hash_token(token))[1] or now + 1):
            return None
        return (row[3] or f"token {row[0]}", SCOPES[row[1]] & (ROLES["owner"] if row[2] is None else row[4] or 0))


def insert_user(
    cursor: Cursor, name: str, role: str, hashed: str | None, now: int, *, email: str = "", group: str = ""
) -> None:
    """A new user as part of a transaction; UsageError when the name is taken."""
    if cursor.one("SELECT 1 FROM account_user WHERE name = ?", (name,)) is not None:
        raise UsageError(f"there is already a user '{name}'; choose another name")
    cursor.run(
        "INSERT INTO account_user (name, hash, mask, email, team, created) VALUES (?, ?, ?, ?, ?, ?)",
        (name, hashed, mask_of_role(role), email[:200], group, now),
    )
    # SQLite gives the highest id again when its row is gone.
    last = _last_removed(cursor)
    cursor.run("UPDATE account_user SET id = ? WHERE name = ? AND id <= ?", (last + 1, name, last))


_LAST_REMOVED = "last removed user"


def _last_removed(cursor: Cursor) -> int:
    """The highest id that ever belonged to a removed user."""
    return cursor.count("SELECT value FROM meta WHERE name = ?", (_LAST_REMOVED,))


def mask_of_role(role: str) -> int:
    """The rights of a role; UsageError for an unknown one."""
    if role not in ROLES:
        raise UsageError(f"unknown role '{role[:20]}'; choose guest, user or owner")
    return ROLES[role]


PROJECT_TABLES = """
CREATE TABLE IF NOT EXISTS account_project (
    id {id}, name TEXT NOT NULL UNIQUE, owner TEXT NOT NULL DEFAULT '', created BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS account_project_url (
    project BIGINT NOT NULL, url TEXT NOT NULL, PRIMARY KEY (project, url)
) {clustered};
"""


PROJECT_PART_TABLES = """
CREATE TABLE IF NOT EXISTS account_project_part (
    project BIGINT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, reach TEXT NOT NULL,
    PRIMARY KEY (project, kind, name)
) {clustered};
"""


class ProjectPart(NamedTuple):
    """All pages of a site, under a prefix, or of a crawl; `reach` says which, opaque here."""

    kind: str
    name: str
    reach: str


class Project(NamedTuple):
    """A named set of pages: single URLs, and parts of the web with everything that is archived of them."""

    name: str
    owner: str
    created: int
    urls: tuple[str, ...]
    parts: tuple[ProjectPart, ...] = ()


class Projects(TopicTables):
    """Creates, lists and removes projects; the caller decides who may change one."""

    topic, table, ddl = "projects", "account_project", PROJECT_TABLES

    def add(self, name: str, owner: str, urls: Iterable[str], now: int, parts: Iterable[ProjectPart] = ()) -> Project:
        """A new project, or more pages for an existing one; an owner replaces the earlier one."""
        check_name(name)
        self.ensure()
        ensure_tables(self._database, "project parts", PROJECT_PART_TABLES)
        with self._database.transaction() as cursor:
            row = cursor.one("SELECT id FROM account_project WHERE name = ?", (name,))
            if row is not None and owner:
                cursor.run("UPDATE account_project SET owner = ? WHERE id = ?", (owner, row[0]))
            row = row or cursor.one(
                "INSERT INTO account_project (name, owner, created) VALUES (?, ?, ?) RETURNING id", (name, owner, now)
            )
            assert row is not None
            number = row[0]
            cursor.run_many(
                "INSERT INTO account_project_url (project, url) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [(number, url) for url in urls],
            )
            cursor.run_many(
                "INSERT INTO account_project_part (project, kind, name, reach) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (project, kind, name) DO UPDATE SET reach = excluded.reach",
                [(number, *part) for part in parts],
            )
        return self.show(name)

    def list(self) -> list[Project]:
        """All projects by name."""
        return [self.show(str(row[0])) for row in self._all("SELECT name FROM account_project ORDER BY name")]

    def show(self, name: str) -> Project:
        """One project with its URLs; NotFound if there is none."""
        row = self._one("SELECT id, owner, created FROM account_project WHERE name = ?", (name,))
        if row is None:
            raise NotFound(f"there is no project '{name[:70]}'; see the list of projects")
        urls = self._database.all("SELECT url FROM account_project_url WHERE project = ? ORDER BY url", (row[0],))
        return Project(name, row[1], row[2], tuple(str(url[0]) for url in urls), self._parts(row[0]))

    def _parts(self, project: int) -> tuple[ProjectPart, ...]:
        if not has_table(self._database, "account_project_part"):
            return ()
        rows = self._database.all(
            "SELECT kind, name, reach FROM account_project_part WHERE project = ? ORDER BY kind, name", (project,)
        )
        return tuple(ProjectPart(*row) for row in rows)

    def take_out(self, name: str, urls: Iterable[str], parts: Sequence[ProjectPart] = ()) -> None:
        """Removes URLs and parts from a project."""
        with self._database.transaction() as cursor:
            if parts:
                cursor.run_many(
                    "DELETE FROM account_project_part WHERE kind = ? AND name = ? "
                    "AND project = (SELECT id FROM account_project WHERE name = ?)",
                    [(part.kind, part.name, name) for part in parts],
                )
            cursor.run_many(
                "DELETE FROM account_project_url WHERE url = ? "
                "AND project = (SELECT id FROM account_project WHERE name = ?)",
                [(url, name) for url in urls],
            )

    def remove(self, name: str) -> None:
        """Removes a project; its pages stay in the archive."""
        self.show(name)
        ensure_tables(self._database, "project parts", PROJECT_PART_TABLES)
        with self._database.transaction() as cursor:
            for table in ("account_project_url", "account_project_part"):
                cursor.run(
                    f"DELETE FROM {table} WHERE project IN (SELECT id FROM account_project WHERE name = ?)", (name,)
                )
            cursor.run("DELETE FROM account_project WHERE name = ?", (name,))
