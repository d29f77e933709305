"""Accounts: users with their roles and groups, invitations, tokens for programs, and the audit log.

An owner hands out a link, and whoever opens it makes an account of their own with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from letopis.archive import OWN, WRITE
from letopis.archive.accounts import (
    Accounts,
    Invitation,
    User,
    accounts_of,
    invitations_of,
    old_password_tries,
    second_factors_of,
)
from letopis.archive.audit import AuditEntry, audit_entries, last_done
from letopis.errors import Busy, NotFound, QuotaUsedUp, Refused, UsageError
from letopis.model import from_millis, to_millis
from letopis.operations.context import Context
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import NOT_CLI, NoParameters, Parameters, parameter
from letopis.tuples import NamedTuple

Role = Literal["guest", "user", "owner"]
TokenScope = Literal["read", "write"]
LONGEST_NAME = 64
_LONGEST_PASSWORD = 1024
_LONGEST_EMAIL = 200
_LONGEST_LIFE = 3653 * 86_400
_USER = "Name of the user."


def account_name(help: str) -> Any:
    """A parameter that names a user, a token or a project."""
    return parameter(help, argument=True, longest=LONGEST_NAME)


class UserRow(NamedTuple):
    """A user, as shown to others."""

    name: str
    role: str
    email: str
    group: str
    created: datetime
    two_factor: bool = False
    last_sign_in: datetime | None = None


def _user_row(context: Context, user: User) -> UserRow:
    codes = second_factors_of(context.archive).is_on(user.id)
    seen = last_done(context.archive, user.name, "login", user.created)
    return UserRow(user.name, user.role, user.email, user.team, from_millis(user.created), codes, seen)


class AddUserCommand(Parameters):
    """A new user."""

    name: str = account_name("Name of the new user: letters, digits and . @ + - _.")
    role: Role = parameter("Role: guests read, users also check and run jobs, owners do everything.", default="user")
    password: str | None = parameter(
        "At least 8 characters; without a password only tokens let a user in.",
        default=None, longest=_LONGEST_PASSWORD, secret=True,
    )  # fmt: skip
    email: str | None = parameter("Where to write to.", default=None, longest=_LONGEST_EMAIL)
    group: str | None = parameter("People of one group share their projects.", default=None, longest=LONGEST_NAME)


@operation(
    "add_user", right=OWN, verb="users add", route=("POST", "/users"), status=201, audited="user added",
    subject=lambda asked: f"{asked.name} {asked.role}",
    sentence=lambda user: f"Account created: {user.name} ({user.role}).",
    examples=("letopis users add anna --role owner", "letopis users add anna --password-stdin < secret"),
)  # fmt: skip
def add_user(context: Context, asked: AddUserCommand) -> Value[UserRow]:
    """Add a user."""
    now = to_millis(context.archive.clock())
    user = accounts_of(context.archive).add(
        asked.name, asked.role, asked.password, now, email=asked.email or "", group=asked.group or ""
    )
    return Value(_user_row(context, user))


@operation(
    "list_users", right=OWN, verb="users list", route=("GET", "/users"), listed="users", creates=False,
    examples=("letopis users list --json",),
)  # fmt: skip
def list_users(context: Context, asked: NoParameters) -> Rows[UserRow]:
    """List users with their roles and groups, and when each signed in last."""
    return Rows([_user_row(context, user) for user in accounts_of(context.archive).users()])


class RemoveUserCommand(Parameters):
    """Which user to remove."""

    name: str = account_name(_USER)


class RemovedUser(NamedTuple):
    """The user that was removed."""

    name: str
    removed: bool = True


@operation(
    "remove_user", right=OWN, verb="users remove", route=("DELETE", "/users/{name}"), status=204, errors=(404,),
    creates=False, audited="user removed", sentence=lambda row: f"Account removed: {row.name}.",
    examples=("letopis users remove anna",),
)  # fmt: skip
def remove_user(context: Context, asked: RemoveUserCommand) -> Value[RemovedUser]:
    """Remove a user with all its tokens."""
    accounts_of(context.archive).remove(asked.name)
    return Value(RemovedUser(asked.name))


class SetPasswordCommand(Parameters):
    """Whose password to change, and the new password."""

    name: str = account_name(_USER)
    password: str = parameter("The new password, at least 8 characters.", longest=_LONGEST_PASSWORD, secret=True)
    old: str | None = parameter(
        "The current password; owners may leave it out.",
        default=None, longest=_LONGEST_PASSWORD, doors=NOT_CLI, secret=True,
    )  # fmt: skip


@operation(
    "set_password", right=WRITE, verb="users passwd", route=("PUT", "/users/{name}/password"), status=204,
    errors=(404, 429), creates=False, audited="password set",
    sentence=lambda row: f"Password changed: {row.name}; all sessions with the old one have ended.",
    examples=("letopis users passwd anna", "letopis users passwd anna --password-stdin < secret"),
)  # fmt: skip
def set_password(context: Context, asked: SetPasswordCommand) -> Value[UserRow]:
    """Change a password; all sessions of the user end. Owners change anybody's, users their own."""
    accounts = accounts_of(context.archive)
    if asked.name != context.user and not context.may(OWN):
        raise Refused("only an owner may change the password of somebody else")
    user = accounts.user(asked.name)
    needs_old = asked.old is not None or not context.may(OWN)
    if needs_old:
        _require_password(context, accounts, user.name, asked.old or "")
    accounts.set_password(user.name, asked.password)
    return Value(_user_row(context, user))


