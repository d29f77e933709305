"""Users, tokens, projects and the audit log. `rights.py` says who may come here."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from letopis.archive import Archive
from letopis.catalog.accounts import OWN, Accounts, User
from letopis.catalog.audit import Audit, Deed
from letopis.catalog.projects import Project, Projects
from letopis.errors import NotFound, Refused
from letopis.model import from_millis, to_millis
from letopis.serve.access import Principal, ThePrincipal
from letopis.serve.problems import answers
from letopis.serve.rest.shapes import (
    AuditShape,
    DeedShape,
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
from letopis.serve.shared import TheArchive
from letopis.urls import parse_user

router = APIRouter(tags=["accounts"])
NameInPath = Annotated[str, Path(max_length=64)]


def _noted(request: Request, archive: Archive, who: Principal, action: str, subject: str) -> None:
    address = request.client.host if request.client else ""
    Audit(archive.catalog.database).note(Deed(to_millis(archive.clock()), who.name, action, subject, address))


def _user(user: User) -> UserShape:
    return UserShape(
        name=user.name, role=user.role, email=user.email, group=user.team, created=from_millis(user.created)
    )


@router.get("/users", responses=answers())
def users(archive: TheArchive) -> UsersShape:
    """All users."""
    return UsersShape(users=[_user(user) for user in Accounts(archive.catalog.database).users()])


@router.post("/users", status_code=201, responses=answers())
def add_user(request: Request, archive: TheArchive, principal: ThePrincipal, body: UserBody) -> UserShape:
    """A new user."""
    accounts = Accounts(archive.catalog.database)
    now, group = to_millis(archive.clock()), body.group or ""
    user = accounts.add(body.name, body.role, body.password, now, email=body.email, group=group)
    _noted(request, archive, principal, "user added", f"{user.name} {user.role}")
    return _user(user)


@router.put("/users/{name}/password", status_code=204, response_class=Response, responses=answers(404))
def set_password(
    request: Request, archive: TheArchive, principal: ThePrincipal, name: NameInPath, body: PasswordBody
) -> Response:
    """A new password; all sessions of the user end."""
    Accounts(archive.catalog.database).set_password(name, body.password)
    _noted(request, archive, principal, "password set", name)
    return Response(status_code=204)


@router.delete("/users/{name}", status_code=204, response_class=Response, responses=answers(404))
def remove_user(request: Request, archive: TheArchive, principal: ThePrincipal, name: NameInPath) -> Response:
    """Forgets a user with all its tokens."""
    Accounts(archive.catalog.database).remove(name)
    _noted(request, archive, principal, "user removed", name)
    return Response(status_code=204)


@router.get("/tokens", responses=answers())
def tokens(archive: TheArchive, principal: ThePrincipal) -> TokensShape:
    """Your tokens; an owner sees all."""
    seen = [
        TokenShape(name=token.name, user=token.owner, scope=token.scope, created=from_millis(token.created))
        for token in Accounts(archive.catalog.database).tokens()
        if principal.may(OWN) or token.owner == principal.name
    ]
    return TokensShape(tokens=seen)


@router.post("/tokens", status_code=201, responses=answers(404))
def create_token(request: Request, archive: TheArchive, principal: ThePrincipal, body: TokenBody) -> NewTokenShape:
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
    _noted(request, archive, principal, "token created", f"{body.name} {body.scope}")
    return NewTokenShape(name=body.name, scope=body.scope, token=token)


@router.delete("/tokens/{name}", status_code=204, response_class=Response, responses=answers(404))
def revoke_token(request: Request, archive: TheArchive, principal: ThePrincipal, name: NameInPath) -> Response:
    """The token lets nobody in any more; users revoke their own."""
    accounts = Accounts(archive.catalog.database)
    mine = any(token.name == name and token.owner == principal.name for token in accounts.tokens())
    if not mine and not principal.may(OWN):
        raise NotFound(f"you have no token '{name}'")
    accounts.revoke(name)
    _noted(request, archive, principal, "token revoked", name)
    return Response(status_code=204)


def _project(project: Project) -> ProjectShape:
    created = from_millis(project.created)
    return ProjectShape(name=project.name, owner=project.owner, created=created, urls=list(project.urls))


@router.get("/projects", responses=answers())
def projects(archive: TheArchive) -> ProjectsShape:
    """All projects."""
    return ProjectsShape(projects=[_project(project) for project in Projects(archive.catalog.database).list()])


@router.get("/projects/{name}", responses=answers(404))
def project(archive: TheArchive, name: NameInPath) -> ProjectShape:
    """One project with its addresses."""
    return _project(Projects(archive.catalog.database).show(name))


@router.post("/projects", status_code=201, responses=answers())
def add_project(request: Request, archive: TheArchive, principal: ThePrincipal, body: ProjectBody) -> ProjectShape:
    """A new project, or more addresses for one of yours or of your group."""
    urls = [parse_user(url) for url in body.urls]
    owner = "" if _may_change(archive, principal, body.name) else principal.name
    made = Projects(archive.catalog.database).add(body.name, owner, urls, to_millis(archive.clock()))
    _noted(request, archive, principal, "project added to", body.name)
    return _project(made)


def _may_change(archive: Archive, principal: Principal, name: str) -> bool:
    """Whether a project is there, and an owner of the archive or somebody of its owner's group asks."""
    found = [project for project in Projects(archive.catalog.database).list() if project.name == name]
    shared = Accounts(archive.catalog.database).share
    return any(principal.may(OWN) or shared(project.owner, principal.name) for project in found)


@router.delete("/projects/{name}", status_code=204, response_class=Response, responses=answers(404))
def remove_project(request: Request, archive: TheArchive, principal: ThePrincipal, name: NameInPath) -> Response:
    """Forgets a project of yours or of your group; its pages stay."""
    Projects(archive.catalog.database).show(name)
    if not _may_change(archive, principal, name):
        raise Refused(f"project '{name}' belongs to somebody else")
    Projects(archive.catalog.database).remove(name)
    _noted(request, archive, principal, "project removed", name)
    return Response(status_code=204)


@router.get("/audit", responses=answers())
def audit(archive: TheArchive, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> AuditShape:
    """The end of the audit log, newest first."""
    rows = Audit(archive.catalog.database).latest(limit)
    return AuditShape(audit=[DeedShape(**row._asdict() | {"time": from_millis(row.time)}) for row in rows])
