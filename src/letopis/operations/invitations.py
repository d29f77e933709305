"""Invitations: an owner creates a link, with which one person creates their own account."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from letopis.archive import OWN
from letopis.archive.accounts import Invitation, invitations_of
from letopis.model import from_millis, to_millis
from letopis.operations.accounts import LONGEST_NAME, AccountsQuery, Role
from letopis.operations.answers import Rows, Value
from letopis.operations.context import Context
from letopis.operations.operation import operation
from letopis.operations.parameters import Parameters, parameter

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
def list_invitations(context: Context, asked: AccountsQuery) -> Rows[InvitationRow]:
    """List the invitations that can still be used."""
    return Rows([_row(one) for one in invitations_of(context.archive).waiting(to_millis(context.moment()))])


class RevokeInvitationCommand(Parameters):
    """Which invitation to revoke."""

    id: int = parameter("Number of the invitation.", argument=True, at_least=1, at_most=2**63 - 1)


@dataclass(frozen=True, slots=True)
class RevokedInvitation:
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
