"""Clients that other people wrote, led to Letopis by what they let one set, and otherwise as they are."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from served_peers import served_warc
from small_warcs import Answered, redirect, stamp, write_warc
from tries import Score, compared

_ASKING = """
import json, sys
from datetime import datetime
import cdx_toolkit, memento_client
from cdx_toolkit import myrequests
base, page, hurry = sys.argv[1:]
if hurry:
    myrequests.retry_info["default"]["minimum_interval"] = 0
found = {}
client = memento_client.MementoClient(timegate_uri=base + "/web/", check_native_timegate=False)
told = client.get_memento_info(page, datetime(2024, 3, 1, 12, 0, 12))["mementos"]
found["memento_client: the closest"] = told["closest"]["uri"][0].removeprefix(base)
found["memento_client: the first"] = str(told["first"]["datetime"])
found["memento_client: the last"] = str(told["last"]["datetime"])
for dialect in ("/cdx/search/cdx", "/web/cdx"):
    fetcher = cdx_toolkit.CDXFetcher(source=base + dialect, wb=base + "/web")
    rows = list(fetcher.iter(page, limit=10))
    found[f"cdx_toolkit {dialect}: rows"] = [[row["timestamp"], row["status"], row["mime"]] for row in rows]
    found[f"cdx_toolkit {dialect}: bytes"] = rows[0].content.decode()
    found[f"cdx_toolkit {dialect}: a host"] = len(list(fetcher.iter(page.rpartition("/")[0] + "/*", limit=10)))
    found[f"cdx_toolkit {dialect}: nothing"] = len(list(fetcher.iter("http://nowhere.test/", limit=10)))
    found[f"cdx_toolkit {dialect}: a time"] = [row["timestamp"] for row in fetcher.get(page, limit=1)]
print(json.dumps(found))
"""


@contextmanager
def _live_page() -> Iterator[str]:
    """memento_client asks the page itself first, so there has to be one."""

    class Page(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

        do_GET = do_HEAD

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page?a=1&b=%C3%A9"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _expected(page: str) -> dict[str, object]:
    rows = [[stamp(after), "200", "text/html"] for after in (0, 10, 40)]
    found: dict[str, object] = {
        "memento_client: the closest": f"/web/{stamp(10)}/{page}",
        "memento_client: the first": "2024-03-01 12:00:00",
        "memento_client: the last": "2024-03-01 12:00:40",
    }
    for dialect in ("/cdx/search/cdx", "/web/cdx"):
        name = f"cdx_toolkit {dialect}"
        found |= {f"{name}: rows": rows, f"{name}: bytes": "version 0", f"{name}: a host": 4, f"{name}: nothing": 0}
        found[f"{name}: a time"] = [stamp(0)]
    return found


def _asked(folder: Path, python: str, hurry: str) -> Score:
    with _live_page() as page:
        answers = [Answered(page, after, 200, b"version %d" % after) for after in (0, 10, 40)]
        other = redirect(page.partition("?")[0].removesuffix("page") + "moved", 20, "/page")
        with served_warc(folder, write_warc(folder / "clients.warc", [*answers, other])) as web:
            told = subprocess.run(
                [python, "-W", "ignore", "-c", _ASKING, web.address, page, hurry],
                capture_output=True, text=True, timeout=300,
            )  # fmt: skip
        assert told.returncode == 0, told.stderr
        return compared(json.loads(told.stdout), _expected(page))


def quick(folder: Path) -> Score:
    return _asked(folder, sys.executable, "yes")


def full(folder: Path, environment: Path) -> Score:
    return _asked(folder, str(environment / "bin" / "python"), "")
