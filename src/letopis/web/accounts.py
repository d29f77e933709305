"""`/accounts`: users and their tokens, one's own language and password. `/projects`, `/projects/<name>`: its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import islice
from types import MappingProxyType, SimpleNamespace
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.access import principal_of
from letopis.api.door import context_of
from letopis.api.requests import origin_of
from letopis.archive import Archive
from letopis.archive.accounts import (
    Project,
    accounts_of,
    latest_of_project,
    project_pages,
    projects_of,
    second_factors_of,
)
from letopis.archive.verdicts import replaced_texts
from letopis.archive.watches import WatchedPage, watched_pages
from letopis.errors import LetopisError, UsageError, shell_words
from letopis.model import from_millis
from letopis.model.rights import OWN, ROLES, SCOPES
from letopis.operations import Operation, bind, projects, two_factor
from letopis.operations import accounts as operations
from letopis.operations.parameters import NoParameters
from letopis.operations.two_factor import TwoFactorSecret, shown_secret
from letopis.tuples import NamedTuple
from letopis.web.audit_names import AUDIT_NAMES, SIGN_INS, audited_things
from letopis.web.cache import page_cache_of
from letopis.web.languages import LANGUAGE_COOKIE, LANGUAGES, translatable
from letopis.web.pages import ExactFormDep, PageRoute, form_status, listed_addresses, render_page
from letopis.web.tables import TableAddress, TableColumn, TableView, first_download, make_table, table_download

router = APIRouter(route_class=PageRoute)

Form = dict[str, str]
_MOST_PROJECT_PAGES, _LATEST = 100, 8
_DONE = {
    "user": translatable("Account created."),
    "user-removed": translatable("Account and tokens removed."),
    "role": translatable("Role changed."),
    "password": translatable("Password changed; all sessions of the account have ended."),
    "group": translatable("Group changed."),
    "invitation-revoked": translatable("Invitation revoked."),
    "two-factor-off": translatable("Two-factor sign-in is off."),
    "token-revoked": translatable("Token revoked."),
    "project": translatable("Project saved."),
    "project-removed": translatable("Project removed; its pages stay in the archive."),
    "project-pages-removed": translatable("Pages removed from the project."),
    "language": translatable("Language changed."),
}
_LINES, _MOST_AUDIT, _FEW = 20, 1000, 8
USER_COLUMNS = (
    TableColumn("name", translatable("Name"), "custom"),
    TableColumn("role", translatable("Role"), "custom"),
    TableColumn("group", translatable("Group"), aside=True),
    TableColumn("email", translatable("Email"), hidden=True),
    TableColumn("two_factor", translatable("Two-factor"), "custom", aside=True),
    TableColumn("last_sign_in", translatable("Last sign-in"), "custom"),
    TableColumn("created", translatable("Created"), "custom", aside=True),
    TableColumn("change", translatable("Actions"), "actions"),
)
TOKEN_COLUMNS = (
    TableColumn("name", translatable("Name"), "custom"),
    TableColumn("scope", translatable("What it may do"), "custom"),
    TableColumn("user", translatable("User"), aside=True),
    TableColumn("last_used", translatable("Last used"), "custom"),
    TableColumn("expires", translatable("Expires"), "custom"),
    TableColumn("created", translatable("Created"), "custom", aside=True),
    TableColumn("revoke", translatable("Actions"), "actions"),
)
AUDIT_LOG_COLUMNS = (
    TableColumn("time", translatable("When"), "time"),
    TableColumn("who", translatable("Who")),
    TableColumn("action", translatable("What"), "named", called=AUDIT_NAMES),
    TableColumn("subject", translatable("About"), "custom"),
    TableColumn("address", translatable("IP address")),
)


class AccountNotice(NamedTuple):
    """What the page says at its top: how it went, or a secret that is shown this once; and a form that was refused."""

    status: int = 200
    done: str = ""
    problem: str = ""
    token: str = ""
    link: str = ""
    secret: TwoFactorSecret | None = None
    recovery_codes: tuple[str, ...] = ()
    form: Mapping[str, str] = MappingProxyType({})


@router.get("/accounts")
def accounts(request: Request, done: str = "") -> Response:
    """What the one who asks may see: owners everything, others what is theirs."""
    return _accounts_page(request, AccountNotice(done=_DONE.get(done, "")))


def _accounts_page(request: Request, notice: AccountNotice) -> Response:
    who, context = principal_of(request), context_of(request)
    everything, owner = NoParameters(), who.may(OWN)
    person = who.session.user if who.session else None
    factors = second_factors_of(context.archive)

    def table(columns: Sequence[TableColumn], key: str, rows: Iterable[Any]) -> TableView:
        return make_table(TableAddress("/accounts", request.query_params), columns, list(rows), key, _LINES)

    shown = {"tokens": table(TOKEN_COLUMNS, "t", operations.list_tokens(context, everything))}
    if owner:
        shown["people"] = table(USER_COLUMNS, "u", operations.list_users(context, everything))
    return first_download(shown) or render_page(
        request, "accounts.html", notice.status, notice=notice, owner=owner, person=person,
        has_factor=person is not None and factors.is_on(person.id),
        recovery_left=factors.left(person.id) if person else 0,
        invitations=list(operations.list_invitations(context, everything)) if owner else [],
        now=context.moment(), roles=list(ROLES), scopes=list(SCOPES), few=_FEW, **shown,
    )  # fmt: skip


@router.get("/audit")
def audit_log(request: Request, show: str = "") -> Response:
    """Who did what, the newest first; for owners. It shows all, only `changes`, or only who signed in and out."""
    context = context_of(request)
    every = list(operations.list_audit(context, operations.AuditQuery(limit=_MOST_AUDIT)))
    signs = [row for row in every if row.action in SIGN_INS]
    kinds = {"": every, "changes": [row for row in every if row.action not in SIGN_INS], "signs": signs}
    table = make_table(request, AUDIT_LOG_COLUMNS, kinds.get(show, every), key="log", size=_LINES)
    return table_download(table, "audit") or render_page(
        request,
        "audit.html",
        audit=table,
        things=partial(audited_things, context),
        show=show,
        counts={name: len(rows) for name, rows in kinds.items()},
    )


@router.get("/projects")
def all_projects(request: Request, done: str = "") -> Response:
    """Every project that the one who asks may see; people with an account make new ones."""
    return _projects_page(request, AccountNotice(done=_DONE.get(done, "")))


def _projects_page(request: Request, notice: AccountNotice) -> Response:
    context = context_of(request)
    rows = list(projects.list_projects(context, NoParameters()))
    address = TableAddress("/projects", {n: v for n, v in request.query_params.items() if n != "done"})
    table = make_table(address, ALL_PROJECTS_COLUMNS, rows)
    return table_download(table, "projects") or render_page(
        request, "projects.html", notice.status, table=table, notice=notice,
        changeable={row.name for row in rows if projects.may_change_project(context, row.owner)},
    )  # fmt: skip


@router.get("/projects/{name}")
def project(request: Request, name: str, done: str = "") -> Response:
    """The pages of a project, what changed of them last, and what can be done with all; some may change it."""
    context = context_of(request)
    row = projects.show_project(context, projects.ProjectQuery(name=name)).value
    found = next(one for one in projects_of(context.archive).list() if one.name == row.name)
    kept = (page.url for page in islice(project_pages(context.archive, found), _MOST_PROJECT_PAGES))
    urls = list(dict.fromkeys((*kept, *row.urls)))[:_MOST_PROJECT_PAGES]
    states = watched_pages(context.archive, urls)
    lines = list(map(_project_page, urls, states))
    table = make_table(request, PROJECT_COLUMNS, lines)
    week = context.moment() - timedelta(days=7)
    return table_download(table, f"project-{row.name}") or render_page(
        request, "project.html", project=row, table=table, done=_DONE.get(done, ""),
        may_change=projects.may_change_project(context, row.owner),
        latest=page_cache_of(request).soon(("project", row.name), 10, lambda: _latest(context.archive, found)),
        changed=sum(bool(one.changed and one.changed >= week) for one in lines),
        missing=sum(one.status is not None and not 0 < one.status < 400 for one in lines),
    )  # fmt: skip


def _latest(archive: Archive, project: Project) -> list[SimpleNamespace]:
    """The latest versions of its pages, the newest first, each with the check that brought it."""
    found, checks = latest_of_project(archive, project, _LATEST), archive.answers.checks_of_versions
    return [
        SimpleNamespace(**{**one._asdict(), "time": from_millis(one.time)}, texts=replaced_texts(check))
        for one in found
        for check in [checks(one.url, [one.number]).get(one.number)]
    ]


ALL_PROJECTS_COLUMNS = (
    TableColumn("name", translatable("Name"), "custom"),
    TableColumn("pages", translatable("Pages"), "number"),
    TableColumn("sites", translatable("Sites and folders"), "custom"),
    TableColumn("owner", translatable("Owner"), aside=True),
    TableColumn("created", translatable("Created"), "ago", aside=True),
    TableColumn("open", translatable("Actions"), "actions"),
)
PROJECT_COLUMNS = (
    TableColumn("url", translatable("Page"), "custom"),
    TableColumn("status", translatable("Status"), "custom"),
    TableColumn("changed", translatable("Last change"), "ago"),
    TableColumn("checked_at", translatable("Last check"), "ago"),
    TableColumn("open", translatable("Actions"), "actions"),
)


def _project_page(url: str, page: WatchedPage) -> SimpleNamespace:
    """A page of a project as the table shows it."""
    last, change = page.last, page.change
    return SimpleNamespace(
        url=url, title=page.title, status=last and last.status, failure=last.failure if last else "",
        changed=change.time if change and change.number else None, checked_at=last and last.checked_at,
    )  # fmt: skip


FormAction = Callable[[Request, Form], Response]


def _form_route(path: str, change: FormAction) -> None:
    """A form of the page: carried out, or shown again with what is wrong with it."""

    def submitted(request: Request, form: ExactFormDep) -> Response:
        return _carried_out(request, form, change)

    router.add_api_route(path, submitted, methods=["POST"], name=path)


def _carried_out(request: Request, form: Form, change: FormAction) -> Response:
    try:
        return change(request, form)
    except LetopisError as error:
        shown = _projects_page if change in (_add_project, _remove_project) else _accounts_page
        return shown(request, AccountNotice(form_status(error), problem=shell_words(error), form=form))


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
    asked = {name: value for name, value in form.items() if name in ("name", "scope", "for") and value}
    made = _run(request, operations.create_token, asked)
    return _accounts_page(request, AccountNotice(token=made.value.token))


def _invite(request: Request, form: Form) -> Response:
    """An invitation, whose link is shown this once."""
    made = _run(request, operations.invite_user, {name: value for name, value in form.items() if value}).value
    return _accounts_page(request, AccountNotice(link=origin_of(request.scope) + made.path))


def _begin_two_factor(request: Request, form: Form) -> Response:
    """The secret of a second factor of one's own, for an app."""
    made = _run(request, two_factor.begin_two_factor, {"name": principal_of(request).name}).value
    return _accounts_page(request, AccountNotice(secret=made))


