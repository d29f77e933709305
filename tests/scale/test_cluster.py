"""Agents and ranks on a Dask cluster on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest
from crawl_fleet import Web, assert_polite, by_one
from dask_workers import OF_THE_LIBRARY, Workers
from patience import until

from letopis.archive import Archive
from letopis.config import CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl_on_cluster
from letopis.errors import UsageError
from letopis.index.page_ranks import cluster_flow, pagerank
from letopis_demo import running

pytestmark = OF_THE_LIBRARY
DELAY = 0.05


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    with running(made.server):
        yield made


def random_links(pages: int, links: int) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(7)
    pairs = np.unique(chance.integers(0, pages, (links, 2)), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]].astype(np.int32)
    return pairs[:, 0], pairs[:, 1]


def test_ranks_of_a_cluster_are_those_of_one_process(client: Any) -> None:
    sources, targets = random_links(20_000, 450_000)
    alone = pagerank(sources, targets, 20_000)
    together = pagerank(sources, targets, 20_000, make_flow=cluster_flow(client, 2))
    assert np.allclose(alone, together, rtol=0, atol=1e-6)


def test_ranks_survive_a_killed_worker(client: Any, workers: Workers) -> None:
    sources, targets = random_links(20_000, 450_000)
    steps = 0

    def make(*links: Any) -> Callable[[np.ndarray], np.ndarray]:
        flow = cluster_flow(client, 2)(*links)

        def deadly(shares: np.ndarray) -> np.ndarray:
            nonlocal steps
            steps += 1
            if steps == 3:
                workers.kill_one()
            return flow(shares)

        return deadly

    together = pagerank(sources, targets, 20_000, make_flow=make)
    assert steps > 3
    assert np.allclose(pagerank(sources, targets, 20_000), together, rtol=0, atol=1e-6)


def options(web: Web) -> CrawlOptions:
    return CrawlOptions(tuple(web.server.world.seeds()), exclude=("busy", "overload"), limits=CrawlLimits(once=True))


def crawling(settings: Settings, folder: Path) -> Settings:
    made = replace(settings, crawl=CrawlSettings(delay=DELAY, lease=3, commit_every=0.3))
    return replace(made, archive=replace(made.archive, path=str(folder / "machine")))


def statuses(settings: Settings) -> dict[str, int]:
    with Archive.open(settings) as archive:
        assert list(archive.verify()) == []
        return {row.url: archive.history(row.url)[-1].status for row in archive.catalog.resources.all()}


def test_agents_of_a_cluster_find_what_one_finds(
    web: Web, client: Any, scaled_settings: Settings, tmp_path: Path
) -> None:
    settings = crawling(scaled_settings, tmp_path)
    figures = crawl_on_cluster(client, settings, options(web), 2)
    assert figures.fetched > 100
    assert_polite(web)
    assert statuses(settings) == {url: status for url, (status, _) in by_one(web, tmp_path / "alone").items()}


def test_a_local_cluster_crawls_and_ranks(web: Web, scaled_settings: Settings, tmp_path: Path) -> None:
    """One that Dask starts itself, for whoever has one machine: its workers are threads, the cheapest there are."""
    settings = crawling(scaled_settings, tmp_path)
    sources, targets = random_links(2_000, 45_000)
    with (
        distributed.LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        crawl_on_cluster(client, settings, options(web), 2)
        together = pagerank(sources, targets, 2_000, make_flow=cluster_flow(client, 2))
    assert_polite(web)
    assert statuses(settings) == {url: status for url, (status, _) in by_one(web, tmp_path / "alone").items()}
    assert np.allclose(pagerank(sources, targets, 2_000), together, rtol=0, atol=1e-6)


def test_the_share_of_a_killed_worker_is_taken_over(
    web: Web, client: Any, workers: Workers, scaled_settings: Settings, tmp_path: Path
) -> None:
    settings = crawling(scaled_settings, tmp_path)

    def kill() -> None:
        until(lambda: web.asked() >= 40)
        workers.kill_one()

    killer = threading.Thread(target=kill)
    killer.start()
    crawl_on_cluster(client, settings, options(web), 2)
    killer.join()
    assert_polite(web)
    assert statuses(settings) == {url: status for url, (status, _) in by_one(web, tmp_path / "alone").items()}


def test_a_cluster_needs_a_shared_archive(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"database\.url"):
        crawl_on_cluster(None, Settings(), CrawlOptions(("http://example.org/",)), 2)
