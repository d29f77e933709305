"""docs/deploy, typed step by step, with PostgreSQL from its wheel, moto's S3 and a web on loopback."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml
from patience import until
from scripted_site import ScriptedSite
from services import ObjectServer

from letopis.cli.context import CliContext
from letopis.cli.main import root_command as cli
from letopis.config import settings_table
from letopis.index.lemma_tables import cache_folder

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


def can_be_told_to_stop(agent: subprocess.Popen[str]) -> bool:
    status = Path(f"/proc/{agent.pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def crawl_with_agents(machine: Machine, site: ScriptedSite) -> None:
    """`letopis crawl` twice over, as on two machines, until all pages were asked for; then both are told to stop."""
    agents = [
        machine.start("letopis crawl", LETOPIS_ARCHIVE=str(machine.folder / name), LETOPIS_CRAWL_DELAY="0")
        for name in ("one", "two")
    ]
    until(lambda: {f"/{number}" for number in range(6)} <= {path for _, path, _ in site.log})
    until(lambda: all(map(can_be_told_to_stop, agents)))
    for agent in agents:
        agent.send_signal(signal.SIGTERM)
    told = [agent.communicate(timeout=300) for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], told


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


def kubernetes_services() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "services.yaml").read_text()))


def test_the_manifest_finds_the_services_that_stand_beside_it() -> None:
    given = next(yaml.safe_load_all((DEPLOY / "kubernetes" / "letopis.yaml").read_text()))["stringData"]
    database, store = urlsplit(given["LETOPIS_DATABASE_URL"]), urlsplit(given["LETOPIS_STORE_ENDPOINT"])
    ports = {one["metadata"]["name"]: one["spec"]["ports"][0]["port"] for one in kubernetes_services()
             if one["kind"] == "Service"}  # fmt: skip
    assert ports == {database.hostname: database.port or 5432, store.hostname: store.port}
    secret = kubernetes_services()[0]["stringData"]
    assert secret == {
        "POSTGRES_PASSWORD": database.password,
        "MINIO_ROOT_USER": given["LETOPIS_STORE_ACCESS_KEY"],
        "MINIO_ROOT_PASSWORD": given["LETOPIS_STORE_SECRET_KEY"],
    }


def test_services_are_the_same_with_compose_and_kubernetes() -> None:
    pods = [one["spec"]["template"]["spec"]["containers"] for one in kubernetes_services() if "template" in
            one.get("spec", {})]  # fmt: skip
    images = {container["image"]: container.get("args") for found in pods for container in found}
    composed_images = {one["image"]: one.get("command") for name, one in composed()["services"].items()
                       if name not in own_services()}  # fmt: skip
    assert images == composed_images


def test_the_probe_of_the_manifest_asks_a_route_that_needs_no_right() -> None:
    paths = [
        container["readinessProbe"]["httpGet"]["path"] for container in containers() if "readinessProbe" in container
    ]
    assert paths == ["/healthz"]


def composed() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def test_a_service_without_a_home_keeps_its_tables_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (DEPLOY / "systemd" / "letopis-serve.service").read_text().splitlines()
    assert {"ProtectHome=yes", "CacheDirectory=letopis", "Environment=XDG_CACHE_HOME=/var/cache"} <= set(lines)
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert Path("/var/cache/letopis") in cache_folder().parents


def own_services() -> dict[str, dict[str, Any]]:
    return {name: one for name, one in composed()["services"].items() if one["image"] == "letopis:latest"}


def test_the_compose_file_gives_commands_and_settings_that_exist() -> None:
    for one in own_services().values():
        understood([str(word) for word in one["command"]])
        assert [name for name in one["environment"] if not is_setting(name)] == []
        mounted = tuple(mount.partition(":")[0] for mount in one["tmpfs"])
        assert one["environment"]["LETOPIS_ARCHIVE"].startswith(mounted)
    assert sorted(own_services()) == ["compact", "crawl", "serve"]


def test_the_compose_file_and_the_manifest_run_the_same() -> None:
    manifest = {tuple(container["args"]): container["image"] for container in containers()}
    assert {tuple(one["command"]): one["image"] for one in own_services().values()} == manifest
    secret = next(yaml.safe_load_all((DEPLOY / "kubernetes" / "letopis.yaml").read_text()))["stringData"]
    for one in own_services().values():
        assert secret.keys() | {"LETOPIS_ARCHIVE"} <= one["environment"].keys()
        assert one["environment"]["LETOPIS_STORE_ENDPOINT"] == secret["LETOPIS_STORE_ENDPOINT"]
        assert one["environment"]["LETOPIS_STORE_URL"] == secret["LETOPIS_STORE_URL"]
        assert (DEPLOY / one["build"]["context"] / "Dockerfile").is_file()


def test_what_the_compose_file_refers_to_is_in_it_and_no_secret_has_a_default() -> None:
    file = composed()
    for one in file["services"].values():
        assert one.get("depends_on", {}).keys() <= file["services"].keys()
        assert {mount.partition(":")[0] for mount in one.get("volumes", [])} <= file["volumes"].keys()
        for name, value in one.get("environment", {}).items():
            if re.search("PASSWORD|KEY", name):
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value)
    waited = {name for one in file["services"].values() for name, how in one.get("depends_on", {}).items()
              if how["condition"] == "service_healthy"}  # fmt: skip
    assert all("healthcheck" in file["services"][name] for name in waited)


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_units_give_commands_and_settings_that_exist(unit: Path) -> None:
    text = unit.read_text()
    (command,) = re.findall(r"^ExecStart=/opt/letopis/bin/letopis (.*)$", text, re.MULTILINE)
    understood(shlex.split(command))
    given = set(re.findall(r"^Environment=(\w+)=", text, re.MULTILINE))
    assert all(is_setting(name) for name in given - {"XDG_CACHE_HOME"})


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
