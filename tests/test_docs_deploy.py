"""docs/deploy, typed step by step, with PostgreSQL from its wheel, moto's S3 and a web on loopback."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from scripted_site import ScriptedSite
from services import ObjectServer

from letopis.cli.context import CliContext
from letopis.cli.main import root_command as cli
from letopis.config import settings_table

DEPLOY = Path(__file__).parent.parent / "docs" / "deploy"
GUIDE = (DEPLOY / "scale-out.md").read_text()
ELSEWHERE = ("python3 -m venv", "/opt/letopis/bin/pip", "export PATH=")
"""The installation: tests run what is installed already."""
ON_A_CLUSTER = "--cluster"
"""tests/scale/test_cluster.py starts one."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def typed() -> list[str]:
    return [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]


class Machine:
    """An empty folder, an environment, and what the names of the guide stand for here."""

    def __init__(self, folder: Path, meanings: dict[str, str]) -> None:
        self.folder = folder
        self._meanings = meanings
        self._given = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}

    def meant(self, text: str) -> str:
        for written, meant in self._meanings.items():
            text = text.replace(written, meant)
        return text

    def start(self, line: str, **given: str) -> subprocess.Popen[str]:
        words = shlex.split(self.meant(line))[1:]
        return subprocess.Popen(
            [sys.executable, "-m", "letopis.cli", *words], cwd=self.folder, env={**self._given, **given},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def type(self, line: str) -> str:
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self._given[name] = self.meant(value)
            return ""
        command = self.start(line)
        printed, errors = command.communicate(timeout=300)
        assert command.returncode == 0, f"{line}: {errors}"
        return printed


@pytest.fixture
def site(scripted_site: ScriptedSite) -> ScriptedSite:
    scripted_site.set("/", b"<title>Home</title>" + b"".join(b"<a href='/%d'>%d</a>" % (n, n) for n in range(6)))
    for number in range(6):
        scripted_site.set(f"/{number}", b"<p>page %d" % number)
    return scripted_site


@pytest.fixture
def machine(postgres_server: str, object_server: ObjectServer, site: ScriptedSite, tmp_path: Path) -> Iterator[Machine]:
    place = psycopg.conninfo.conninfo_to_dict(postgres_server)["host"]
    meanings = {
        "postgresql://letopis:...@db.example/letopis": f"postgresql://letopis@/letopis?host={place}",
        "https://objects.example": object_server.endpoint,
        "s3://letopis/archive": object_server.settings().url,
        'access_key = "..."': 'access_key = "key"',
        'secret_key = "..."': 'secret_key = "secret"',
        "/var/lib/letopis": str(tmp_path / "lib"),
        "/etc/letopis": str(tmp_path / "etc"),
        "https://example.org/": site.url("/"),
        "https://example.com/": site.url("/"),
    }
    for name in ("etc", "work"):
        (tmp_path / name).mkdir()
    yield Machine(tmp_path / "work", meanings)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS letopis WITH (FORCE)")
        connection.execute("DROP USER IF EXISTS letopis")


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def crawl_with_agents(machine: Machine, site: ScriptedSite) -> None:
    """`letopis crawl` twice over, as on two machines, until all pages were asked for; then both are told to stop."""
    agents = [
        machine.start("letopis crawl", LETOPIS_ARCHIVE=str(machine.folder / name), LETOPIS_CRAWL_DELAY="0")
        for name in ("one", "two")
    ]
    until(lambda: {f"/{number}" for number in range(6)} <= {path for _, path, _ in site.log})
    for agent in agents:
        agent.send_signal(signal.SIGTERM)
    told = [agent.communicate(timeout=300) for agent in agents]
    ended = {agent.returncode for agent in agents}
    assert ended <= {0, -signal.SIGTERM}, told  # one that was told to stop before it had begun has nothing to end
    assert 0 in ended


def test_the_guide_to_many_machines_can_be_typed(machine: Machine, site: ScriptedSite, postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for statement in blocks("sql")[0].strip().split("\n"):
            connection.execute(statement.rstrip(";"))
    Path(machine.meant("/etc/letopis/letopis.toml")).write_text(machine.meant(blocks("toml")[0]))
    (machine.folder / "embedded.toml").write_text(f'[archive]\npath = "{machine.folder / "back"}"\n')
    machine.type("letopis --archive old-archive put http://old.example/ embedded.toml")
    lines = [line for line in typed() if not line.startswith(ELSEWHERE) and ON_A_CLUSTER not in line]
    for line in lines:
        if line == "letopis crawl":
            crawl_with_agents(machine, site)
        else:
            machine.type(line)
    assert machine.type("letopis --archive back --config embedded.toml versions http://old.example/")
    assert '"hosts": 2' in machine.type("letopis stats --json")


def test_every_line_of_the_guide_is_typed_or_accounted_for() -> None:
    known = ("letopis ", "export LETOPIS_", *ELSEWHERE)
    assert [line for line in typed() if not line.startswith(known)] == []
    assert "letopis crawl" in typed()


def understood(words: list[str]) -> None:
    """UsageError of the command line when a verb or an option does not exist."""
    context = cli.make_context("letopis", list(words), obj=CliContext())
    name, command, rest = cli.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    command.make_context(name or "", rest, parent=context)


def is_setting(name: str) -> bool:
    known = {"LETOPIS_" + row.name.upper().replace(".", "_") for row in settings_table().values()}
    return name in known | {"LETOPIS_ARCHIVE", "LETOPIS_CONFIG"}


def containers() -> list[dict[str, Any]]:
    """All containers of the manifest, wherever they stand."""
    found: list[dict[str, Any]] = []

    def search(value: object) -> None:
        if isinstance(value, dict):
            found.extend(value.get("containers", []))
            for part in value.values():
                search(part)
        elif isinstance(value, list):
            for part in value:
                search(part)

    search(list(yaml.safe_load_all((DEPLOY / "kubernetes" / "letopis.yaml").read_text())))
    return found


def test_the_manifest_gives_commands_and_settings_that_exist() -> None:
    for container in containers():
        understood([str(word) for word in container["args"]])
        assert all(is_setting(variable["name"]) for variable in container["env"])
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert any(variable["value"].startswith(tuple(mounted)) for variable in container["env"])
    secret = next(yaml.safe_load_all((DEPLOY / "kubernetes" / "letopis.yaml").read_text()))
    assert all(is_setting(name) for name in secret["stringData"])
    assert len(containers()) == 3


def test_the_probe_of_the_manifest_asks_a_route_that_needs_no_right() -> None:
    paths = [
        container["readinessProbe"]["httpGet"]["path"] for container in containers() if "readinessProbe" in container
    ]
    assert paths == ["/healthz"]


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_units_give_commands_and_settings_that_exist(unit: Path) -> None:
    text = unit.read_text()
    (command,) = re.findall(r"^ExecStart=/opt/letopis/bin/letopis (.*)$", text, re.MULTILINE)
    understood(shlex.split(command))
    assert all(is_setting(name) for name in re.findall(r"^Environment=(\w+)=", text, re.MULTILINE))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="SKIPPED: no systemd-analyze to judge the units")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in (DEPLOY / "systemd").iterdir():
        # Only the program is not where the guide installs it.
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/letopis/bin/letopis", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
