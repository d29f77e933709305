"""Accounts: users with their roles and groups, tokens for programs, projects, and the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import (
    Project,
    ProjectPart,
    User,
    accounts_of,
    is_in_parts,
    project_pages,
    project_part,
    projects_of,
)
from letopis.archive.audit import AuditEntry, audit_entries
from letopis.archive.queues import crawl_plans
from letopis.crawl.selection import moved_seeds
from letopis.errors import NotFound, Refused, UsageError
from letopis.model import from_millis, to_millis
from letopis.operations.answers import Rows, Value
from letopis.operations.context import Context
from letopis.operations.operation import operation
from letopis.operations.parameters import NOT_CLI, Parameters, parameter
from letopis.urls import Scope, ScopeKind, parse_user_url, site

Role = Literal["guest", "user", "owner"]
TokenScope = Literal["read", "write"]
_LONGEST_NAME = 64
_LONGEST_PASSWORD = 1024
_LONGEST_EMAIL = 200
MAX_PROJECT_URLS = 10_000
"""Addresses that one command puts into a project or takes out of it."""
_USER = "Name of the user."
_PROJECT = "Name of the project."


def _name(help: str) -> Any:
    """A parameter that names a user, a token or a project."""
    return parameter(help, argument=True, longest=_LONGEST_NAME)


class AccountsQuery(Parameters):
    """All that whoever asks may see."""


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user, as others may see it."""

    name: str
    role: str
    email: str
    group: str
    created: datetime


def _user_row(user: User) -> UserRow:
    return UserRow(user.name, user.role, user.email, user.team, from_millis(user.created))


class AddUserCommand(Parameters):
    """A new user."""

    name: str = _name("Name of the new user: letters, digits and . @ + - _.")
    role: Role = parameter("What it may do: guests read, users also check and ask, owners do all.", default="user")
    password: str | None = parameter(
        "At least 8 characters; without a password only tokens let a user in.",
        default=None, longest=_LONGEST_PASSWORD, secret=True,
    )  # fmt: skip
    email: str | None = parameter("Where to write to.", default=None, longest=_LONGEST_EMAIL)
    group: str | None = parameter("People of one group share their projects.", default=None, longest=_LONGEST_NAME)


@operation(
    "add_user",
    right=OWN,
    verb="users add",
    route=("POST", "/users"),
    status=201,
    audited="user added",
    subject=lambda asked: f"{asked.name} {asked.role}",
    sentence=lambda user: f"Account created: {user.name} ({user.role}).",
    examples=("letopis users add anna --role owner", "letopis users add anna --password-stdin < secret"),
)
def add_user(context: Context, asked: AddUserCommand) -> Value[UserRow]:
    """Add a user."""
    now = to_millis(context.archive.clock())
    user = accounts_of(context.archive).add(
        asked.name, asked.role, asked.password, now, email=asked.email or "", group=asked.group or ""
    )
    return Value(_user_row(user))


@operation(
    "list_users", right=OWN, verb="users list", route=("GET", "/users"), listed="users", creates=False,
    examples=("letopis users list --json",),
)  # fmt: skip
def list_users(context: Context, asked: AccountsQuery) -> Rows[UserRow]:
    """List users with their roles and groups."""
    return Rows([_user_row(user) for user in accounts_of(context.archive).users()])


class RemoveUserCommand(Parameters):
    """Whom to remove."""

    name: str = _name(_USER)


@dataclass(frozen=True, slots=True)
class RemovedUser:
    """Who was removed."""

    name: str
    removed: bool = True


@operation(
    "remove_user",
    right=OWN,
    verb="users remove",
    route=("DELETE", "/users/{name}"),
    status=204,
    errors=(404,),
    creates=False,
    audited="user removed",
    sentence=lambda row: f"Account removed: {row.name}.",
    examples=("letopis users remove anna",),
)
def remove_user(context: Context, asked: RemoveUserCommand) -> Value[RemovedUser]:
    """Remove a user with all its tokens."""
    accounts_of(context.archive).remove(asked.name)
    return Value(RemovedUser(asked.name))