def _require_password(context: Context, accounts: Accounts, name: str, password: str) -> None:
    """A stolen token or session must not find out the password: tries are counted before a hash is made."""
    tries, key = context.archive.attached(old_password_tries), f"name {name}"
    wait = tries.begin(key)
    if wait:
        raise QuotaUsedUp(f"too many tries; wait {wait} seconds before the next try", wait)
    try:
        known = accounts.sign_in(name, password)
    except Busy:
        tries.give_back(key)
        raise
    if known is None:
        raise UsageError("the old password is wrong; try again")
    tries.forgive(key)


class SetRoleCommand(Parameters):
    """Which user gets which role."""

    name: str = account_name(_USER)
    role: Role = parameter("guest, user or owner.", argument=True)


@operation(
    "set_role", right=OWN, verb="users role", route=("PUT", "/users/{name}/role"), errors=(404,), creates=False,
    audited="role set", subject=lambda asked: f"{asked.name} {asked.role}",
    sentence=lambda user: f"Role changed: {user.name} ({user.role}).", examples=("letopis users role anna owner",),
)  # fmt: skip
def set_role(context: Context, asked: SetRoleCommand) -> Value[UserRow]:
    """Change the role of a user; the last owner cannot be demoted."""
    accounts = accounts_of(context.archive)
    accounts.set_role(asked.name, asked.role)
    return Value(_user_row(context, accounts.user(asked.name)))


class SetGroupCommand(Parameters):
    """Which user belongs to which group."""

    name: str = account_name(_USER)
    group: str | None = parameter(
        "Name of the group; none if left out.", default=None, argument=True, longest=LONGEST_NAME
    )


@operation(
    "set_group", right=OWN, verb="users group", route=("PUT", "/users/{name}/group"), errors=(404,), creates=False,
    audited="group set", subject=lambda asked: f"{asked.name} {asked.group or '-'}",
    sentence=lambda user: f"Group changed: {user.name} ({user.group or 'no group'}).",
    examples=("letopis users group anna editors", "letopis users group anna"),
)  # fmt: skip
def set_group(context: Context, asked: SetGroupCommand) -> Value[UserRow]:
    """Change the group of a user; people of one group share their projects."""
    accounts = accounts_of(context.archive)
    accounts.set_group(asked.name, asked.group or "")
    return Value(_user_row(context, accounts.user(asked.name)))


