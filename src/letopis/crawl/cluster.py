"""Agents as long-running tasks of a Dask cluster.

A task is an agent like any other: it leases hosts and records what it finds.
The cluster only starts agents, and starts one again elsewhere when its worker
dies; what that one held goes to others by lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any
from uuid import uuid4

from letopis.archive import Archive
from letopis.catalog.queues import Shard
from letopis.config import Settings
from letopis.crawl.agent import Agent
from letopis.crawl.crawl import CrawlOptions, crawl, plant
from letopis.crawl.figures import Figures
from letopis.errors import UsageError

_GLANCE_SECONDS = 1.0


def _library() -> Any:
    """Loaded only where there is a cluster."""
    return import_module("distributed")


def agent_task(settings: Settings, options: CrawlOptions, flag: str) -> Figures:
    """One agent, on a worker, until nothing is due or the flag is set."""
    raised = _library().Event(flag)
    agents: list[Agent] = []

    async def work() -> Figures:
        with Archive.open(settings) as archive:
            running = asyncio.ensure_future(crawl(archive, options, shard=Shard(), begun=agents.append))
            while not running.done():
                await asyncio.wait([running], timeout=_GLANCE_SECONDS)
                if agents and raised.is_set():
                    agents[-1].stop()
            return running.result()

    return asyncio.run(work())


def crawl_on(
    client: Any,
    settings: Settings,
    options: CrawlOptions,
    agents: int,
    progress: Callable[[int], None] = lambda ended: None,
) -> Figures:
    """Crawls with so many agents on a cluster; `client` is a `distributed.Client`. Ctrl-C stops all of them."""
    if not settings.database.url or not settings.store.url:
        raise UsageError("agents on a cluster share PostgreSQL and an object store; set database.url and store.url")
    with Archive.open(settings) as archive:
        plant(archive, options)
    flag = "letopis-stop-" + uuid4().hex
    limit = options.limits.pages
    total = Figures()
    tasks = []
    for index in range(agents):
        part = None if limit is None else max(1, limit // agents + (index < limit % agents))
        own = replace(options, limits=replace(options.limits, pages=part))
        tasks.append(client.submit(agent_task, settings, own, flag, pure=False, retries=3))
    try:
        for ended, task in enumerate(_library().as_completed(tasks), start=1):
            total.add(task.result())
            progress(ended)
    except BaseException:
        _library().Event(flag, client=client).set()
        raise
    return total
