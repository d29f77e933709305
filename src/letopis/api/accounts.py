"""REST for users, tokens, projects and the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from letopis.api.access import Principal, PrincipalDep
from letopis.api.models import (
    AuditEntry,
    AuditShape,
    NewTokenShape,
    PasswordBody,
    ProjectBody,
    ProjectShape,
    ProjectsShape,
    TokenBody,
    TokenShape,
    TokensShape,
    UserBody,
    UserShape,
    UsersShape,
)
from letopis.api.requests import ArchiveDep, problem_responses
from letopis.archive import Archive
from letopis.catalog.accounts import Accounts, AuditLog, AuditRow, Project, Projects, User
from letopis.errors import NotFound, Refused
from letopis.model import from_millis, to_millis
from letopis.model.rights import OWN
from letopis.urls import parse_user_url

router = APIRouter(tags=["accounts"])
NameInPath = Annotated[str, Path(max_length=64)]


def _audited(request: Request, archive: Archive, who: Principal, action: str, subject: str) -> None:
    address = request.client.host if request.client else ""
    AuditLog(archive.catalog.database).note(AuditRow(to_millis(archive.clock()), who.name, action, subject, address))


def _user(user: User) -> UserShape:
    return UserShape(
        name=user.name, role=user.role, email=user.email, group=user.team, created=from_millis(user.created)
    )


@router.get("/users", responses=problem_responses())
def users(archive: ArchiveDep) -> UsersShape:
    """All users."""
    return UsersShape(users=[_user(user) for user in Accounts(archive.catalog.database).users()])


@router.post("/users", status_code=201, responses=problem_responses())
def add_user(request: Request, archive: ArchiveDep, principal: PrincipalDep, body: UserBody) -> UserShape:
    """A new user."""
    accounts = Accounts(archive.catalog.database)
    now, group = to_millis(archive.clock()), body.group or ""
    user = accounts.add(body.name, body.role, body.password, now, email=body.email, group=group)
    _audited(request, archive, principal, "user added", f"{user.name} {user.role}")
    return _user(user)


@router.put("/users/{name}/password", status_code=204, response_class=Response, responses=problem_responses(404))
def set_password(
    request: Request, archive: ArchiveDep, principal: PrincipalDep, name: NameInPath, body: PasswordBody
) -> Response:
    """A new password; all sessions of the user end."""
    Accounts(archive.catalog.database).set_password(name, body.password)
    _audited(request, archive, principal, "password set", name)
    return Response(status_code=204)


@router.delete("/users/{name}", status_code=204, response_class=Response, responses=problem_responses(404))
def remove_user(request: Request, archive: ArchiveDep, principal: PrincipalDep, name: NameInPath) -> Response:
    """Forgets a user with all its tokens."""
    Accounts(archive.catalog.database).remove(name)
    _audited(request, archive, principal, "user removed", name)
    return Response(status_code=204)


@router.get("/tokens", responses=problem_responses())
def tokens(archive: ArchiveDep, principal: PrincipalDep) -> TokensShape:
    """Your tokens; an owner sees all."""
    seen = [
        TokenShape(name=token.name, user=token.owner, scope=token.scope, created=from_millis(token.created))
        for token in Accounts(archive.catalog.database).tokens()
        if principal.may(OWN) or token.owner == principal.name
    ]
    return TokensShape(tokens=seen)


@router.post("/tokens", status_code=201, responses=problem_responses(404))
def create_token(request: Request, archive: ArchiveDep, principal: PrincipalDep, body: TokenBody) -> NewTokenShape:
    """A new token, told this once; for somebody else only by an owner."""
    accounts = Accounts(archive.catalog.database)
    if body.user not in (None, principal.name) and not principal.may(OWN):
        raise Refused("only an owner makes tokens for others")
    known = {user.name for user in accounts.users()}
    wanted = body.user or (principal.name if principal.name in known else None)
    user = accounts.user(wanted) if wanted else None
    if user is None and not principal.may(OWN):
        raise Refused("this token belongs to no user and makes no others")
    token = accounts.create_token(body.name, user, body.scope, to_millis(archive.clock()))
    _audited(request, archive, principal, "token created", f"{body.name} {body.scope}")
    return NewTokenShape(name=body.name, scope=body.scope, token=token)


@router.delete("/tokens/{name}", status_code=204, response_class=Response, responses=problem_responses(404))
def revoke_token(request: Request, archive: ArchiveDep, principal: PrincipalDep, name: NameInPath) -> Response:
    """The token lets nobody in any more; users revoke their own."""
    accounts = Accounts(archive.catalog.database)
    mine = any(token.name == name and token.owner == principal.name for token in accounts.tokens())
    if not mine and not principal.may(OWN):
        raise NotFound(f"you have no token '{name}'")
    accounts.revoke(name)
    _audited(request, archive, principal, "token revoked", name)
    return Response(status_code=204)


def _project(project: Project) -> ProjectShape:
    created = from_millis(project.created)
    return ProjectShape(name=project.name, owner=project.owner, created=created, urls=list(project.urls))


@router.get("/projects", responses=problem_responses())
def projects(archive: ArchiveDep) -> ProjectsShape:
    """All projects."""
    return ProjectsShape(projects=[_project(project) for project in Projects(archive.catalog.database).list()])


@router.get("/projects/{name}", responses=problem_responses(404))
def project(archive: ArchiveDep, name: NameInPath) -> ProjectShape:
    """One project with its addresses."""
    return _project(Projects(archive.catalog.database).show(name))


@router.post("/projects", status_code=201, responses=problem_responses())
def add_project(request: Request, archive: ArchiveDep, principal: PrincipalDep, body: ProjectBody) -> ProjectShape:
    """A new project, or more addresses for one of yours or of your group."""
    urls = [parse_user_url(url) for url in body.urls]
    owner = "" if _may_change(archive, principal, body.name) else principal.name
    made = Projects(archive.catalog.database).add(body.name, owner, urls, to_millis(archive.clock()))
    _audited(request, archive, principal, "project added to", body.name)
    return _project(made)


def _may_change(archive: Archive, principal: Principal, name: str) -> bool:
    """Whether a project is there, and an owner of the archive or somebody of its owner's group asks."""
    found = [project for project in Projects(archive.catalog.database).list() if project.name == name]
    shared = Accounts(archive.catalog.database).share
    return any(principal.may(OWN) or shared(project.owner, principal.name) for project in found)


@router.delete("/projects/{name}", status_code=204, response_class=Response, responses=problem_responses(404))
def remove_project(request: Request, archive: ArchiveDep, principal: PrincipalDep, name: NameInPath) -> Response:
    """Forgets a project of yours or of your group; its pages stay."""
    Projects(archive.catalog.database).show(name)
    if not _may_change(archive, principal, name):
        raise Refused(f"project '{name}' belongs to somebody else")
    Projects(archive.catalog.database).remove(name)
    _audited(request, archive, principal, "project removed", name)
    return Response(status_code=204)


@router.get("/audit", responses=problem_responses())
def audit(archive: ArchiveDep, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> AuditShape:
    """The end of the audit log, newest first."""
    rows = AuditLog(archive.catalog.database).latest(limit)
    return AuditShape(audit=[AuditEntry(**row._asdict() | {"time": from_millis(row.time)}) for row in rows])
