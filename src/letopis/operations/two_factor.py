"""The second factor of sign-in: switched on with an authenticator app, off with a code or by an owner."""

from __future__ import annotations

from letopis.archive import OWN, WRITE
from letopis.archive.accounts import User, accounts_of, authenticator_uri, second_factors_of, secret_text
from letopis.errors import Refused
from letopis.model import to_millis
from letopis.operations.accounts import account_name
from letopis.operations.context import Context
from letopis.operations.operation import Value, operation
from letopis.operations.parameters import NOT_CLI, Parameters, parameter
from letopis.tuples import NamedTuple

ISSUER = "Letopis"
"""How authenticator apps call the service."""
_CODE = "The code that the app shows now."
_LONGEST_CODE = 64


def _own_user(context: Context, name: str) -> User:
    """The user whose second factor is meant: one's own; owners may name anybody."""
    if name != context.user and not context.may(OWN):
        raise Refused("only an owner may change the second factor of somebody else")
    return accounts_of(context.archive).user(name)


class BeginTwoFactorCommand(Parameters):
    """Whose account."""

    name: str = account_name("Name of the user.")


class TwoFactorSecret(NamedTuple):
    """What an authenticator app needs: the secret as text, or the address that contains it."""

    name: str
    secret: str
    uri: str


@operation(
    "begin_two_factor", right=WRITE, route=("POST", "/users/{name}/two-factor"), errors=(404,),
    audited="second factor begun", creates=False,
)  # fmt: skip
def begin_two_factor(context: Context, asked: BeginTwoFactorCommand) -> Value[TwoFactorSecret]:
    """Set up an authenticator app as second factor; it takes effect after a first code."""
    user = _own_user(context, asked.name)
    secret = second_factors_of(context.archive).begin(user.id)
    return Value(shown_secret(user, secret))


def shown_secret(user: User, secret: bytes) -> TwoFactorSecret:
    """A secret as its user needs it."""
    return TwoFactorSecret(user.name, secret_text(secret), authenticator_uri(secret, user.name, ISSUER))


class ConfirmTwoFactorCommand(Parameters):
    """Whose account, and its first code."""

    name: str = account_name("Name of the user.")
    code: str = parameter(_CODE, longest=_LONGEST_CODE, secret=True)


class RecoveryCodes(NamedTuple):
    """Each works once instead of a code; shown only this once."""

    name: str
    recovery_codes: list[str]


@operation(
    "confirm_two_factor", right=WRITE, route=("PUT", "/users/{name}/two-factor"), errors=(404,),
    audited="second factor on", creates=False,
)  # fmt: skip
def confirm_two_factor(context: Context, asked: ConfirmTwoFactorCommand) -> Value[RecoveryCodes]:
    """Switch the second factor on with a first code of the app; the answer has the recovery codes."""
    user = _own_user(context, asked.name)
    now = to_millis(context.moment()) // 1000
    return Value(RecoveryCodes(user.name, second_factors_of(context.archive).confirm(user.id, asked.code, now)))


class EndTwoFactorCommand(Parameters):
    """Whose account."""

    name: str = account_name("Name of the user.")
    code: str | None = parameter(
        "A code of the app, or a recovery code; needed for one's own account.",
        default=None, longest=_LONGEST_CODE, doors=NOT_CLI, secret=True,
    )  # fmt: skip


class TwoFactorState(NamedTuple):
    """Whether an account also signs in with a code."""

    name: str
    two_factor: bool


@operation(
    "end_two_factor", right=WRITE, verb="users two-factor-off", route=("POST", "/users/{name}/two-factor/off"),
    errors=(404, 429), creates=False, audited="second factor off",
    sentence=lambda row: f"{row.name} signs in with the password alone.",
    examples=("letopis users two-factor-off anna",),
)  # fmt: skip
def end_two_factor(context: Context, asked: EndTwoFactorCommand) -> Value[TwoFactorState]:
    """Switch the second factor of a user off: your own with a code; owners, that of anybody."""
    user, factors = _own_user(context, asked.name), second_factors_of(context.archive)
    if user.name == context.user and factors.is_on(user.id):
        factors.check(user.id, asked.code or "", to_millis(context.moment()) // 1000)
    factors.off(user.id)
    return Value(TwoFactorState(user.name, two_factor=False))
