"""Writers of one archive that wait for each other only at the same host, and followers of the log that miss nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from bench.scaling.lock_waits import SETTINGS, lock_waits, waited
from patience import until
from services import variables

from letopis.archive import Archive, RecordedCapture
from letopis.archive.activity import changes_since, newest_change
from letopis.archive.backups import move_archive
from letopis.archive.index_facts import VersionLog
from letopis.archive.queues import HeldHosts, LeasedQueue, NewUrl, QueueUpdate, host_leases, queue_counts, take_in_links
from letopis.archive.records import capture_of_put
from letopis.catalog import Cursor
from letopis.catalog.leases import _NEXT_WAITING
from letopis.config import ArchiveSettings, Settings
from letopis.errors import NewerFormat, NotReady, Refused
from letopis.model import Put
from letopis.urls import url_key

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PROFILE = b"".join(sha256(bytes([number])).digest() for number in range(40))
HERE, THERE = "http://here.example/", "http://there.example/"


@pytest.fixture
def pair(scaled_settings: Settings, tmp_path: Path) -> Iterator[tuple[Archive, Archive]]:
    """The same archive as two machines see it."""
    settings = scaled_settings
    with Archive(tmp_path / "a", settings=settings) as one, Archive(tmp_path / "b", settings=settings) as other:
        yield one, other


@contextmanager
def open_commit(archive: Archive, url: str, body: bytes = b"slow") -> Iterator[Future[list[RecordedCapture]]]:
    """A commit of one page that has written all its rows, and ends when the block does."""
    written, end = threading.Event(), threading.Event()

    def wait(cursor: Cursor, done: list[RecordedCapture]) -> None:
        written.set()
        assert end.wait(300)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(archive.commit, [capture_of_put(Put(url, body, START), url, START)], wait, ())
        try:
            assert written.wait(300)
            yield running
        finally:
            end.set()


def is_waiting_for_a_lock(settings: Settings) -> bool:
    with psycopg.connect(settings.database.url, autocommit=True) as connection:
        waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return connection.execute(waiting).fetchone() is not None


def test_commits_to_different_hosts_do_not_wait_for_each_other(pair: tuple[Archive, Archive]) -> None:
    one, other = pair
    with open_commit(one, HERE):
        assert other.put(THERE, b"quick", START).number == 0
        assert other.get(THERE).body == b"quick"
        assert other.put(THERE, b"again", START + DAY).number == 1
    assert other.get(HERE).body == b"slow"
    assert list(one.verify()) == []


def test_commits_to_the_same_host_come_one_after_the_other(
    pair: tuple[Archive, Archive], scaled_settings: Settings
) -> None:
    one, other = pair
    with ThreadPoolExecutor(1) as threads:
        with open_commit(one, HERE):
            later = threads.submit(other.put, HERE, b"later", START + DAY)
            until(lambda: is_waiting_for_a_lock(scaled_settings))
            assert not later.done()
        assert later.result(300).number == 1
    assert [version.number for version in other.versions(HERE)] == [0, 1]
    assert list(one.verify()) == []


def test_whoever_needs_the_whole_turn_waits_for_open_commits_and_holds_new_ones_back(
    pair: tuple[Archive, Archive], scaled_settings: Settings
) -> None:
    one, other = pair
    order = []

    def alone() -> None:
        with other.catalog.transaction() as cursor:
            order.append(cursor.one("SELECT count(*) FROM version"))

    with ThreadPoolExecutor(1) as threads:
        with open_commit(one, HERE):
            turn = threads.submit(alone)
            until(lambda: is_waiting_for_a_lock(scaled_settings))
            assert not turn.done()
        turn.result(300)
    assert order == [(1,)]


@pytest.fixture
def log(_postgres: Any) -> Iterator[Callable[[], str]]:
    """What the server has told so far, of locks as the benchmark of fleets reads it."""
    with psycopg.connect(_postgres.get_uri(), autocommit=True) as connection:
        for setting, value in SETTINGS.items():
            connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
        connection.execute("SELECT pg_reload_conf()")
        until(lambda: connection.execute("SHOW deadlock_timeout").fetchone() == (SETTINGS["deadlock_timeout"],))
        yield lambda: (_postgres.pgdata / "log").read_text(errors="replace")
        for setting in SETTINGS:
            connection.execute(f"ALTER SYSTEM RESET {setting}")
        connection.execute("SELECT pg_reload_conf()")


def server_process(archive: Archive) -> int:
    """The process of the server that works for the writer of an archive."""
    with archive.catalog.transaction() as cursor:
        return cursor.count("SELECT pg_backend_pid()")


def test_the_server_tells_how_long_a_commit_waited_for_another(
    log: Callable[[], str], pair: tuple[Archive, Archive], scaled_settings: Settings
) -> None:
    one, other = pair
    process = server_process(other)
    with ThreadPoolExecutor(1) as threads:
        with open_commit(one, HERE):
            later = threads.submit(other.put, HERE, b"later", START + DAY)
            until(lambda: is_waiting_for_a_lock(scaled_settings))
            seen = time.time()
            until(lambda: f"process {process} still waiting" in log())
            freed = time.time()
        later.result(300)
    assert waited(lock_waits(log()), [process], seen, freed) == pytest.approx(freed - seen, abs=0.002)


def test_the_server_tells_of_no_waiting_where_commits_share_no_host(
    log: Callable[[], str], pair: tuple[Archive, Archive]
) -> None:
    one, other = pair
    process, began = server_process(other), time.time()
    with open_commit(one, HERE):
        other.put(THERE, b"quick", START)
    assert waited(lock_waits(log()), [process], began, time.time()) == 0.0


def test_commits_that_share_hosts_in_any_order_never_wait_in_a_ring(pair: tuple[Archive, Archive]) -> None:
    urls = [f"http://h{number}.example/" for number in range(12)]

    def write(archive: Archive, name: str, order: list[str]) -> None:
        for turn in range(8):
            at = START + turn * DAY
            list(archive.put_many(Put(url, f"{name} {turn} {url}".encode(), at) for url in order))

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(write, pair[0], "one", urls), threads.submit(write, pair[1], "other", urls[::-1])]
        for each in both:
            each.result(300)
    assert all(len(pair[0].versions(url)) == 16 for url in urls)
    assert list(pair[0].verify()) == []


def messages(archive: Archive, work: Callable[[], object], trace: Path) -> list[str]:
    """What libpq sends over the connection of the writer while something is done, and when the server is ready."""
    connection = archive.catalog.database._writer
    assert isinstance(connection, psycopg.Connection)
    with trace.open("w+b") as file:
        connection.pgconn.trace(file.fileno())
        work()
        connection.pgconn.untrace()
        file.seek(0)
        return file.read().decode(errors="replace").splitlines()


def test_a_commit_asks_for_turn_claim_and_hosts_in_one_message(pair: tuple[Archive, Archive], tmp_path: Path) -> None:
    archive, _ = pair
    archive.put(HERE, b"claims a log", START)
    told = messages(archive, lambda: archive.put(HERE, b"is traced", START + DAY), tmp_path / "trace")
    queries = [line for line in told if "	Query	" in line]
    places = [queries[0].index(word) for word in ("BEGIN", "lock_shared", "log_claim", "FOR UPDATE")]
    assert places == sorted(places)
    assert [line for line in queries if "log_mark" in line] == queries[-1:]
    assert "COMMIT" in queries[-1]


@pytest.mark.parametrize("where", ["first", "last"])
def test_a_transaction_whose_message_fails_leaves_nothing_behind(pair: tuple[Archive, Archive], where: str) -> None:
    archive, other = pair
    wrong = "SELECT nothing FROM nowhere"

    def fail() -> None:
        with archive.catalog.transaction(first=[wrong] if where == "first" else []) as cursor:
            cursor.run("INSERT INTO host (name) VALUES ('undone')")
            cursor.last.append(wrong)

    with pytest.raises(psycopg.errors.UndefinedTable):
        fail()
    other.put(THERE, b"nobody holds the turn", START)
    archive.put(HERE, b"nor is a transaction open", START)
    assert archive.catalog.database.one("SELECT 1 FROM host WHERE name = 'undone'") is None


def test_a_body_that_two_hosts_get_at_once_survives_compaction(pair: tuple[Archive, Archive]) -> None:
    one, other = pair
    with open_commit(one, HERE, b"the same body " * 50):
        other.put(THERE, b"the same body " * 50, START)
    assert one.compact().finished
    assert one.get(HERE).body == other.get(THERE).body == b"the same body " * 50
    assert list(one.verify()) == []


def test_followers_do_not_pass_over_a_version_whose_commit_is_open(pair: tuple[Archive, Archive]) -> None:
    one, other = pair
    one.put("http://first.example/", b"first", START)
    known, log = newest_change(other), VersionLog(other)
    with open_commit(one, HERE):
        other.put(THERE, b"quick", START)
        assert other.get(THERE).body == b"quick"
        assert changes_since(other, known, 10) == []
        assert newest_change(other) == known
        assert not log.has_since(known)
        assert (log.since(known, 10), log.spans_since(known, 10), log.pages_since(known, 10)) == ([], [], [])
    told = changes_since(other, known, 10)
    assert [change.url for change in told] == [HERE, THERE]
    assert [change.id for change in told] == [row.id for row in log.since(known, 10)]


def test_followers_go_on_when_an_open_commit_is_cut(pair: tuple[Archive, Archive], scaled_settings: Settings) -> None:
    one, other = pair
    one.put("http://first.example/", b"first", START)
    known = newest_change(other)
    with open_commit(one, HERE) as cut:
        other.put(THERE, b"quick", START)
        with psycopg.connect(scaled_settings.database.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
            )
        until(lambda: [change.url for change in changes_since(other, known, 10)] == [THERE])
    with pytest.raises(NotReady):
        cut.result(300)
    assert list(other.verify()) == []


def test_why_a_commit_failed_is_told_though_the_server_has_ended_its_connection(pair: tuple[Archive, Archive]) -> None:
    archive, other = pair

    def fail() -> None:
        with archive.catalog.transaction() as cursor:
            (server,) = cursor.one("SELECT pg_backend_pid()") or (0,)
            other.catalog.database.one("SELECT pg_terminate_backend(?, 60000)", (server,))
            raise Refused("for a reason")

    with pytest.raises(Refused, match="for a reason"):
        fail()
    assert archive.put(HERE, b"written over a new connection").number == 0


def impatient(settings: Settings, idle: int = 5, whole: int = 60) -> Settings:
    """As they are, with a server that ends transactions which do nothing for so many seconds, and slow ones."""
    options = f"-cidle_in_transaction_session_timeout={idle}s -ctransaction_timeout={whole}s"
    url = f"{settings.database.url}&options={quote(options)}"
    return replace(settings, database=replace(settings.database, url=url))


@pytest.mark.parametrize(("idle", "whole"), [(3, 300), (300, 6)])
def test_the_server_ends_a_commit_whose_process_stands_still(
    scaled_settings: Settings, tmp_path: Path, idle: int, whole: int
) -> None:
    with Archive(tmp_path / "a", settings=impatient(scaled_settings, idle, whole)) as archive:

        def stand_still() -> None:
            with open_commit(archive, HERE) as commit:
                until(lambda: archive.catalog.database.one(COMMITTING) is None)
            commit.result(300)

        with pytest.raises(NotReady):
            stand_still()
        assert archive.put(HERE, b"written by the next").number == 0


COMMITTING = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
WRITER = """
import os, sys
from datetime import UTC, datetime, timedelta
from letopis import Archive, Put
from letopis.config import load_settings
from letopis.errors import NotReady

