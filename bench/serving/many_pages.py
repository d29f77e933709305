"""A catalogue of any size under an archive with a few real sites: what pages have to cope with.

The sites are recorded as a crawl would. All else is written by SQL in the
form that recording gives it, as if it had been recorded before them (the ids
of its versions are negative), so that indexes of links and words, which
follow the log, know the sites alone.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import cast

from letopis.archive import Archive
from letopis.archive.watches import watches_of
from letopis.catalog.database import Cursor
from letopis.model import to_millis
from letopis.monitor.watch import WatchedUrl, WatchSpec
from letopis.monitor.watch_list import new_watch_row
from letopis.urls import url_key

_DAY = 86_400_000
_SPAN = 90 * _DAY
_FIRST = 1_000_000_000
_COUNT = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?) "


@dataclass(frozen=True, slots=True)
class Scale:
    """How much there is. A tenth of all URLs belongs to one host, `big.example`."""

    urls: int = 1_000_000
    versions_each: int = 2
    others_each: int = 3
    hosts: int = 5_000
    watches: int = 5_000
    lively: int = 5_000
    """Checks of one page, `http://big.example/0.html`."""

    @property
    def checks(self) -> int:
        """All checks that are written."""
        return self.urls * (self.versions_each + self.others_each) + self.lively


def fill(archive: Archive, scale: Scale) -> None:
    """Writes it all in one transaction."""
    now = to_millis(archive.clock())
    with archive.catalog.transaction() as cursor:
        cast("sqlite3.Connection", cursor.connection).create_function("url_key", 1, url_key, deterministic=True)
        sample = cursor.one("SELECT c.sha1, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot, v.head "
                            "FROM version v JOIN content c ON c.id = v.content ORDER BY v.id LIMIT 1")  # fmt: skip
        assert sample is not None, "record something real first: contents are borrowed from it"
        _hosts(cursor, scale)
        _resources(cursor, scale, now)
        _versions(cursor, scale, now, sample)
        _captures(cursor, scale, now)
    _watches(archive, scale)
    archive.catalog.database.all("ANALYZE")


def _hosts(cursor: Cursor, scale: Scale) -> None:
    cursor.run(
        f"{_COUNT}INSERT INTO host (id, name, ip, fetched, crawl_delay) "
        f"SELECT {_FIRST} + i, CASE i WHEN 0 THEN 'big.example' ELSE 'host' || i || '.example' END, "
        "'127.0.' || (i / 250) || '.' || (i % 250), ? / (i + 1), 1.0 FROM n",
        (scale.hosts, scale.urls),
    )


def _resources(cursor: Cursor, scale: Scale, now: int) -> None:
    """Nine of ten are visited again and again, the others wait for their first visit or are given up."""
    host = f"CASE WHEN i % 10 = 0 THEN 0 ELSE 1 + i % {scale.hosts - 1} END"
    address = f"'http://' || (CASE {host} WHEN 0 THEN 'big' ELSE 'host' || ({host}) END) || '.example/' || i || '.html'"
    cursor.run(
        f"{_COUNT}INSERT INTO resource (id, url_key, url, host, state, due, depth, versions, newest, checked, title) "
        f"SELECT {_FIRST} + i, url_key({address}), {address}, {_FIRST} + {host}, 2, "
        f"? + (i * 7919 % {14 * _DAY}) - {_DAY}, 2, ?, -1 - i * ?, ? - (i * 104729 % {_SPAN}), 'Page ' || i FROM n",
        (scale.urls, now, scale.versions_each, scale.versions_each, now),
    )
    cursor.run(
        "INSERT INTO surt (name, resource) SELECT 'example,' || "
        "substr(url, 8, instr(substr(url, 8), '.') - 1) || ')/' || (id - ?) || '.html', id FROM resource WHERE id >= ?",
        (_FIRST, _FIRST),
    )


def _versions(cursor: Cursor, scale: Scale, now: int, sample: tuple[object, ...]) -> None:
    *content, head = sample
    total = scale.urls * scale.versions_each
    cursor.run(
        f"{_COUNT}INSERT INTO content (id, identity, sha1, raw_bytes, stored_bytes, method, pack, place, slot) "
        f"SELECT {_FIRST} + i, i, ?, ?, ?, ?, ?, ?, ? FROM n",
        (total, *content),
    )
    each = scale.versions_each
    # Version -1 - k belongs to resource k / each; the newest of a page has the id nearest to zero.
    cursor.run(
        f"{_COUNT}INSERT INTO version (id, resource, number, time, content, head, status, meaningful) "
        f"SELECT -1 - i, {_FIRST} + i / {each}, {each - 1} - i % {each}, "
        f"? - (i % {each}) * {_SPAN // each} - (i * 104729 % {_SPAN // each}), "
        f"{_FIRST} + i - (i % 50 = 0) * (i % 100), ?, 200, i % 3 FROM n",
        (total, now, head),
    )
    cursor.run("UPDATE version SET meaningful = NULL WHERE id < 0 AND meaningful = 2")


def _captures(cursor: Cursor, scale: Scale, now: int) -> None:
    each = scale.others_each
    statement = "INSERT OR IGNORE INTO capture (resource, time, status, outcome, number) SELECT "
    cursor.run(
        f"{_COUNT}{statement}{_FIRST} + i / {each}, ? - (i % {each} + 1) * {_DAY} - i % 1000, "
        "CASE i % 97 WHEN 0 THEN 404 ELSE 200 END, CASE i % 97 WHEN 0 THEN 3 ELSE 2 END, 1 FROM n",
        (scale.urls * each, now),
    )
    cursor.run(
        f"{_COUNT}{statement}{_FIRST}, ? - i * 600000 - 7, CASE i % 50 WHEN 0 THEN 503 ELSE 200 END, "
        "CASE i % 50 WHEN 0 THEN 3 ELSE 2 END, 1 FROM n",
        (scale.lively, now),
    )


def _watches(archive: Archive, scale: Scale) -> None:
    now = to_millis(archive.clock())
    spec = WatchSpec(every=3600.0)
    names = [
        WatchedUrl(f"http://big.example/{i * 10}.html", "page", f"tag{i % 7}")
        for i in range(min(scale.watches, scale.urls // 10))
    ]
    rows = {named.url: new_watch_row(named, spec, now + i) for i, named in enumerate(names)}
    watches_of(archive).save(rows, lambda url, old: rows[url])
