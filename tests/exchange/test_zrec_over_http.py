"""The zrec verbs and their sync over a real static server, with and without ranges."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.cli.main import main


@pytest.fixture
def static(tmp_path: Path) -> Iterator[str]:
    """A static server with single ranges over `tmp_path/www`."""
    folder = tmp_path / "www"
    folder.mkdir()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            file = folder / self.path.lstrip("/")
            data = file.read_bytes() if file.is_file() else b""
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            self.send_response(404 if not file.is_file() else 206 if wanted else 200)
            if wanted and data:
                start, end = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
                data = data[start:end]
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def records(changed: frozenset[int] = frozenset()) -> bytes:
    rows = [
        f"Package: p{number:04}\nVersion: {2 if number in changed else 1}.{number}\nDescription: package {number}"
        for number in range(400)
    ]
    return "\n\n".join(rows).encode() + b"\n"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["zrec", *words, "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


def packed(folder: Path, text: bytes, capsys: pytest.CaptureFixture[str]) -> Path:
    (folder / "in.txt").write_bytes(text)
    said(capsys, "pack", str(folder / "in.txt"), str(folder / "r.zrec"))
    return folder / "r.zrec"


def test_sync_downloads_only_what_changed(static: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    www = tmp_path / "www"
    packed(www, records(), capsys)
    whole = said(capsys, "sync", f"{static}/r.zrec", str(tmp_path / "copy.zrec"))
    packed(www, records(frozenset({7, 200})), capsys)
    update = said(capsys, "sync", f"{static}/r.zrec", str(tmp_path / "copy.zrec"))
    assert (tmp_path / "copy.zrec").read_bytes() == (www / "r.zrec").read_bytes()
    assert update["verified"] is True
    assert (update["chunks_fetched"], update["fallback"]) == (2, False)
    assert int(str(update["bytes_downloaded"])) < 0.5 * int(str(whole["bytes_downloaded"]))


def test_server_without_ranges_gives_the_whole_file(
    scripted_site: ScriptedSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = packed(tmp_path, records(), capsys)
    url = scripted_site.set("/r.zrec", file.read_bytes())
    scripted_site.set("/r.zrec.release", Path(f"{file}.release").read_bytes())
    report = said(capsys, "sync", url, str(tmp_path / "copy.zrec"))
    assert (report["fallback"], report["verified"]) == (True, True)
    assert (tmp_path / "copy.zrec").read_bytes() == file.read_bytes()


def test_missing_file_and_record_have_their_exit_statuses(
    static: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = packed(tmp_path, records(), capsys)
    assert main(["zrec", "sync", f"{static}/none.zrec", str(tmp_path / "x.zrec")]) in (3, 4)
    assert main(["zrec", "get", str(file), "nobody"]) == 3
    assert main(["zrec", "get", str(file), "p0007"]) == 0
    assert "Version: 1.7" in capsys.readouterr().out


def test_damaged_file_exits_6(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = packed(tmp_path, records(), capsys)
    data = bytearray(file.read_bytes())
    data[-20] ^= 0xFF
    file.write_bytes(data)
    assert main(["zrec", "verify", str(file)]) == 6