def recorded(archive, puts):
    while True:
        try:
            return list(archive.put_many(puts))
        except NotReady:  # it was stopped inside the commit, which is gone
            continue

with Archive(sys.argv[1], settings=load_settings(None, os.environ, {})) as archive:
    for turn in range(40):
        at, name = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=turn), sys.argv[2]
        urls = [f"http://{name}.example/", f"http://shared{turn % 3}.example/{name}"]
        for done in recorded(archive, [Put(url, f"{name} {turn} {url}".encode(), at) for url in urls]):
            print(done.url, done.number, flush=True)
"""


@pytest.mark.slow
def test_followers_skip_nothing_while_writers_are_stopped_and_killed(scaled_settings: Settings, tmp_path: Path) -> None:
    ways = variables(impatient(scaled_settings).database.url, scaled_settings.store)
    with Archive(tmp_path / "reader", settings=scaled_settings) as archive:
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(tmp_path / name), name],
                env={"PATH": "", "PYTHONPATH": ":".join(sys.path), **ways}, stdout=subprocess.PIPE, text=True,
            )
            for name in ("killed", "stopped", "one", "two")
        ]  # fmt: skip
        followed: list[int] = []

        def follow() -> None:
            followed.extend(change.id for change in changes_since(archive, followed[-1] if followed else 0, 7))

        def follow_until(count: int) -> None:
            deadline = time.monotonic() + 300
            while len(followed) < count and time.monotonic() < deadline:
                follow()
                time.sleep(0.01)  # the writers need the processor too

        follow_until(40)
        writers[1].send_signal(signal.SIGSTOP)
        follow_until(70)
        writers[0].kill()
        follow_until(100)
        writers[1].send_signal(signal.SIGCONT)
        printed = [writer.communicate(timeout=300)[0] for writer in writers]
        last = newest_change(archive)
        while not followed or followed[-1] < last:
            follow()
        slowly = [int(row[0]) for row in archive.catalog.database.all("SELECT id FROM version ORDER BY id")]
        assert followed == slowly
        acknowledged = [line.split() for text in printed for line in text.splitlines()]
        assert all(archive.get(url, version=int(number)).number == int(number) for url, number in acknowledged)
        assert [len(text.splitlines()) for text in printed[1:]] == [80, 80, 80]
        assert list(archive.verify()) == []


def test_taking_hosts_does_not_read_all_that_waits(scaled_settings: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=scaled_settings) as archive:
        database, leases = archive.catalog.database, host_leases(archive)
        with archive.catalog.transaction() as cursor:
            cursor.run("INSERT INTO host (name) SELECT 'h' || n FROM generate_series(1, 3000) n")
            cursor.run(
                "INSERT INTO resource (url_key, url, host, state) "
                "SELECT h.id * 100 + n, 'http://' || name || '/' || n, h.id, 1 FROM host h, generate_series(1, 9) n"
            )
        with psycopg.connect(scaled_settings.database.url, autocommit=True) as connection:
            connection.execute("ANALYZE")
        plan = database.all("EXPLAIN " + _NEXT_WAITING, (0, 0, 2**62, 25))
        assert "resource_new" in str(plan)
        assert "hashed" not in str(plan)
        assert len(leases.take("me", 0, 9, 25)) == 25


def test_rows_of_hosts_stay_on_their_pages_when_leases_are_extended(scaled_settings: Settings, tmp_path: Path) -> None:
    rows = (
        "INSERT INTO host (name, profile, owner, lease_until) SELECT 'h' || n, ?, 'me', 9 FROM generate_series(1, 60) n"
    )
    pages = "SELECT id, (ctid::text::point)[0] FROM host ORDER BY id"
    with Archive(tmp_path / "a", settings=scaled_settings) as archive:
        leases, database = host_leases(archive), archive.catalog.database
        with archive.catalog.transaction() as cursor:
            cursor.run(rows, (PROFILE,))
        before = database.all(pages)
        assert len(leases.extend("me", 0, 10)) == 60
        assert database.all(pages) == before


# Links to hosts of others


def leased(archive: Archive, url: str) -> tuple[LeasedQueue, HeldHosts]:
    """The queue of an agent that holds the host of a URL alone."""
    with archive.catalog.transaction() as cursor:
        archive.catalog.queues.plan(cursor, archive.catalog.resources.ensure(cursor, url).id, 0)
    leases = host_leases(archive)
    fences = [(int(host), int(fence)) for host, fence in leases.take("me", 0, 10**15, 9)]
    held = {host for host, _ in fences}
    return LeasedQueue(archive, leases, "me", held.__contains__), HeldHosts(leases, "me", fences, 10**15)


def found(*urls: str) -> list[NewUrl]:
    return [NewUrl(url_key(url), url, url.split("/")[2], 1) for url in urls]


def commit_links(archive: Archive, agent: tuple[LeasedQueue, HeldHosts], day: int, *urls: str) -> None:
    update = QueueUpdate(archive, agent[0], [], [], found(*urls), None, agent[1])
    at = START + day * DAY
    archive.commit([capture_of_put(Put(HERE, b"%d" % day, at), HERE, at)], update.write, update.hosts)


def test_links_to_hosts_of_others_are_added_once_however_often_they_are_sent(pair: tuple[Archive, Archive]) -> None:
    one, other = pair
    agent = leased(one, HERE)
    other.put(THERE + "known", b"put by hand, never planned", START)
    links = (HERE + "next", THERE + "new", THERE + "known")
    with open_commit(other, THERE):
        # Whoever finds a link to a host waits for nobody who writes to it.
        commit_links(one, agent, 1, *links)
        commit_links(one, agent, 2, *links)
        take_in_links(one)
    waiting = "SELECT url, state FROM resource WHERE state <> 0 ORDER BY url"
    assert one.catalog.database.all(waiting) == [(HERE, 1), (HERE + "next", 1)]
    assert not host_leases(one).is_idle(0)
    assert queue_counts(one).new == 2 + 4
    take_in_links(other)
    expected = [(HERE, 1), (HERE + "next", 1), (THERE + "known", 1), (THERE + "new", 1)]
    assert one.catalog.database.all(waiting) == expected
    assert queue_counts(one).new == 4
    assert list(one.verify()) == []


def test_links_to_a_host_wait_for_its_owner_while_it_has_one(pair: tuple[Archive, Archive]) -> None:
    one, other = pair
    agent = leased(one, HERE)
    with other.catalog.transaction() as cursor:
        other.catalog.queues.plan(cursor, other.catalog.resources.ensure(cursor, THERE).id, 0)
    mine, theirs = host_leases(one), host_leases(other)
    ((there, _),) = theirs.take("owner", 0, 1000, 9)
    commit_links(one, agent, 1, THERE + "new")
    assert mine.take_in("me", [], 999) == [], "it would hold the commits of the owner up"
    assert theirs.take_in("owner", [there], 999) == [there]
    commit_links(one, agent, 2, THERE + "newer")
    assert mine.take_in("me", [], 1000) == [there], "the owner has gone"


def test_links_that_were_sent_move_with_the_archive(pair: tuple[Archive, Archive], tmp_path: Path) -> None:
    commit_links(pair[0], leased(pair[0], HERE), 1, THERE + "new")
    embedded = Settings(archive=ArchiveSettings(path=str(tmp_path / "embedded")))
    with Archive.open(embedded) as target:
        move_archive(pair[0], target)
        take_in_links(target)
        rows = target.catalog.database.all("SELECT url FROM resource WHERE state = 1 ORDER BY url")
        assert rows == [(HERE,), (THERE + "new",)]


def test_the_database_refuses_a_second_row_of_a_url(pair: tuple[Archive, Archive]) -> None:
    pair[0].put(HERE, b"one", START)
    with pytest.raises(psycopg.errors.UniqueViolation), pair[0].catalog.transaction() as cursor:
        cursor.run("INSERT INTO resource (url_key, url, host) VALUES (?, ?, 1)", (url_key(HERE), HERE))


# Databases of an earlier release


def as_before(settings: Settings) -> None:
    """Makes a database what the release before made of it."""
    with psycopg.connect(settings.database.url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = '1' WHERE name = 'schema'")
        connection.execute("DROP INDEX resource_url")
        connection.execute("CREATE INDEX resource_url ON resource (url_key)")
        connection.execute("CREATE TABLE turn (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO turn (id) VALUES (1)")


def test_a_database_of_an_earlier_release_is_brought_up_to_date_and_its_writers_are_shut_out(
    scaled_settings: Settings, tmp_path: Path
) -> None:
    settings = replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))
    with Archive.open(settings) as archive:
        archive.put(HERE, b"one", START)
    as_before(settings)
    with psycopg.connect(settings.database.url, autocommit=True) as before:
        with Archive.open(settings) as archive:
            assert archive.get(HERE).body == b"one"
            assert archive.put(HERE, b"two", START + DAY).number == 1
            assert list(archive.verify()) == []
        with pytest.raises(psycopg.errors.UndefinedTable):
            before.execute("BEGIN; SELECT id FROM turn WHERE id = 1 FOR UPDATE")
        before.execute("ROLLBACK")
        index = before.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'resource_url'").fetchone()
        assert index is not None
        assert "UNIQUE" in index[0]


def test_a_database_of_a_later_release_is_left_alone(scaled_settings: Settings, tmp_path: Path) -> None:
    settings = replace(scaled_settings, archive=ArchiveSettings(path=str(tmp_path / "machine")))
    Archive.open(settings).close()
    with psycopg.connect(settings.database.url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = '3' WHERE name = 'schema'")
    with pytest.raises(NewerFormat, match="this release knows 2"):
        Archive.open(settings)
