"""Verbs for accounts: users, tokens, projects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts, AuditLog, AuditRow, Project, Projects
from letopis.cli.context import CliContext, VerbGroup, shared_options, verb
from letopis.errors import UsageError
from letopis.model import from_millis, to_millis
from letopis.model.rights import ROLES, SCOPES
from letopis.urls import parse_user_url


def _audit(archive: Archive, action: str, subject: str) -> None:
    AuditLog(archive.catalog.database).note(AuditRow(to_millis(archive.clock()), "command line", action, subject, ""))


def _password(stdin: bool) -> str:
    if stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for a password; give it with --password-stdin")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))


@click.group("users", cls=VerbGroup)
@shared_options
def users_verb() -> None:
    """People who may sign in: guests read, users also check and ask, owners do everything."""


@click.group("tokens", cls=VerbGroup)
@shared_options
def tokens_verb() -> None:
    """Secrets for programs, sent as 'Authorization: Bearer ...'."""


@click.group("projects", cls=VerbGroup)
@shared_options
def projects_verb() -> None:
    """Named sets of pages."""


users_verb.examples = ("letopis users add anna --role owner", "letopis users list")
tokens_verb.examples = ("letopis tokens create ci --scope write", "letopis tokens revoke ci")
projects_verb.examples = ("letopis projects add news https://example.org/", "letopis projects show news")

stdin_option: Callable[[Any], Any] = click.option(
    "--password-stdin", "stdin", is_flag=True, help="Read the password from standard input."
)


@verb("add", "letopis users add anna --role user --password-stdin < secret")
@click.argument("name")
@click.option("--role", type=click.Choice(list(ROLES)), default="user", show_default=True, help="What it may do.")
@click.option("--email", default="", help="Where to write to.")
@click.option("--group", default="", help="People of one group share their projects.")
@stdin_option
def users_add(given: CliContext, name: str, role: str, email: str, group: str, stdin: bool) -> None:
    """Make a user."""
    password = _password(stdin)
    with given.open() as archive:
        now = to_millis(archive.clock())
        user = Accounts(archive.catalog.database).add(name, role, password, now, email=email, group=group)
        _audit(archive, "user added", f"{name} {role}")
    given.output.row({"name": user.name, "role": user.role}, f"{user.name} is now a {user.role}")


@verb("list", "letopis users list --json")
def users_list(given: CliContext) -> None:
    """List users with their roles."""
    with given.open(create=False) as archive:
        users = Accounts(archive.catalog.database).users()
    rows = [
        {"name": u.name, "role": u.role, "email": u.email, "group": u.team, "created": from_millis(u.created)}
        for u in users
    ]
    given.output.rows(rows, ("name", "role", "email", "group", "created"))


@verb("remove", "letopis users remove anna")
@click.argument("name")
def users_remove(given: CliContext, name: str) -> None:
    """Forget a user with all its tokens."""
    with given.open(create=False) as archive:
        Accounts(archive.catalog.database).remove(name)
        _audit(archive, "user removed", name)
    given.output.row({"name": name, "removed": True}, f"{name} is gone")


@verb("passwd", "letopis users passwd anna")
@click.argument("name")
@stdin_option
def users_passwd(given: CliContext, name: str, stdin: bool) -> None:
    """Give a user a new password; all its sessions end."""
    with given.open(create=False) as archive:
        accounts = Accounts(archive.catalog.database)
        accounts.user(name)
        accounts.set_password(name, _password(stdin))
        _audit(archive, "password set", name)
    given.output.row({"name": name}, f"{name} has a new password")


@verb("create", "letopis tokens create ci --user anna --scope write")
@click.argument("name")
@click.option("--user", help="Whose rights it has; without one, those of whoever runs the archive.")
@click.option("--scope", type=click.Choice(list(SCOPES)), default="read", show_default=True, help="What it may do.")
def tokens_create(given: CliContext, name: str, user: str | None, scope: str) -> None:
    """Make a token; it is printed this once."""
    with given.open() as archive:
        accounts = Accounts(archive.catalog.database)
        owner = accounts.user(user) if user else None
        token = accounts.create_token(name, owner, scope, to_millis(archive.clock()))
        _audit(archive, "token created", f"{name} {scope}")
    given.output.row({"name": name, "user": user, "scope": scope, "token": token}, token)


@verb("list", "letopis tokens list")
def tokens_list(given: CliContext) -> None:
    """List tokens; the secrets themselves are nowhere."""
    with given.open(create=False) as archive:
        tokens = Accounts(archive.catalog.database).tokens()
    rows = [{"name": t.name, "user": t.owner, "scope": t.scope, "created": from_millis(t.created)} for t in tokens]
    given.output.rows(rows, ("name", "user", "scope", "created"))


@verb("revoke", "letopis tokens revoke ci")
@click.argument("name")
def tokens_revoke(given: CliContext, name: str) -> None:
    """End a token."""
    with given.open(create=False) as archive:
        Accounts(archive.catalog.database).revoke(name)
        _audit(archive, "token revoked", name)
    given.output.row({"name": name, "revoked": True}, f"token {name} is void")


def _project_row(project: Project) -> dict[str, Any]:
    return {
        "name": project.name,
        "owner": project.owner,
        "pages": len(project.urls),
        "urls": list(project.urls),
        "created": from_millis(project.created),
    }


@verb("add", "letopis projects add news https://example.org/")
@click.argument("name")
@click.argument("urls", nargs=-1, metavar="[URL]...")
def projects_add(given: CliContext, name: str, urls: tuple[str, ...]) -> None:
    """Make a project, or put more pages into one."""
    addresses = [parse_user_url(url) for url in urls]
    with given.open() as archive:
        made = Projects(archive.catalog.database).add(name, "", addresses, to_millis(archive.clock()))
        _audit(archive, "project added to", name)
    given.output.row(_project_row(made), f"project {made.name} has {len(made.urls)} pages")


@verb("list", "letopis projects list")
def projects_list(given: CliContext) -> None:
    """List projects."""
    with given.open(create=False) as archive:
        rows = [_project_row(project) for project in Projects(archive.catalog.database).list()]
    given.output.rows(rows, ("name", "owner", "pages", "created"))


@verb("show", "letopis projects show news")
@click.argument("name")
def projects_show(given: CliContext, name: str) -> None:
    """Show the pages of a project."""
    with given.open(create=False) as archive:
        project = Projects(archive.catalog.database).show(name)
    given.output.row(_project_row(project), "\n".join(project.urls))


@verb("remove", "letopis projects remove news")
@click.argument("name")
def projects_remove(given: CliContext, name: str) -> None:
    """Forget a project; its pages stay in the archive."""
    with given.open(create=False) as archive:
        Projects(archive.catalog.database).remove(name)
        _audit(archive, "project removed", name)
    given.output.row({"name": name, "removed": True}, f"project {name} is gone")


for _command in (users_add, users_list, users_remove, users_passwd):
    users_verb.add_command(_command)
for _command in (tokens_create, tokens_list, tokens_revoke):
    tokens_verb.add_command(_command)
for _command in (projects_add, projects_list, projects_show, projects_remove):
    projects_verb.add_command(_command)
