"""How far the crawls of an archive were told to go, kept so that whoever goes on with them goes no further."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from letopis.archive import Archive
from letopis.catalog import Cursor
from letopis.crawl.moved import moved_seeds
from letopis.urls import Scope, ScopeKind
from letopis.urls import host as host_of

_MOST = 1000
_HOSTS = 10_000


class Plan(NamedTuple):
    """One crawl as it was asked for."""

    seeds: tuple[str, ...]
    scope: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    depth: int | None
    requisites: bool


def keep_plan(archive: Archive, cursor: Cursor, plan: Plan) -> None:
    """Remembers a crawl, in the place of an earlier one from the same seeds; of very many the oldest are forgotten."""
    others = [kept for kept in kept_plans(archive) if kept.seeds != plan.seeds]
    archive.catalog.queues.set_plans(cursor, json.dumps([*others, plan][-_MOST:]))


def forget_site(archive: Archive, cursor: Cursor, host: str) -> None:
    """Nobody goes on with crawls of a host any more; of crawls from several seeds the others stay."""
    plans = [
        plan._replace(seeds=tuple(seed for seed in plan.seeds if host_of(seed) != host)) for plan in kept_plans(archive)
    ]
    archive.catalog.queues.set_plans(cursor, json.dumps([plan for plan in plans if plan.seeds]))


def kept_plans(archive: Archive) -> list[Plan]:
    """The crawls that this archive was asked for, oldest first."""
    rows = json.loads(archive.catalog.queues.plans() or "[]")
    return [Plan(tuple(row[0]), row[1], tuple(row[2]), tuple(row[3]), row[4], row[5]) for row in rows]


def scopes_of(archive: Archive, plans: Iterable[Plan]) -> tuple[Scope, ...]:
    """The scopes of some crawls, those alike as one; where none was ever kept, the hosts that were visited."""
    seeds: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for plan in plans:
        own = seeds.setdefault((plan.scope, plan.include, plan.exclude), [])
        own += [*plan.seeds, *moved_seeds(archive, plan.seeds)]
    if not seeds and not archive.catalog.queues.plans():
        visited = archive.catalog.queues.visited_hosts(_HOSTS)
        return (Scope(ScopeKind.HOST, tuple(f"http://{name}/" for name in visited)),)
    return tuple(Scope(ScopeKind(kind), tuple(own), *patterns) for (kind, *patterns), own in seeds.items())