def _confirm_two_factor(request: Request, form: Form) -> Response:
    """The first code; a wrong one is asked for again, with the same secret."""
    name = principal_of(request).name
    try:
        made = _run(request, two_factor.confirm_two_factor, {"name": name, "code": form.get("code", "")}).value
    except UsageError as error:
        archive = context_of(request).archive
        user = accounts_of(archive).user(name)
        pending = second_factors_of(archive).pending(user.id)
        secret = shown_secret(user, pending) if pending else None
        return _accounts_page(request, AccountNotice(422, problem=shell_words(error), secret=secret))
    return _accounts_page(request, AccountNotice(recovery_codes=tuple(made.recovery_codes)))


def _end_two_factor(request: Request, form: Form) -> Response:
    """Switches it off: one's own with a code; owners that of somebody who is locked out."""
    name = form.get("name") or principal_of(request).name
    _run(request, two_factor.end_two_factor, {"name": name, "code": form.get("code", "")})
    return _back("two-factor-off")


def _add_project(request: Request, form: Form) -> Response:
    """A named set of pages, sites, folders and crawls, or more of them for one; several stand with blanks between."""
    several = {name: listed_addresses(form.get(name, "")) for name in ("urls", "site", "prefix", "crawl")}
    made = _run(request, projects.add_to_project, {**form, **several}).value
    return RedirectResponse(f"/projects/{quote(made.name)}?done=project", 303)


