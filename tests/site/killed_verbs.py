"""Every kind of process that writes, killed at any of its writes: what was promised stays, and doing it again works."""

from __future__ import annotations

import io
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fault_points import ForkOutcome, Kill, Say, run_killed
from free_port import free_port
from replica_world import assert_equal
from served_archive import running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.cli.main import main
from letopis.config import Settings
from letopis.exchange.replica import CloneSelection, clone, publish
from letopis.model import Put

_START = datetime(2026, 1, 1, tzinfo=UTC)
_PAGES = 6
_JOB = '<query name="q"><download maxlevel="2"><url>{site}/0.html</url></download><search>page</search></query>'
_SETTINGS = '[crawl]\ndelay = 0.0\n[fetch]\nprivate = "always"\n'


def _body(page: int, version: int) -> bytes:
    return "\n".join(f"<p>page {page} line {n} of {version if n % 7 == 0 else 0}</p>" for n in range(20)).encode()


def _puts(first: int, count: int) -> list[Put]:
    return [
        Put(f"http://h.example/{page}", _body(page, version), _START + timedelta(hours=version))
        for version in range(first, first + count)
        for page in range(3)
    ]


@dataclass
class KilledVerbs:
    """A sound archive, a site on loopback, and copies of both for each kill."""

    root: Path
    site: str = ""
    calls: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        (self.root / "letopis.toml").write_text(_SETTINGS)
        with Archive(self.root / "sound") as archive:
            list(archive.put_many(_puts(0, 3)))
            archive.compact(effort="quick")
            list(archive.put_many(_puts(3, 2)))
            accounts = accounts_of(archive)
            self.token = accounts.create_token("t", accounts.add("ada", "owner", "a long password", 1), "write", 1)
            publish(archive, self.root / "published-before")
            clone(str(self.root / "published-before"), self.root / "clone-before", CloneSelection(), Settings())
        with Archive(self.root / "sound") as archive:
            list(archive.put_many(_puts(5, 1)))
            archive.catalog.tidy()
        with Archive(self.root / "other") as archive:
            list(archive.put_many(put._replace(url=put.url.replace("h.", "other.")) for put in _puts(0, 3)))
        self._verb("other", "export", "warc", "-o", str(self.root / "other.warc.gz"))
        self._verb("sound", "backup", str(self.root / "backup-before"))

    def kill_one(self, number: int) -> str:
        """One kill of the kind whose turn it is; answers the kind. AssertionError when a promise is broken."""
        chance, kind = random.Random(number), list(KINDS)[number % len(KINDS)]
        kill = Kill(chance.randrange(1, self._calls_of(kind) + 1), after=chance.random() < 0.5)
        if chance.random() < 0.15:
            kill = Kill(seconds=chance.uniform(0.001, 0.15))
        with self._world(str(number), kind) as world:
            outcome = world.killed(kind, kill)
            try:
                if kind != "repair":  # what it began with was not sound
                    world.check(outcome.said)
                if outcome.killed or kind != "restore":  # which needs an empty folder
                    world.killed(kind, Kill())  # the next process needs no hands
                world.check(outcome.said)
                FINISHED.get(kind, KilledWorld.whole)(world)
            except BaseException as error:
                raise AssertionError(f"{kind} {kill}: {type(error).__name__}: {error}") from error
        return kind if outcome.killed else ""

    def _calls_of(self, kind: str) -> int:
        if kind not in self.calls:
            with self._world(f"count-{kind}", kind) as world:
                self.calls[kind] = max(1, world.killed(kind, Kill()).calls)
        return self.calls[kind]

    @contextmanager
    def _world(self, name: str, kind: str) -> Iterator[KilledWorld]:
        folder = self.root / f"try-{name}"
        folder.mkdir()
        for part in ("sound", "published-before", "clone-before", "backup-before"):
            shutil.copytree(self.root / part, folder / part)
        try:
            world = KilledWorld(self, folder)
            PREPARED.get(kind, KilledWorld.whole)(world)
            yield world
        finally:
            shutil.rmtree(folder)

    def _verb(self, archive: str, *words: str) -> None:
        _verb(self.root, archive, words)


def _verb(root: Path, archive: str, words: tuple[str, ...], config: Path | None = None) -> None:
    """Runs a verb in this process; AssertionError with its words when it fails."""
    told = ["--config", str((config or root) / "letopis.toml"), "--archive", str(root / archive), "--quiet", *words]
    output, errors = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        status = main(told)
    assert status == 0, f"{words}: status {status}, {errors.getvalue()[-500:]}"


