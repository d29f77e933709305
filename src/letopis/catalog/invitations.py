"""Invitations: links with which one person can create one account, within some days, with a given role.

The link has a long random text of which the catalogue keeps a hash. An invitation ends with the owner who created it: a
person who is removed, or is no longer an owner, leaves no way to sign in.
"""

from __future__ import annotations

from letopis.catalog.accounts import (
    INVITATION_TABLES,
    Accounts,
    User,
    check_name,
    hash_password,
    insert_user,
    mask_of_role,
    new_token,
)
from letopis.catalog.schema import TopicTables
from letopis.catalog.sessions import hash_token
from letopis.errors import NotFound, UsageError
from letopis.tuples import NamedTuple

MOST_INVITATIONS = 1000
_TABLE = "account_invitation"
_COLUMNS = "id, role, team, inviter, created, until"
_GONE = "this invitation was used, was revoked or has expired; ask for another one"


class Invitation(NamedTuple):
    """What an invitation gives: a role and a group, until a time in milliseconds."""

    id: int
    role: str
    team: str
    inviter: str
    created: int
    until: int


class Invitations(TopicTables):
    """Creates, lists, revokes and redeems invitations; writes are durable when they return."""

    topic, table, ddl = "invitations", _TABLE, INVITATION_TABLES

    def add(self, role: str, group: str, inviter: str, now: int, lifetime: int) -> tuple[Invitation, str]:
        """A new invitation with its text, shown only once."""
        mask_of_role(role)
        if group:
            check_name(group)
        token, hashed = new_token("inv_")
        self.ensure()
        with self._database.transaction() as cursor:
            cursor.run(f"DELETE FROM {_TABLE} WHERE until <= ?", (now,))
            if cursor.count(f"SELECT COUNT(*) FROM {_TABLE}") >= MOST_INVITATIONS:
                raise UsageError(f"{MOST_INVITATIONS} invitations wait already; revoke some first")
            row = cursor.one(
                f"INSERT INTO {_TABLE} (hash, role, team, inviter, created, until) VALUES (?, ?, ?, ?, ?, ?) "
                f"RETURNING {_COLUMNS}",
                (hashed, role, group, inviter, now, now + lifetime),
            )
        assert row is not None
        return Invitation(*row), token

    def waiting(self, now: int) -> list[Invitation]:
        """Those that can still be redeemed, oldest first."""
        rows = self._all(f"SELECT {_COLUMNS} FROM {_TABLE} WHERE until > ? ORDER BY id", (now,))
        return [Invitation(*row) for row in rows]

    def find(self, token: str, now: int) -> Invitation:
        """The invitation of a text, not used up by reading it; NotFound if there is none."""
        values = (hash_token(token), now)
        row = self._one(f"SELECT {_COLUMNS} FROM {_TABLE} WHERE hash = ? AND until > ?", values)
        if row is None:
            raise NotFound(_GONE)
        return Invitation(*row)

    def take(self, token: str, name: str, password: str, now: int) -> User:
        """Creates the account of an invitation and uses it up, both or neither."""
        self.find(token, now)
        check_name(name)
        hashed = hash_password(password)
        with self._database.transaction() as cursor:
            rows = cursor.all(
                f"DELETE FROM {_TABLE} WHERE hash = ? AND until > ? RETURNING role, team", (hash_token(token), now)
            )
            if not rows:
                raise NotFound(_GONE)
            role, team = rows[0]
            insert_user(cursor, name, role, hashed, now, group=team)
        return Accounts(self._database).user(name)

    def revoke(self, number: int) -> None:
        """Revokes the invitation."""
        rows = []
        if self._made():
            with self._database.transaction() as cursor:
                rows = cursor.all(f"DELETE FROM {_TABLE} WHERE id = ? RETURNING id", (number,))
        if not rows:
            raise NotFound(f"there is no invitation {number}; see the list of invitations")