def _remove_project(request: Request, form: Form) -> Response:
    """Removes a project, or one page from it; the form asks before it comes here."""
    removed = _run(request, projects.remove_project, form).value
    if removed.removed:
        return RedirectResponse("/projects?done=project-removed", 303)
    return RedirectResponse(f"/projects/{removed.name}?done=project-pages-removed", 303)


def _set_language(request: Request, form: Form) -> Response:
    """The language of one's own pages, in every browser; a choice made in this one gives way."""
    code = form.get("language", "")
    if code and code not in LANGUAGES:
        raise UsageError(f"unknown language '{code[:20]}'; choose one of {', '.join(LANGUAGES)}")
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
    "/accounts/users/invite": _invite,
    "/accounts/users/uninvite": _change(operations.revoke_invitation, "invitation-revoked"),
    "/accounts/users/two-factor": _end_two_factor,
    "/accounts/two-factor": _begin_two_factor,
    "/accounts/two-factor/confirm": _confirm_two_factor,
    "/accounts/two-factor/off": _end_two_factor,
    "/accounts/password": _set_password,
    "/accounts/language": _set_language,
    "/accounts/tokens": _create_token,
    "/accounts/tokens/revoke": _change(operations.revoke_token, "token-revoked"),
    "/accounts/projects": _add_project,
    "/accounts/projects/remove": _remove_project,
}.items():
    _form_route(_path, _action)