@dataclass
class KilledWorld:
    """One archive that goes through one kill."""

    verbs: KilledVerbs
    folder: Path

    def killed(self, kind: str, kill: Kill) -> ForkOutcome:
        return run_killed(lambda say: KINDS[kind](self, say), kill)

    def verb(self, *words: str, archive: str = "sound") -> None:
        _verb(self.folder, archive, words, self.verbs.root)

    def check(self, said: list[str]) -> None:
        """Everything that was there or promised since reads as it was, once a repair that was asked for is done."""
        with Archive(self.folder / "sound") as archive:
            assert list(archive.verify()) == []
            for put in [*_puts(0, 6), *_puts(6, 2)[: len(said)]]:
                assert archive.get(put.url, at=put.at).body == put.body, put.url
            assert accounts_of(archive).user("ada").name == "ada"

    def put(self, say: Say) -> None:
        with Archive(self.folder / "sound") as archive:
            for put in _puts(6, 2):
                archive.put(put.url, put.body, put.at)
                say("stored")

    def serve(self, say: Say) -> None:
        with Archive(self.folder / "sound") as archive, running(archive) as client:
            for put in _puts(6, 2):
                path = f"/api/v1/content?url={put.url}&at={put.at:%Y-%m-%dT%H:%M:%SZ}"
                answer = client.ask("PUT", path, put.body, Authorization=f"Bearer {self.verbs.token}")
                assert answer.status < 300, answer.text
                say("stored")

    def restore(self, say: Say) -> None:
        self.verb("restore", str(self.folder / "backup-before"), archive="restored")

    def whole(self) -> None:
        """Nothing more is promised than the archive itself."""

    def backup_is_whole(self) -> None:
        self.verb("restore", str(self.folder / "backup-before"), archive="again")
        self.same("again")

    def restored_is_whole(self) -> None:
        self.same("restored")

    def clones_are_whole(self) -> None:
        target = self.folder / "clone-new"
        if not target.exists():
            clone(str(self.folder / "published-before"), target, CloneSelection(), Settings())
        with Archive(self.folder / "sound") as archive:
            publish(archive, self.folder / "published-before")
            self.verb("pull", str(target))
            assert_equal(archive, target)

    def same(self, other: str) -> None:
        with Archive(self.folder / other) as archive:
            assert list(archive.verify()) == []
            for put in _puts(0, 6):
                assert archive.get(put.url, at=put.at).body == put.body

    def page_is_found(self) -> None:
        self.verb("search", "page")


def _said_verb(*words: str) -> Callable[[KilledWorld, Say], None]:
    def work(world: KilledWorld, say: Say) -> None:
        places = {"folder": world.folder, "root": world.verbs.root, "site": world.verbs.site}
        world.verb(*(word.format(**places) for word in words))

    return work


def _job(world: KilledWorld) -> None:
    (world.folder / "job.xml").write_text(_JOB.format(site=world.verbs.site))


def _watch(world: KilledWorld) -> None:
    world.verb("watch", "add", f"{world.verbs.site}/1.html", "--notify", f"file:{world.folder}/alerts")


def _break_index(world: KilledWorld) -> None:
    """A damaged page of an index makes repair write a new catalogue."""
    file = world.folder / "sound" / "catalogue.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        page = connection.execute("SELECT max(rootpage) FROM sqlite_master WHERE type = 'index'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with file.open("rb+") as opened:
        opened.seek((page - 1) * size)
        opened.write(b"\xa5" * size)


def _pull(world: KilledWorld, say: Say) -> None:
    with Archive(world.folder / "sound") as archive:
        publish(archive, world.folder / "published-before")
    world.verb("pull", str(world.folder / "clone-before"))


def _clone(world: KilledWorld, say: Say) -> None:
    target = world.folder / "clone-new"
    words = ["pull", str(target)] if (target / "replica" / "clone.json").exists() else None
    world.verb(*(words or ["clone", str(world.folder / "published-before"), str(target)]))


KINDS: dict[str, Callable[[KilledWorld, Say], None]] = {
    "put": KilledWorld.put,
    "serve": KilledWorld.serve,
    "check": _said_verb("check", "{site}/2.html"),
    "crawl": _said_verb("crawl", "{site}/0.html", "--limit", "6", "--delay", "0"),
    "watch": _said_verb("watch", "run", "--once"),
    "job": _said_verb("jobs", "submit", "{folder}/job.xml", "--wait"),
    "compact": _said_verb("compact"),
    "index": _said_verb("search", "page", "--rebuild"),
    "links": _said_verb("broken", "h.example"),
    "import": _said_verb("import", "{root}/other.warc.gz"),
    "export": _said_verb("export", "warc", "-o", "{folder}/out.warc.gz"),
    "publish": _said_verb("publish", "{folder}/published-before"),
    "clone": _clone,
    "pull": _pull,
    "backup": _said_verb("backup", "{folder}/backup-before"),
    "restore": KilledWorld.restore,
    "repair": _said_verb("verify", "--repair"),
}
"""What a process of each kind does."""
PREPARED: dict[str, Callable[[KilledWorld], None]] = {"job": _job, "repair": _break_index, "watch": _watch}
"""What is there before."""
FINISHED: dict[str, Callable[[KilledWorld], None]] = {
    "backup": KilledWorld.backup_is_whole,
    "restore": KilledWorld.restored_is_whole,
    "publish": KilledWorld.clones_are_whole,
    "clone": KilledWorld.clones_are_whole,
    "pull": KilledWorld.clones_are_whole,
    "index": KilledWorld.page_is_found,
}
"""What must hold once it was done again."""


@contextmanager
def small_site(folder: Path) -> Iterator[str]:
    """A few pages on loopback, served by a process of their own: forked children share no threads with it."""
    folder.mkdir(parents=True)
    for page in range(_PAGES):
        links = "".join(f"<a href='{n}.html'>{n}</a>" for n in range(_PAGES))
        (folder / f"{page}.html").write_bytes(b"<title>page</title>" + _body(page, 0) + links.encode())
    port = free_port()
    words = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
