"""PostgreSQL knows nothing of tables that it has not analysed, and little of those that grew since: no agent reads all
of them for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from letopis.archive import Archive
from letopis.archive.queues import (
    HeldHosts,
    HostUpdate,
    LeasedQueue,
    NewUrl,
    PlannedUrl,
    QueueUpdate,
    host_leases,
    take_in_links,
)
from letopis.archive.records import capture_of_put
from letopis.config import Settings
from letopis.model import Put
from letopis.urls import url_key

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS, EACH, NEVER = 400, 50, 10**15
TABLES = ("host", "resource", "content", "version", "surt")
FILL = (
    "INSERT INTO host (name) SELECT 'h' || n || '.example' FROM generate_series(%(first)s::int, %(last)s::int) n",
    "INSERT INTO resource (url_key, url, host, state, due) "
    "SELECT h.id * 1000 + n, 'http://' || h.name || '/' || n, h.id, "
    f"1 + n %% 2, CASE n %% 2 WHEN 1 THEN {NEVER} END FROM host h, generate_series(1, {EACH}) n "
    "WHERE h.id BETWEEN %(first)s AND %(last)s",
    "INSERT INTO content (identity, sha1, raw_bytes, stored_bytes, method, pack, place, slot) "
    "SELECT id, '', 0, 0, 'plain', 1, id, 0 FROM resource WHERE newest IS NULL AND state = 2",
    "INSERT INTO version (resource, number, time, content, head, status) SELECT r.id, 0, 1, c.id, 1, 200 "
    "FROM resource r JOIN content c ON c.identity = r.id WHERE r.newest IS NULL AND r.state = 2",
    "UPDATE resource r SET newest = v.id, versions = 1, checked = 1 FROM version v WHERE v.resource = r.id",
    "INSERT INTO surt SELECT url, id FROM resource ON CONFLICT DO NOTHING",
)


class Young:
    """An archive with many URLs whose server analyses none of its tables by itself."""

    def __init__(self, archive: Archive, settings: Settings) -> None:
        self.archive, self._url = archive, settings.database.url
        self.leases = host_leases(archive)
        self._run(*(f"ALTER TABLE {table} SET (autovacuum_enabled = off)" for table in TABLES))

    def _run(self, *statements: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def grow(self, first: int, last: int) -> None:
        """Hosts of these numbers, with their URLs, half of them visited."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            for statement in FILL:
                connection.execute(statement, {"first": first, "last": last} if "%(" in statement else None)

    def analyse(self) -> None:
        self._run("ANALYZE")

    def scanned(self) -> dict[str, int]:
        """Rows of URLs that were read by reading whole tables so far; of all hosts it may be asked."""
        flush, database = "SELECT pg_stat_force_next_flush()", self.archive.catalog.database
        database.one(flush)
        with database.transaction(beside=True) as cursor:
            cursor.one(flush)
        with psycopg.connect(self._url, autocommit=True) as connection:
            rows = connection.execute("SELECT relname, seq_tup_read FROM pg_stat_user_tables").fetchall()
        return {name: int(count) for name, count in rows if name in TABLES[1:]}

    def commit(self, day: int) -> None:
        """A page of each of many hosts, with links that are new, known and to hosts of others."""
        now = 1000 * day
        fences = [(int(host), int(fence)) for host, fence in self.leases.take(f"agent {day}", now, NEVER, HOSTS // 2)]
        held = {host for host, _ in fences}
        hosts = sorted(held)
        queue = LeasedQueue(self.archive, self.leases, f"agent {day}", held.__contains__)
        urls = [f"http://h{host}.example/{2 * day}" for host in hosts]
        links = [*urls, *(f"http://h{host}.example/{day}-new" for host in range(1, HOSTS + 1))]
        update = QueueUpdate(
            self.archive, queue, [PlannedUrl(2, NEVER, b"", host) for host in hosts],
            [HostUpdate(host, "", 0, 0, 0.0, 1, 0) for host in hosts],
            [NewUrl(url_key(url), url, url.split("/")[2], 1) for url in links],
            None, HeldHosts(self.leases, f"agent {day}", fences, NEVER),
        )  # fmt: skip
        puts = [Put(url, f"{day} {url}".encode(), START) for url in urls]
        self.archive.commit([capture_of_put(put, put.url, START) for put in puts], update.write, update.hosts)
        take_in_links(self.archive)

    def tend(self) -> None:
        """What an agent asks of its leases each second."""
        self.leases.held_due("agent 1", 2000, True, 100, 0)
        self.leases.held_due("agent 1", 2000, False, 100, 0)
        self.leases.spent("agent 1", 2000, list(range(1, HOSTS)))
        self.leases.take("another", 2000, 3000, 25)


@pytest.fixture
def young(scaled_settings: Settings, tmp_path: Path) -> Iterator[Young]:
    with Archive(tmp_path / "a", settings=scaled_settings) as archive:
        yield Young(archive, scaled_settings)


@pytest.mark.parametrize("analysed", [0, 10])
def test_no_table_of_urls_is_read_whole_before_it_is_analysed_or_when_it_has_grown_since(
    young: Young, analysed: int
) -> None:
    if analysed:
        young.grow(1, analysed)
        young.analyse()
    young.grow(analysed + 1, HOSTS)
    young.commit(1)
    before = young.scanned()
    young.commit(2)
    young.tend()
    assert {name: young.scanned()[name] - count for name, count in before.items()} == dict.fromkeys(before, 0)
