"""Agents on hosts of their own, whose links to the database and to the object store are cut one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from crawl_fleet import Fleet, Web, assert_complete, assert_polite
from namespaces import Namespace, carrying, why_not
from services import ObjectServer, variables

from letopis.config import Settings
from letopis_demo import running

AGENTS = 4
LEASE = 15
"""Seconds: what a commit takes on a busy machine, several times over; a shorter one would be lost again and again."""
WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"SKIPPED, agents as separate hosts are NOT proven: {WHY_NOT}")


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    with running(made.server):
        yield made


@pytest.fixture
def hosts() -> Iterator[list[Namespace]]:
    made: list[Namespace] = []
    try:
        for number in range(AGENTS):
            made.append(Namespace(number))
        yield made
    finally:
        for host in made:
            host.remove()


class Scattered(Fleet):
    """Agents that meet the services only through the links of their hosts."""

    def __init__(self, web: Web, settings: Settings, folder: Path, store: ObjectServer, stack: ExitStack) -> None:
        super().__init__(web, settings, folder)
        self.lease = LEASE
        self._store = store
        self._stack = stack

    def start_on(self, host: Namespace) -> None:
        """One agent on a host, with relays of its own to everything it needs."""
        found = psycopg.conninfo.conninfo_to_dict(self._settings.database.url)
        socket = f"{found['host']}/.s.PGSQL.{found.get('port', 5432)}"
        pages = [seed.split("/")[2] for seed in self._web.server.world.seeds()]
        services = [
            (f"{host.outer('database')}:0", socket),
            (f"{host.outer('store')}:0", f"127.0.0.1:{self._store.port}"),
        ]
        outer = [(f"{host.outer('web')}:0", page) for page in pages]
        database, store, *ports = self._stack.enter_context(carrying([*services, *outer]))
        inner = [(page, f"{host.outer('web')}:{port}") for page, port in zip(pages, ports, strict=True)]
        self._stack.enter_context(carrying(inner, host.within))
        given = variables(self._settings.database.url, self._settings.store) | {
            "LETOPIS_DATABASE_URL": f"postgresql://{found['user']}@{host.outer('database')}:{database}/{found['dbname']}",
            "LETOPIS_STORE_ENDPOINT": f"http://{host.outer('store')}:{store}",
        }
        self.start(within=host.within, given=given)


@pytest.fixture
def fleet(
    web: Web, hosts: list[Namespace], scaled_settings: Settings, object_server: ObjectServer, tmp_path: Path
) -> Iterator[Scattered]:
    with ExitStack() as stack:
        made = Scattered(web, scaled_settings, tmp_path, object_server, stack)
        for host in hosts:
            made.start_on(host)
        yield made
        made.end()


@pytest.mark.slow
def test_hosts_whose_links_are_cut_lose_nothing_and_stay_polite(
    web: Web, fleet: Scattered, hosts: list[Namespace], scaled_settings: Settings, tmp_path: Path
) -> None:
    fleet.when(20)
    hosts[0].cut("database")
    fleet.when(45)
    hosts[1].cut("store")
    fleet.when_living(AGENTS - 1)
    hosts[0].mend("database")
    hosts[1].mend("store")
    fleet.wait()
    assert_polite(web)
    assert_complete(web, scaled_settings, tmp_path)