class SetPasswordCommand(Parameters):
    """Whose password, and which."""

    name: str = _name(_USER)
    password: str = parameter("The new password, at least 8 characters.", longest=_LONGEST_PASSWORD, secret=True)
    old: str | None = parameter(
        "The password that holds now; owners may leave it out.",
        default=None, longest=_LONGEST_PASSWORD, doors=NOT_CLI, secret=True,
    )  # fmt: skip


@operation(
    "set_password",
    right=WRITE,
    verb="users passwd",
    route=("PUT", "/users/{name}/password"),
    status=204,
    errors=(404,),
    creates=False,
    audited="password set",
    sentence=lambda row: f"Password changed: {row.name}; all sessions with the old one have ended.",
    examples=("letopis users passwd anna", "letopis users passwd anna --password-stdin < secret"),
)
def set_password(context: Context, asked: SetPasswordCommand) -> Value[UserRow]:
    """Change a password; all sessions of the user end. Owners change anybody's, users their own."""
    accounts = accounts_of(context.archive)
    if asked.name != context.user and not context.may(OWN):
        raise Refused("only an owner may change the password of somebody else")
    user = accounts.user(asked.name)
    needs_old = asked.old is not None or not context.may(OWN)
    if needs_old and accounts.sign_in(user.name, asked.old or "") is None:
        raise UsageError("the old password is wrong; try again")
    accounts.set_password(user.name, asked.password)
    return Value(_user_row(user))


class SetRoleCommand(Parameters):
    """Who gets which role."""

    name: str = _name(_USER)
    role: Role = parameter("guest, user or owner.", argument=True)


@operation(
    "set_role",
    right=OWN,
    verb="users role",
    route=("PUT", "/users/{name}/role"),
    errors=(404,),
    creates=False,
    audited="role set",
    subject=lambda asked: f"{asked.name} {asked.role}",
    sentence=lambda user: f"Role changed: {user.name} ({user.role}).",
    examples=("letopis users role anna owner",),
)
def set_role(context: Context, asked: SetRoleCommand) -> Value[UserRow]:
    """Change the role of a user; the last owner stays one."""
    accounts = accounts_of(context.archive)
    accounts.set_role(asked.name, asked.role)
    return Value(_user_row(accounts.user(asked.name)))


class SetGroupCommand(Parameters):
    """Who belongs to which group."""

    name: str = _name(_USER)
    group: str | None = parameter(
        "Name of the group; none where it is left out.", default=None, argument=True, longest=_LONGEST_NAME
    )


@operation(
    "set_group",
    right=OWN,
    verb="users group",
    route=("PUT", "/users/{name}/group"),
    errors=(404,),
    creates=False,
    audited="group set",
    subject=lambda asked: f"{asked.name} {asked.group or '-'}",
    sentence=lambda user: f"Group changed: {user.name} ({user.group or 'no group'}).",
    examples=("letopis users group anna editors", "letopis users group anna"),
)
def set_group(context: Context, asked: SetGroupCommand) -> Value[UserRow]:
    """Change the group of a user; people of one group share their projects."""
    accounts = accounts_of(context.archive)
    accounts.set_group(asked.name, asked.group or "")
    return Value(_user_row(accounts.user(asked.name)))


