"""`/accounts`: users, their tokens and projects, and one's own language."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.api.access import Principal, principal_of
from letopis.api.requests import ArchiveDep
from letopis.archive import Archive
from letopis.catalog.accounts import Accounts, AuditLog, AuditRow, Project, Projects, Token, User
from letopis.errors import LetopisError, NotFound, Refused, UsageError
from letopis.model import from_millis, to_millis
from letopis.model.rights import OWN, ROLES, SCOPES
from letopis.urls import parse_user_url
from letopis.web.languages import LANGUAGE_COOKIE, LANGUAGES, translatable
from letopis.web.pages import PageRoute, form_of, render_page

router = APIRouter(route_class=PageRoute)

Form = dict[str, str]
_DONE = {
    "user": translatable("The account is there. Its owner can sign in now."),
    "user-gone": translatable("The account and its tokens are gone."),
    "password": translatable("The new password holds; all sessions with the old one have ended."),
    "token-gone": translatable("The token lets nobody in any more."),
    "project": translatable("The project is kept."),
    "project-gone": translatable("The project is forgotten; its pages stay."),
    "language": translatable("From now on pages speak this language to you."),
}
_AUDITED = 20


class AccountNotice(NamedTuple):
    """What the page says at its top: how it went, or a token that is told this once."""

    status: int = 200
    done: str = ""
    problem: str = ""
    token: str = ""


@router.get("/accounts")
def accounts(request: Request, archive: ArchiveDep, done: str = "") -> Response:
    """What the one who asks may see: owners everything, others what is theirs."""
    return _shown(request, archive, AccountNotice(done=_DONE.get(done, "")))


def _shown(request: Request, archive: Archive, told: AccountNotice) -> Response:
    who, book = principal_of(request), Accounts(archive.catalog.database)
    owner = who.may(OWN)
    return render_page(
        request,
        "accounts.html",
        told.status,
        told=told,
        owner=owner,
        person=who.session.user if who.session else None,
        users=[_dated(user) for user in book.users()] if owner else [],
        tokens=[_dated(token) for token in book.tokens() if owner or token.owner == who.name],
        projects=[_dated(project) for project in Projects(archive.catalog.database).list()],
        deeds=[(from_millis(deed.time), deed) for deed in _audit_entries(archive, owner)],
        roles=list(ROLES),
        scopes=list(SCOPES),
    )


def _dated(row: User | Token | Project) -> tuple[User | Token | Project, object]:
    return row, from_millis(row.created) if row.created else None


def _audit_entries(archive: Archive, owner: bool) -> list[AuditRow]:
    return AuditLog(archive.catalog.database).latest(_AUDITED) if owner else []


FormAction = Callable[[Request, Archive, Form], Response]


async def _submitted(request: Request, archive: Archive, change: FormAction) -> Response:
    """Carries a form out; what is wrong with it is told on the page."""
    form = await form_of(request)
    return await run_in_threadpool(_carried_out, request, archive, form, change)


def _carried_out(request: Request, archive: Archive, form: Form, change: FormAction) -> Response:
    try:
        return change(request, archive, form)
    except LetopisError as error:
        return _shown(request, archive, AccountNotice(422, problem=str(error)))


def _back(done: str) -> Response:
    return RedirectResponse(f"/accounts?done={done}", 303)


def _note(request: Request, archive: Archive, action: str, subject: str) -> None:
    address = request.client.host if request.client else ""
    who = principal_of(request).name
    AuditLog(archive.catalog.database).note(AuditRow(to_millis(archive.clock()), who, action, subject, address))


@router.post("/accounts/users")
async def add_user(request: Request, archive: ArchiveDep) -> Response:
    """A new account."""
    return await _submitted(request, archive, _add_user)


def _add_user(request: Request, archive: Archive, form: Form) -> Response:
    name, role = form.get("name", ""), form.get("role", "user")
    Accounts(archive.catalog.database).add(name, role, form.get("password", ""), to_millis(archive.clock()))
    _note(request, archive, "user added", f"{name} {role}")
    return _back("user")


@router.post("/accounts/users/remove")
async def remove_user(request: Request, archive: ArchiveDep) -> Response:
    """Forgets an account; the form asks before it comes here."""
    return await _submitted(request, archive, _remove_user)


def _remove_user(request: Request, archive: Archive, form: Form) -> Response:
    Accounts(archive.catalog.database).remove(form.get("name", ""))
    _note(request, archive, "user removed", form.get("name", ""))
    return _back("user-gone")


@router.post("/accounts/password")
async def set_password(request: Request, archive: ArchiveDep) -> Response:
    """A new password of one's own."""
    return await _submitted(request, archive, _set_password)


