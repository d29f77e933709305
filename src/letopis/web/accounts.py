"""`/accounts`: users, their tokens and projects, one's own language and password. `/projects/<name>`: its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.api.requests import http_status_of
from letopis.archive.accounts import accounts_of
from letopis.errors import LetopisError, UsageError, shell_words
from letopis.model.rights import OWN, ROLES, SCOPES
from letopis.operations import Operation, bind, projects
from letopis.operations import accounts as operations
from letopis.web.languages import LANGUAGE_COOKIE, LANGUAGES, translatable
from letopis.web.login import exact_form_of
from letopis.web.pages import PageRoute, render_page

router = APIRouter(route_class=PageRoute)

Form = dict[str, str]
_DONE = {
    "user": translatable("Account created."),
    "user-removed": translatable("Account and tokens removed."),
    "role": translatable("Role changed."),
    "password": translatable("Password set; all sessions of the account have ended."),
    "group": translatable("Group changed."),
    "token-revoked": translatable("Token revoked."),
    "project": translatable("Project saved."),
    "project-removed": translatable("Project removed; its pages stay in the archive."),
    "project-pages-removed": translatable("Pages removed from the project."),
    "language": translatable("Language changed."),
}
_AUDIT_LINES = 20


class AccountNotice(NamedTuple):
    """What the page says at its top: how it went, or a token that is shown this once."""

    status: int = 200
    done: str = ""
    problem: str = ""
    token: str = ""


@router.get("/accounts")
def accounts(request: Request, done: str = "") -> Response:
    """What the one who asks may see: owners everything, others what is theirs."""
    return _accounts_page(request, AccountNotice(done=_DONE.get(done, "")))


def _accounts_page(request: Request, notice: AccountNotice) -> Response:
    who, context = principal_of(request), context_of(request)
    everything, owner = operations.AccountsQuery(), who.may(OWN)
    listed = projects.list_projects(context, everything)
    return render_page(
        request,
        "accounts.html",
        notice.status,
        notice=notice,
        owner=owner,
        person=who.session.user if who.session else None,
        users=list(operations.list_users(context, everything)) if owner else [],
        tokens=list(operations.list_tokens(context, everything)),
        projects=[(row, projects.may_change_project(context, row.owner)) for row in listed],
        audit=list(operations.list_audit(context, operations.AuditQuery(limit=_AUDIT_LINES))) if owner else [],
        roles=list(ROLES),
        scopes=list(SCOPES),
    )


@router.get("/projects/{name}")
def project(request: Request, name: str, done: str = "") -> Response:
    """The pages of a project; whoever may change it takes some out."""
    context = context_of(request)
    row = projects.show_project(context, projects.ProjectQuery(name=name)).value
    may_change = projects.may_change_project(context, row.owner)
    return render_page(request, "project.html", project=row, may_change=may_change, done=_DONE.get(done, ""))


FormAction = Callable[[Request, Form], Response]


def _form_route(path: str, change: FormAction) -> None:
    """A form of the page: carried out, or shown again with what is wrong with it."""

    async def submitted(request: Request) -> Response:
        form = await exact_form_of(request)
        return await run_in_threadpool(_carried_out, request, form, change)

    router.add_api_route(path, submitted, methods=["POST"], name=path)


def _carried_out(request: Request, form: Form, change: FormAction) -> Response:
    try:
        return change(request, form)
    except LetopisError as error:
        status = 422 if isinstance(error, UsageError) else http_status_of(error)
        return _accounts_page(request, AccountNotice(status, problem=shell_words(error)))


def _run(request: Request, operation: Operation[Any, Any], form: Mapping[str, Any]) -> Any:
    """The answer of an operation to what a form says."""
    context = context_of(request)
    return operation(context, bind(operation.parameters, form, context.moment()))


def _change(operation: Operation[Any, Any], done: str) -> FormAction:
    """A form that is an operation and nothing else."""

    def change(request: Request, form: Form) -> Response:
        _run(request, operation, form)
        return _back(done)

    return change


def _back(done: str) -> Response:
    return RedirectResponse(f"/accounts?done={done}", 303)


def _set_password(request: Request, form: Form) -> Response:
    """A new password of one's own, for whoever knows the old one, owners too."""
    values = {"name": principal_of(request).name, "password": form.get("new"), "old": form.get("old", "")}
    _run(request, operations.set_password, values)
    return RedirectResponse("/login?next=/accounts", 303)


def _reset_password(request: Request, form: Form) -> Response:
    """A new password of somebody who lost theirs, by an owner; one's own takes the old one."""
    if form.get("name") == principal_of(request).name:
        raise UsageError("this is your own account; change its password below, with the old one")
    _run(request, operations.set_password, {"name": form.get("name"), "password": form.get("password")})
    return _back("password")


def _create_token(request: Request, form: Form) -> Response:
    """A new token of one's own, shown this once."""
    made = _run(request, operations.create_token, {"name": form.get("name"), "scope": form.get("scope", "read")})
    return _accounts_page(request, AccountNotice(token=made.value.token))


def _add_project(request: Request, form: Form) -> Response:
    """A named set of pages, sites, folders and crawls, or more of them for one; several stand with blanks between."""
    several = {name: form.get(name, "").split() for name in ("urls", "site", "prefix", "crawl")}
    _run(request, projects.add_to_project, {**form, **several})
    return _back("project")


def _remove_project(request: Request, form: Form) -> Response:
    """Removes a project, or one page from it; the form asks before it comes here."""
    removed = _run(request, projects.remove_project, form).value
    if removed.removed:
        return _back("project-removed")
    return RedirectResponse(f"/projects/{removed.name}?done=project-pages-removed", 303)


def _set_language(request: Request, form: Form) -> Response:
    """The language of one's own pages, in every browser; a choice made in this one gives way."""
    code = form.get("language", "")
    if code and code not in LANGUAGES:
        raise UsageError(f"there are no texts in '{code[:20]}'; choose one of {', '.join(LANGUAGES)}")
    accounts_of(context_of(request).archive).set_language(principal_of(request).name, code)
    answer = _back("language")
    answer.delete_cookie(LANGUAGE_COOKIE, path="/")
    return answer


for _path, _action in {
    "/accounts/users": _change(operations.add_user, "user"),
    "/accounts/users/remove": _change(operations.remove_user, "user-removed"),
    "/accounts/users/role": _change(operations.set_role, "role"),
    "/accounts/users/password": _reset_password,
    "/accounts/users/group": _change(operations.set_group, "group"),
    "/accounts/password": _set_password,
    "/accounts/language": _set_language,
    "/accounts/tokens": _create_token,
    "/accounts/tokens/revoke": _change(operations.revoke_token, "token-revoked"),
    "/accounts/projects": _add_project,
    "/accounts/projects/remove": _remove_project,
}.items():
    _form_route(_path, _action)