class CreateTokenCommand(Parameters):
    """A new token."""

    name: str = _name("Name of the new token: letters, digits and . @ + - _.")
    user: str | None = parameter(
        "Whose rights it has; default: yours. On the command line: everything.", default=None, longest=_LONGEST_NAME
    )
    scope: TokenScope = parameter("Whether it only reads.", default="read")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token, shown this once; without a user it acts for whoever runs the archive."""

    name: str
    user: str | None
    scope: str
    token: str


@operation(
    "create_token",
    right=WRITE,
    verb="tokens create",
    route=("POST", "/tokens"),
    status=201,
    errors=(404,),
    audited="token created",
    subject=lambda asked: f"{asked.name} {asked.scope}",
    sentence=lambda made: made.token,
    examples=("letopis tokens create ci --scope write", "letopis tokens create ci --user anna"),
)
def create_token(context: Context, asked: CreateTokenCommand) -> Value[NewToken]:
    """Create a token, which programs send as 'Authorization: Bearer ...'; it is shown this once."""
    accounts = accounts_of(context.archive)
    if asked.user not in (None, context.user) and not context.may(OWN):
        raise Refused("only an owner may create tokens for others")
    own = context.user if any(user.name == context.user for user in accounts.users()) else None
    name = asked.user or own
    if name is None and not context.may(OWN):
        raise Refused("this token belongs to no user and creates no others; sign in")
    user = accounts.user(name) if name else None
    token = accounts.create_token(asked.name, user, asked.scope, to_millis(context.archive.clock()))
    return Value(NewToken(asked.name, name, asked.scope, token))


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token without its secret."""

    name: str
    user: str | None
    scope: str
    created: datetime


@operation(
    "list_tokens", right=WRITE, verb="tokens list", route=("GET", "/tokens"), listed="tokens", creates=False,
    examples=("letopis tokens list",),
)  # fmt: skip
def list_tokens(context: Context, asked: AccountsQuery) -> Rows[TokenRow]:
    """List your tokens; owners see all. The secrets themselves are nowhere."""
    return Rows([
        TokenRow(token.name, token.owner, token.scope, from_millis(token.created))
        for token in accounts_of(context.archive).tokens()
        if context.may(OWN) or token.owner == context.user
    ])  # fmt: skip


class RevokeTokenCommand(Parameters):
    """Which token ends."""

    name: str = _name("Which token.")


@dataclass(frozen=True, slots=True)
class RevokedToken:
    """Which token ended."""

    name: str
    revoked: bool = True