class CreateTokenCommand(Parameters):
    """A new token."""

    name: str = account_name("Name of the new token: letters, digits and . @ + - _.")
    user: str | None = parameter(
        "User whose rights it has; default: you. On the command line: all rights.", default=None, longest=LONGEST_NAME
    )
    scope: TokenScope = parameter("Reading only, or all rights of its user.", default="read")
    lifetime: timedelta | None = parameter(
        "Lifetime (90d); unlimited if left out.", default=None, named="for", at_least=60,
        at_most=_LONGEST_LIFE,
    )  # fmt: skip


class NewToken(NamedTuple):
    """A token, shown only this once; without a user it acts for the person who runs the archive."""

    name: str
    user: str | None
    scope: str
    token: str
    expires: datetime | None = None


@operation(
    "create_token", right=WRITE, verb="tokens create", route=("POST", "/tokens"), status=201, errors=(404,),
    audited="token created", subject=lambda asked: f"{asked.name} {asked.scope}", sentence=lambda made: made.token,
    examples=("letopis tokens create ci --scope write", "letopis tokens create ci --user anna --for 90d"),
)  # fmt: skip
def create_token(context: Context, asked: CreateTokenCommand) -> Value[NewToken]:
    """Create a token, which programs send as 'Authorization: Bearer ...'; it is shown only once."""
    accounts = accounts_of(context.archive)
    if asked.user not in (None, context.user) and not context.may(OWN):
        raise Refused("only an owner may create tokens for others")
    own = context.user if any(user.name == context.user for user in accounts.users()) else None
    name = asked.user or own
    if name is None and not context.may(OWN):
        raise Refused("this token has no user and cannot create tokens; sign in")
    user = accounts.user(name) if name else None
    now = context.archive.clock()
    expires = None if asked.lifetime is None else now + asked.lifetime
    until = None if expires is None else to_millis(expires)
    token = accounts.create_token(asked.name, user, asked.scope, to_millis(now), until)
    return Value(NewToken(asked.name, name, asked.scope, token, expires))


class TokenRow(NamedTuple):
    """A token without its secret; `last_used` is updated at most once a minute."""

    name: str
    user: str | None
    scope: str
    created: datetime
    last_used: datetime | None = None
    expires: datetime | None = None


@operation(
    "list_tokens", right=WRITE, verb="tokens list", route=("GET", "/tokens"), listed="tokens", creates=False,
    examples=("letopis tokens list",),
)  # fmt: skip
def list_tokens(context: Context, asked: NoParameters) -> Rows[TokenRow]:
    """List your tokens, their last use and when they expire; owners see all. Secrets are not stored."""
    return Rows([
        TokenRow(token.name, token.owner, token.scope, *map(_moment, (token.created, token.used, token.expires)))
        for token in accounts_of(context.archive).tokens()
        if context.may(OWN) or token.owner == context.user
    ])  # fmt: skip


def _moment(time: int | None) -> Any:
    return None if time is None else from_millis(time)


class RevokeTokenCommand(Parameters):
    """Which token to revoke."""

    name: str = account_name("Which token.")


class RevokedToken(NamedTuple):
    """The token that was revoked."""

    name: str
    revoked: bool = True


@operation(
    "revoke_token", right=WRITE, verb="tokens revoke", route=("DELETE", "/tokens/{name}"), status=204, errors=(404,),
    creates=False, audited="token revoked", sentence=lambda row: f"Token revoked: {row.name}.",
    examples=("letopis tokens revoke ci",),
)  # fmt: skip
def revoke_token(context: Context, asked: RevokeTokenCommand) -> Value[RevokedToken]:
    """Revoke a token; it stops working. Users revoke their own, owners any."""
    accounts = accounts_of(context.archive)
    mine = any(token.name == asked.name and token.owner == context.user for token in accounts.tokens())
    if not mine and not context.may(OWN):
        raise NotFound(f"you have no token '{asked.name}'; see the list of your tokens")
    accounts.revoke(asked.name)
    return Value(RevokedToken(asked.name))


