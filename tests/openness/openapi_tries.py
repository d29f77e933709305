"""A client that a generator makes of our OpenAPI document, used as it is against a running service."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from served_archive import PAGE, WebClient, fill, running
from small_warcs import Answered, write_warc
from tries import Score, compared

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.model import to_millis

_ASKING = """
import json, sys
from io import BytesIO
from letopis_client import AuthenticatedClient, types
from letopis_client.api.checks import history_api_v1_history_get as history
from letopis_client.api.checks import versions_api_v1_versions_get as versions
from letopis_client.api.exchange import export_api_v1_export_get as export
from letopis_client.api.imports import import_upload_api_v1_import_post as upload
from letopis_client.api.links import broken_api_v1_broken_get as broken
from letopis_client.api.totals import stats_api_v1_stats_get as stats
from letopis_client.api.watches import watch_add_api_v1_watches_post as watch_add
from letopis_client.api.watches import watch_list_api_v1_watches_get as watch_list
from letopis_client.models import WatchAddApiV1WatchesPostBody as Watched
base, token, page, file = sys.argv[1:]
client = AuthenticatedClient(base_url=base, token=token)
found = {}
found["history"] = [check.status for check in history.sync(client=client, url_query=page).history]
found["versions"] = len(versions.sync(client=client, url_query=page).versions)
found["a page that is not known"] = history.sync(client=client, url_query="http://never.test/").status
found["broken"] = [link.target for link in broken.sync(client=client, site="example.org").broken]
kinds = export.ExportApiV1ExportGetKind
found["export"] = export.sync_detailed(client=client, kind=kinds.URLS).content.decode().splitlines()[:1]
sent = types.File(BytesIO(open(file, "rb").read()))
found["upload"] = upload.sync(client=client, body=sent, name="in.warc").versions
watch_add.sync(client=client, body=Watched(url=[page], every="1h"))
found["watches"] = [watch.url for watch in watch_list.sync(client=client).watches]
found["checks"] = stats.sync(client=client).checks
print(json.dumps(found))
"""


class _Service(NamedTuple):
    """A service with an archive that is known, the token of an owner, and a file to send."""

    web: WebClient
    token: str
    file: Path


@contextmanager
def _service(folder: Path) -> Iterator[_Service]:
    with Archive(folder / "archive") as archive:
        fill(archive)
        token = accounts_of(archive).create_token("client", None, "write", to_millis(archive.clock()))
        file = write_warc(folder / "in.warc", [Answered("http://imported.test/", 0, 200, b"imported")])
        with running(archive) as web:
            yield _Service(web, token, file)


def _plainly(service: _Service) -> dict[str, object]:
    """The same questions by HTTP alone."""

    def asked(method: str, path: str, body: bytes | None = None) -> dict[str, object]:
        kind = "application/json" if path == "/watches" else "application/octet-stream"
        sent = {"Authorization": f"Bearer {service.token}", "Content-Type": kind}
        found: dict[str, object] = service.web.ask(method, f"/api/v1{path}", body, **sent).json()
        return found

    def rows(path: str, name: str) -> list[dict[str, object]]:
        found = asked("GET", path)[name]
        assert isinstance(found, list)
        return found

    found: dict[str, object] = {
        "history": [row["status"] for row in rows(f"/history?url={PAGE}", "history")],
        "versions": len(rows(f"/versions?url={PAGE}", "versions")),
        "a page that is not known": asked("GET", "/history?url=http://never.test/")["status"],
        "broken": [row["target"] for row in rows("/broken?site=example.org", "broken")],
        "export": service.web.get("/api/v1/export?kind=urls").text.splitlines()[:1],
        "upload": asked("POST", "/import?name=in.warc", service.file.read_bytes())["versions"],
    }
    asked("POST", "/watches", json.dumps({"url": [PAGE], "every": "1h"}).encode())
    found["watches"] = [row["url"] for row in rows("/watches", "watches")]
    return found | {"checks": asked("GET", "/stats")["checks"]}


def _generated(folder: Path, service: _Service, environment: Path) -> dict[str, object]:
    (folder / "openapi.json").write_bytes(service.web.get("/openapi.json").body)
    tools = environment / "bin"
    around = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(folder)}
    subprocess.run(
        [tools / "openapi-python-client", "generate", "--path", folder / "openapi.json", "--meta", "none",
         "--output-path", folder / "letopis_client", "--overwrite"],
        check=True, capture_output=True, timeout=300, env=around,
    )  # fmt: skip
    told = subprocess.run(
        [tools / "python", "-W", "ignore", "-c", _ASKING, service.web.address, service.token, PAGE, service.file],
        capture_output=True, text=True, timeout=300, env=around,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    found: dict[str, object] = json.loads(told.stdout)
    return found


EXPECTED: dict[str, object] = {
    "history": [200, 200, 304, 200, 404, 0],
    "versions": 2,
    "a page that is not known": 404,
    "broken": [],
    "export": [PAGE],
    "upload": 1,
    "watches": [PAGE],
    "checks": 13,
}


def quick(folder: Path) -> Score:
    with _service(folder) as service:
        return compared(_plainly(service), EXPECTED)


def full(folder: Path, environment: Path) -> Score:
    with _service(folder) as service:
        return compared(_generated(folder, service, environment), EXPECTED)