@operation(
    "revoke_token",
    right=WRITE,
    verb="tokens revoke",
    route=("DELETE", "/tokens/{name}"),
    status=204,
    errors=(404,),
    creates=False,
    audited="token revoked",
    sentence=lambda row: f"Token revoked: {row.name}.",
    examples=("letopis tokens revoke ci",),
)
def revoke_token(context: Context, asked: RevokeTokenCommand) -> Value[RevokedToken]:
    """Revoke a token: it lets nobody in any more. Users revoke their own, owners any."""
    accounts = accounts_of(context.archive)
    mine = any(token.name == asked.name and token.owner == context.user for token in accounts.tokens())
    if not mine and not context.may(OWN):
        raise NotFound(f"you have no token '{asked.name}'; see the list of your tokens")
    accounts.revoke(asked.name)
    return Value(RevokedToken(asked.name))


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A named set of pages: single addresses, whole sites, all under a prefix, and what crawls reach.

    `pages` counts the addresses, and what is archived of the rest; to a million and no further.
    """

    name: str
    owner: str
    pages: int
    urls: tuple[str, ...]
    sites: tuple[str, ...]
    prefixes: tuple[str, ...]
    crawls: tuple[str, ...]
    created: datetime


_MOST_COUNTED = 1_000_000


def _project_row(archive: Archive, project: Project) -> ProjectRow:
    pages = len(project.urls)
    if project.parts:
        fits, listed = is_in_parts(project), set(project.urls)
        rows = islice(project_pages(archive, project), _MOST_COUNTED)
        pages += sum(row.url not in listed and fits(row.url) for row in rows)
    sites, prefixes, crawls = (
        tuple(part.name for part in project.parts if part.kind == kind) for kind in ("site", "prefix", "crawl")
    )
    created = from_millis(project.created)
    return ProjectRow(project.name, project.owner, pages, project.urls, sites, prefixes, crawls, created)


_MAX_PARTS = 100


def _parts_parameter(kind: str, help: str) -> Any:
    return parameter(help, default=(), named=kind, metavar="URL", at_most=_MAX_PARTS)


def _named_parts(asked: AddToProjectCommand | RemoveProjectCommand) -> list[tuple[str, str]]:
    """Kinds and names of the parts that were asked for."""
    sites = [("site", site(name)) for name in asked.sites]
    prefixes = [("prefix", parse_user_url(url)) for url in asked.prefixes]
    return [*sites, *prefixes, *(("crawl", parse_user_url(url)) for url in asked.crawls)]


def _part(archive: Archive, kind: str, name: str) -> ProjectPart:
    """A new part; NotFound for a crawl that nobody asked for."""
    if kind == "site":
        return project_part(kind, name, Scope(ScopeKind.HOST, (f"http://{name}/",)))
    if kind == "prefix":
        return project_part(kind, name, Scope(ScopeKind.PREFIX, (name,)))
    plan = next((plan for plan in reversed(crawl_plans(archive)) if name in plan.seeds), None)
    if plan is None:
        raise NotFound(f"no crawl begins at {name}; name one of its seeds, or the site instead")
    seeds = (*plan.seeds, *moved_seeds(archive, plan.seeds))
    return project_part(kind, name, Scope(ScopeKind(plan.scope), seeds, plan.include, plan.exclude))


class AddToProjectCommand(Parameters):
    """A new project, or more addresses for one."""

    name: str = _name("Name of the project: letters, digits and . @ + - _.")
    urls: tuple[str, ...] = parameter(
        "Addresses of its pages.", default=(), argument=True, metavar="[URL]...", at_most=MAX_PROJECT_URLS
    )
    sites: tuple[str, ...] = _parts_parameter("site", "All pages of this site, also those archived later.")
    prefixes: tuple[str, ...] = _parts_parameter("prefix", "All pages in this folder of a site, and below it.")
    crawls: tuple[str, ...] = _parts_parameter("crawl", "All pages that the crawl from this seed reaches.")
    owner: str | None = parameter(
        "The user whom it belongs to; default: you. Only owners name somebody else.",
        default=None, longest=_LONGEST_NAME,
    )  # fmt: skip


@operation(
    "add_to_project",
    right=WRITE,
    verb="projects add",
    route=("POST", "/projects"),
    status=201,
    errors=(404,),
    audited="project added to",
    sentence=lambda row: f"Project {row.name} has {row.pages} pages.",
    examples=(
        "letopis projects add news https://example.org/",
        "letopis projects add news --site example.org --prefix https://example.net/press/",
        "letopis projects add news --owner anna",
    ),
)
def add_to_project(context: Context, asked: AddToProjectCommand) -> Value[ProjectRow]:
    """Make a project, or add pages to one of yours or of your group."""
    urls = [parse_user_url(url) for url in asked.urls]
    parts = [_part(context.archive, kind, name) for kind, name in _named_parts(asked)]
    projects = projects_of(context.archive)
    there = next((project for project in projects.list() if project.name == asked.name), None)
    if there is not None:
        _require_change(context, there)
    if asked.owner is not None:
        if asked.owner != context.user and not context.may(OWN):
            raise Refused("only an owner may give a project to somebody else")
        accounts_of(context.archive).user(asked.owner)
    owner = asked.owner or ("" if there is not None else context.user)
    made = projects.add(asked.name, owner, urls, to_millis(context.archive.clock()), parts)
    return Value(_project_row(context.archive, made))


def may_change_project(context: Context, owner: str) -> bool:
    """Whether whoever asks may change a project of that user: it is theirs, of their group, or they own the archive."""
    return context.may(OWN) or (bool(context.user) and accounts_of(context.archive).share(owner, context.user))


def _require_change(context: Context, project: Project) -> None:
    if not may_change_project(context, project.owner):
        raise Refused(f"project '{project.name}' belongs to somebody else; choose another name or ask an owner")


@operation(
    "list_projects",
    right=READ,
    verb="projects list",
    route=("GET", "/projects"),
    listed="projects",
    columns=("name", "owner", "pages", "created"),
    examples=("letopis projects list",),
)
def list_projects(context: Context, asked: AccountsQuery) -> Rows[ProjectRow]:
    """List projects with their pages."""
    return Rows([_project_row(context.archive, project) for project in projects_of(context.archive).list()])


class ProjectQuery(Parameters):
    """Which project."""

    name: str = _name(_PROJECT)


def _project_sentence(row: ProjectRow) -> str:
    parts = {"site": row.sites, "prefix": row.prefixes, "crawl": row.crawls}
    return "\n".join((*row.urls, *(f"{kind} {name}" for kind, names in parts.items() for name in names)))


@operation(
    "show_project",
    right=READ,
    verb="projects show",
    route=("GET", "/projects/{name}"),
    errors=(404,),
    sentence=_project_sentence,
    examples=("letopis projects show news",),
)
def show_project(context: Context, asked: ProjectQuery) -> Value[ProjectRow]:
    """Show the pages of a project."""
    return Value(_project_row(context.archive, projects_of(context.archive).show(asked.name)))


class RemoveProjectCommand(Parameters):
    """A project, or addresses in it."""

    name: str = _name(_PROJECT)
    urls: tuple[str, ...] = parameter(
        "Take only these addresses out of it.",
        default=(), named="url", argument=True, metavar="[URL]...", at_most=MAX_PROJECT_URLS,
    )  # fmt: skip
    sites: tuple[str, ...] = _parts_parameter("site", "Take this site out of it.")
    prefixes: tuple[str, ...] = _parts_parameter("prefix", "Take this prefix out of it.")
    crawls: tuple[str, ...] = _parts_parameter("crawl", "Take the crawl from this seed out of it.")


@dataclass(frozen=True, slots=True)
class RemovedProject:
    """What was removed: the whole project, or these addresses and parts of it."""

    name: str
    removed: bool
    urls: tuple[str, ...]
    parts: tuple[str, ...]


@operation(
    "remove_project",
    right=WRITE,
    verb="projects remove",
    route=("DELETE", "/projects/{name}"),
    status=204,
    errors=(404,),
    creates=False,
    audited="project removed",
    subject=lambda asked: " ".join((asked.name, *asked.urls, *asked.sites, *asked.prefixes, *asked.crawls)),
    sentence=lambda row: (
        f"Removed: {row.name}." if row.removed else f"Removed from {row.name}: {', '.join((*row.urls, *row.parts))}."
    ),
    examples=("letopis projects remove news", "letopis projects remove news --site example.org"),
)
def remove_project(context: Context, asked: RemoveProjectCommand) -> Value[RemovedProject]:
    """Remove a project of yours or of your group, or single pages from it; the archive keeps the pages."""
    projects = projects_of(context.archive)
    there = projects.show(asked.name)
    _require_change(context, there)
    urls = tuple(parse_user_url(url) for url in asked.urls)
    for url in urls:
        if url not in there.urls:
            raise NotFound(f"{url} is not in project '{asked.name}'; show the project to see its pages")
    parts = [_part_of(there, kind, name) for kind, name in _named_parts(asked)]
    if urls or parts:
        projects.take_out(asked.name, urls, parts)
    else:
        projects.remove(asked.name)
    taken = tuple(f"{part.kind} {part.name}" for part in parts)
    return Value(RemovedProject(asked.name, not (urls or parts), urls, taken))


def _part_of(project: Project, kind: str, name: str) -> ProjectPart:
    for part in project.parts:
        if (part.kind, part.name) == (kind, name):
            return part
    raise NotFound(f"{kind} {name} is not in project '{project.name}'; show the project to see its parts")


class AuditQuery(Parameters):
    """How much of the log."""

    limit: int = parameter("Most lines.", default=100, at_least=1, at_most=1000)


@operation(
    "list_audit",
    right=OWN,
    verb="audit",
    route=("GET", "/audit"),
    listed="audit",
    columns=("time", "who", "action", "subject", "address"),
    creates=False,
    examples=("letopis audit", "letopis audit --limit 1000 --json"),
)
def list_audit(context: Context, asked: AuditQuery) -> Rows[AuditEntry]:
    """List who changed what in this archive, newest first."""
    return Rows(audit_entries(context.archive, asked.limit))