class AuditQuery(Parameters):
    """How many rows of the log."""

    limit: int = parameter("Maximum number of rows.", default=100, at_least=1, at_most=1000)


@operation(
    "list_audit", right=OWN, verb="audit", route=("GET", "/audit"), listed="audit",
    columns=("time", "who", "action", "subject", "address"), creates=False,
    examples=("letopis audit", "letopis audit --limit 1000 --json"),
)  # fmt: skip
def list_audit(context: Context, asked: AuditQuery) -> Rows[AuditEntry]:
    """List who changed what in this archive, newest first."""
    return Rows(audit_entries(context.archive, asked.limit))


JOIN = "/join?invitation="
"""Where the web interface takes invitations."""
_DAY = 86_400


class InviteCommand(Parameters):
    """The role of the account, and how long the link is valid."""

    role: Role = parameter("Role of the account: guests read, users also check and run jobs, owners do everything.",
                           default="user")  # fmt: skip
    group: str | None = parameter("People of one group share their projects.", default=None, longest=LONGEST_NAME)
    lifetime: timedelta = parameter(
        "How long the link can be used, once.", default=timedelta(days=7), named="for", at_least=60, at_most=30 * _DAY
    )


@dataclass(frozen=True, slots=True)
class InvitationRow:
    """An unused invitation, without its text."""

    id: int
    role: str
    group: str
    inviter: str
    created: datetime
    expires: datetime


@dataclass(frozen=True, slots=True)
class NewInvitation(InvitationRow):
    """An invitation with its text, shown only this once: `path` is its path in the web interface."""

    token: str
    path: str


def _row(one: Invitation) -> InvitationRow:
    return InvitationRow(one.id, one.role, one.team, one.inviter, from_millis(one.created), from_millis(one.until))


@operation(
    "invite_user", right=OWN, verb="users invite", route=("POST", "/invitations"), status=201, audited="user invited",
    subject=lambda asked: asked.role,
    sentence=lambda made: f"{made.path}\nOpening this path of the web interface creates an account ({made.role}).",
    examples=("letopis users invite", "letopis users invite --role guest --for 1d"),
)  # fmt: skip
def invite_user(context: Context, asked: InviteCommand) -> Value[NewInvitation]:
    """Create an invitation link for one account; it expires after some days and is shown only once."""
    made, token = invitations_of(context.archive).add(
        asked.role, asked.group or "", context.user, to_millis(context.moment()),
        int(asked.lifetime.total_seconds() * 1000),
    )  # fmt: skip
    shown = _row(made)
    return Value(NewInvitation(
        shown.id, shown.role, shown.group, shown.inviter, shown.created, shown.expires, token, JOIN + token
    ))  # fmt: skip


@operation(
    "list_invitations", right=OWN, verb="users invitations", route=("GET", "/invitations"), listed="invitations",
    creates=False, examples=("letopis users invitations",),
)  # fmt: skip
def list_invitations(context: Context, asked: NoParameters) -> Rows[InvitationRow]:
    """List the invitations that can still be used."""
    return Rows([_row(one) for one in invitations_of(context.archive).waiting(to_millis(context.moment()))])


class RevokeInvitationCommand(Parameters):
    """Which invitation to revoke."""

    id: int = parameter("Number of the invitation.", argument=True, at_least=1, at_most=2**63 - 1)


class RevokedInvitation(NamedTuple):
    """The invitation that was revoked."""

    id: int
    revoked: bool = True


@operation(
    "revoke_invitation", right=OWN, verb="users uninvite", route=("DELETE", "/invitations/{id}"), status=204,
    errors=(404,), creates=False, audited="invitation revoked", sentence=lambda row: f"Invitation revoked: {row.id}.",
    examples=("letopis users uninvite 3",),
)  # fmt: skip
def revoke_invitation(context: Context, asked: RevokeInvitationCommand) -> Value[RevokedInvitation]:
    """Revoke an invitation; its link stops working."""
    invitations_of(context.archive).revoke(asked.id)
    return Value(RevokedInvitation(asked.id))