def _set_password(request: Request, archive: Archive, form: Form) -> Response:
    book, name = Accounts(archive.catalog.database), principal_of(request).name
    if book.sign_in(name, form.get("old", "")) is None:
        raise UsageError("the old password is wrong; try again")
    book.set_password(name, form.get("new", ""))
    _note(request, archive, "password set", name)
    return RedirectResponse("/login?next=/accounts", 303)


@router.post("/accounts/language")
async def set_language(request: Request, archive: ArchiveDep) -> Response:
    """The language of one's own pages, in every browser; a choice made in this one gives way."""
    return await _submitted(request, archive, _set_language)


def _set_language(request: Request, archive: Archive, form: Form) -> Response:
    code = form.get("language", "")
    if code and code not in LANGUAGES:
        raise UsageError(f"there are no texts in '{code[:20]}'; choose one of {', '.join(LANGUAGES)}")
    Accounts(archive.catalog.database).set_language(principal_of(request).name, code)
    answer = _back("language")
    answer.delete_cookie(LANGUAGE_COOKIE, path="/")
    return answer


@router.post("/accounts/tokens")
async def create_token(request: Request, archive: ArchiveDep) -> Response:
    """A new token for programs, told this once."""
    return await _submitted(request, archive, _create_token)


def _create_token(request: Request, archive: Archive, form: Form) -> Response:
    book, who = Accounts(archive.catalog.database), principal_of(request)
    user = who.session.user if who.session else None
    if user is None and not who.may(OWN):
        raise Refused("this token belongs to no user and makes no others")
    name, scope = form.get("name", ""), form.get("scope", "read")
    token = book.create_token(name, user, scope, to_millis(archive.clock()))
    _note(request, archive, "token created", f"{name} {scope}")
    return _shown(request, archive, AccountNotice(token=token))


@router.post("/accounts/tokens/revoke")
async def revoke_token(request: Request, archive: ArchiveDep) -> Response:
    """The token lets nobody in any more; the form asks before it comes here."""
    return await _submitted(request, archive, _revoke_token)


def _revoke_token(request: Request, archive: Archive, form: Form) -> Response:
    book, name = Accounts(archive.catalog.database), form.get("name", "")
    if not _mine(principal_of(request), book, name):
        raise NotFound(f"you have no token '{name[:70]}'")
    book.revoke(name)
    _note(request, archive, "token revoked", name)
    return _back("token-gone")


def _mine(who: Principal, book: Accounts, name: str) -> bool:
    return who.may(OWN) or any(token.name == name and token.owner == who.name for token in book.tokens())


@router.post("/accounts/projects")
async def add_project(request: Request, archive: ArchiveDep) -> Response:
    """A named set of pages."""
    return await _submitted(request, archive, _add_project)


def _add_project(request: Request, archive: Archive, form: Form) -> Response:
    name, urls = form.get("name", ""), [parse_user_url(url) for url in form.get("urls", "").split()]
    owner = principal_of(request).name
    Projects(archive.catalog.database).add(name, owner, urls, to_millis(archive.clock()))
    _note(request, archive, "project added to", name)
    return _back("project")


@router.post("/accounts/projects/remove")
async def remove_project(request: Request, archive: ArchiveDep) -> Response:
    """Forgets a project; its pages stay."""
    return await _submitted(request, archive, _remove_project)


def _remove_project(request: Request, archive: Archive, form: Form) -> Response:
    projects, who, name = Projects(archive.catalog.database), principal_of(request), form.get("name", "")
    if projects.show(name).owner != who.name and not who.may(OWN):
        raise Refused(f"project '{name}' belongs to somebody else")
    projects.remove(name)
    _note(request, archive, "project removed", name)
    return _back("project-gone")
