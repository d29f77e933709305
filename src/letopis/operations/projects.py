"""Projects: named sets of pages, by their addresses or by site, prefix or crawl."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import (
    Project,
    ProjectPart,
    accounts_of,
    is_in_parts,
    project_pages,
    project_part,
    projects_of,
)
from letopis.archive.queues import crawl_plans
from letopis.crawl.selection import moved_seeds
from letopis.errors import NotFound, Refused
from letopis.model import from_millis, to_millis
from letopis.model.printing import counted
from letopis.operations.accounts import LONGEST_NAME, account_name
from letopis.operations.context import Context
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import NoParameters, Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url, site
from letopis.urls.scope import Scope, ScopeKind

MAX_PROJECT_URLS = 10_000
"""Addresses that one command puts into a project or takes out of it."""
_PROJECT = "Name of the project."


class ProjectRow(NamedTuple):
    """A named set of pages: single addresses, whole sites, all pages under a prefix, and what crawls reach.

    `pages` counts the addresses and the archived pages of the rest, up to a million.
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

    name: str = account_name("Name of the project: letters, digits and . @ + - _.")
    urls: tuple[str, ...] = parameter(
        "Addresses of its pages.", default=(), argument=True, metavar="[URL]...", at_most=MAX_PROJECT_URLS
    )
    sites: tuple[str, ...] = _parts_parameter("site", "All pages of this site, also those archived later.")
    prefixes: tuple[str, ...] = _parts_parameter("prefix", "All pages in this folder of a site, and below it.")
    crawls: tuple[str, ...] = _parts_parameter("crawl", "All pages that the crawl from this seed reaches.")
    owner: str | None = parameter(
        "Owner; default: you. Only owners name somebody else.",
        default=None, longest=LONGEST_NAME,
    )  # fmt: skip


@operation(
    "add_to_project", right=WRITE, verb="projects add", route=("POST", "/projects"), status=201, errors=(404,),
    audited="project added to", sentence=lambda row: f"Project {row.name} has {counted(row.pages, 'page')}.",
    examples=(
        "letopis projects add news https://example.org/",
        "letopis projects add news --site example.org --prefix https://example.net/press/",
        "letopis projects add news --owner anna",
    ),
)  # fmt: skip
def add_to_project(context: Context, asked: AddToProjectCommand) -> Value[ProjectRow]:
    """Create a project, or add pages to one of yours or of your group."""
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
    "list_projects", right=READ, verb="projects list", route=("GET", "/projects"), listed="projects",
    columns=("name", "owner", "pages", "created"), examples=("letopis projects list",),
)  # fmt: skip
def list_projects(context: Context, asked: NoParameters) -> Rows[ProjectRow]:
    """List projects with their pages."""
    return Rows([_project_row(context.archive, project) for project in projects_of(context.archive).list()])


class ProjectQuery(Parameters):
    """Which project."""

    name: str = account_name(_PROJECT)


def _project_sentence(row: ProjectRow) -> str:
    parts = {"site": row.sites, "prefix": row.prefixes, "crawl": row.crawls}
    return "\n".join((*row.urls, *(f"{kind} {name}" for kind, names in parts.items() for name in names)))


@operation(
    "show_project", right=READ, verb="projects show", route=("GET", "/projects/{name}"), errors=(404,),
    sentence=_project_sentence, examples=("letopis projects show news",),
)  # fmt: skip
def show_project(context: Context, asked: ProjectQuery) -> Value[ProjectRow]:
    """Show what a project is made of: addresses, sites, prefixes, crawls."""
    return Value(_project_row(context.archive, projects_of(context.archive).show(asked.name)))


class RemoveProjectCommand(Parameters):
    """A project, or addresses in it."""

    name: str = account_name(_PROJECT)
    urls: tuple[str, ...] = parameter(
        "Remove only these addresses.",
        default=(), named="url", argument=True, metavar="[URL]...", at_most=MAX_PROJECT_URLS,
    )  # fmt: skip
    sites: tuple[str, ...] = _parts_parameter("site", "Take this site out of it.")
    prefixes: tuple[str, ...] = _parts_parameter("prefix", "Take this prefix out of it.")
    crawls: tuple[str, ...] = _parts_parameter("crawl", "Take the crawl from this seed out of it.")


class RemovedProject(NamedTuple):
    """What was removed: the whole project, or these addresses and parts of it."""

    name: str
    removed: bool
    urls: tuple[str, ...]
    parts: tuple[str, ...]


@operation(
    "remove_project", right=WRITE, verb="projects remove", route=("DELETE", "/projects/{name}"), status=204,
    errors=(404,), creates=False, audited="project removed",
    subject=lambda asked: " ".join((asked.name, *asked.urls, *asked.sites, *asked.prefixes, *asked.crawls)),
    sentence=lambda row: (
        f"Removed: {row.name}." if row.removed else f"Removed from {row.name}: {', '.join((*row.urls, *row.parts))}."
    ),
    examples=("letopis projects remove news", "letopis projects remove news --site example.org"),
)  # fmt: skip
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
