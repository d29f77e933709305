"""The zrec verbs and their sync over a real static server, with and without ranges."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis import zrec
from letopis.archive import utc_now
from letopis.cli.main import main
from letopis.config import FetchSettings
from letopis.errors import LetopisError, NotFound
from letopis.exchange.remote_file import open_zrec, source_of, sync_file
from letopis.exchange.replica.origin import Origin, open_origin
from letopis.zrec import RangeSource


@dataclass
class Moods:
    """How the server behaves: whether it knows ranges and sends ETags, where it cuts off, what it counted."""

    ranges: bool = True
    etags: bool = False
    cut_after: int | None = None
    before_answer: Callable[[int], None] = lambda number: None
    requests: int = 0
    sent: int = 0


@pytest.fixture
def moods() -> Moods:
    return Moods()


@pytest.fixture
def static(tmp_path: Path, moods: Moods) -> Iterator[str]:
    """A static server with single ranges over `tmp_path/www`."""
    folder = tmp_path / "www"
    folder.mkdir()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            moods.requests += 1
            moods.before_answer(moods.requests)
            file = folder / self.path.lstrip("/")
            data = file.read_bytes() if file.is_file() else b""
            etag = f'"{sha256(data).hexdigest()}"'
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")) if moods.ranges else None
            if moods.etags and self.headers.get("If-Range", etag) != etag:
                wanted = None
            self.send_response(404 if not file.is_file() else 206 if wanted else 200)
            if wanted and data:
                start, end = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
                data = data[start:end]
            self.send_header("Content-Length", str(len(data)))
            if moods.etags:
                self.send_header("ETag", etag)
            self.end_headers()
            moods.sent += len(data[: moods.cut_after])
            with suppress(ConnectionError):
                self.wfile.write(data[: moods.cut_after])
            self.close_connection = moods.cut_after is not None and moods.cut_after < len(data)

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


def large(folder: Path, seed: int = 1) -> Path:
    """A file of some megabytes of records that no coder makes smaller."""
    chance = random.Random(seed)
    text = b"\n\n".join(b"Name: n%05d\nData: %s" % (n, chance.randbytes(1500).hex().encode()) for n in range(2000))
    zrec.pack(text, folder / "big.zrec", dictionary_size=0)
    return folder / "big.zrec"


def test_a_server_without_ranges_is_not_asked_for_more_than_a_little_twice(
    static: str, moods: Moods, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moods.ranges = False
    file = large(tmp_path / "www")
    report = said(capsys, "sync", f"{static}/big.zrec", str(tmp_path / "copy.zrec"))
    assert (tmp_path / "copy.zrec").read_bytes() == file.read_bytes()
    assert report["fallback"] is True
    assert int(str(report["bytes_downloaded"])) < 1.2 * file.stat().st_size


def test_the_whole_of_a_large_file_is_handed_on_in_small_pieces(static: str, moods: Moods, tmp_path: Path) -> None:
    moods.ranges = False
    file = large(tmp_path / "www")

    async def pieces() -> list[int]:
        async with source_of(f"{static}/big.zrec", FetchSettings(), utc_now) as source:
            return [len(piece) async for piece in source.stream()]

    sizes = asyncio.run(pieces())
    assert sum(sizes) == file.stat().st_size
    assert max(sizes) <= 1 << 20


def test_a_small_file_that_comes_whole_for_a_range_is_fetched_once(
    static: str, moods: Moods, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moods.ranges = False
    file = packed(tmp_path / "www", records(), capsys)
    said(capsys, "sync", f"{static}/r.zrec", str(tmp_path / "copy.zrec"))
    assert (tmp_path / "copy.zrec").read_bytes() == file.read_bytes()
    assert moods.requests == 2  # release and file


@pytest.mark.parametrize("etags", [True, False])
def test_a_release_that_changes_midway_is_followed(
    static: str, moods: Moods, tmp_path: Path, capsys: pytest.CaptureFixture[str], etags: bool
) -> None:
    www = tmp_path / "www"
    large(www)
    newer = tmp_path / "newer"
    newer.mkdir()
    large(newer, seed=2)

    def change(number: int) -> None:
        if number == 4:
            for name in ("big.zrec", "big.zrec.release"):
                os.replace(newer / name, www / name)

    moods.etags, moods.before_answer = etags, change
    report = said(capsys, "sync", f"{static}/big.zrec", str(tmp_path / "copy.zrec"))
    assert report["verified"] is True
    assert (tmp_path / "copy.zrec").read_bytes() == (www / "big.zrec").read_bytes()


def test_a_connection_that_is_cut_again_and_again_loses_nothing(
    static: str, moods: Moods, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = large(tmp_path / "www")
    moods.cut_after = 200_000
    said(capsys, "sync", f"{static}/big.zrec", str(tmp_path / "copy.zrec"))
    assert (tmp_path / "copy.zrec").read_bytes() == file.read_bytes()
    assert moods.sent < 1.1 * file.stat().st_size


def test_what_came_of_a_range_before_the_server_went_away_is_not_fetched_again(
    static: str, moods: Moods, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = large(tmp_path / "www")
    size = file.stat().st_size

    def fail(number: int) -> None:
        moods.cut_after = None if number < 6 else 100_000 if number < 10 else 0

    moods.before_answer = fail
    assert main(["zrec", "sync", f"{static}/big.zrec", str(tmp_path / "copy.zrec"), "-q"]) == 4
    first, moods.sent, moods.cut_after, moods.before_answer = moods.sent, 0, None, lambda number: None
    assert 0 < first < size
    said(capsys, "sync", f"{static}/big.zrec", str(tmp_path / "copy.zrec"))
    assert (tmp_path / "copy.zrec").read_bytes() == file.read_bytes()
    assert moods.sent < size - first + 200_000


def test_one_record_of_a_remote_file_takes_a_few_ranges(
    static: str, moods: Moods, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = large(tmp_path / "www")
    assert main(["zrec", "get", f"{static}/big.zrec", "n01234"]) == 0
    assert capsys.readouterr().out.startswith("Name: n01234\n")
    assert moods.sent < file.stat().st_size / 10
    assert main(["zrec", "get", f"{static}/big.zrec", "nobody"]) == 3
    assert main(["zrec", "get", f"{static}/none.zrec", "nobody"]) == 3


def test_python_reads_and_syncs_a_remote_file_by_plain_calls(static: str, tmp_path: Path) -> None:
    file = large(tmp_path / "www")
    with open_zrec(f"{static}/big.zrec") as reader:
        assert reader.get("n01234").startswith(b"Name: n01234\n")
        with pytest.raises(NotFound, match=r"ZrecReader\.records"):
            reader.get("nobody")
    assert sync_file(f"{static}/big.zrec", tmp_path / "copy.zrec").verified
    assert (tmp_path / "copy.zrec").read_bytes() == file.read_bytes()


def test_the_difference_of_two_files_names_their_records(
    static: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = packed(tmp_path, records(), capsys)
    new = packed(tmp_path / "www", records(frozenset({7})).replace(b"p0009", b"p0009a"), capsys)
    for other in (str(new), f"{static}/r.zrec"):
        assert main(["zrec", "diff", str(old), other, "--json"]) == 0
        rows = [tuple(json.loads(line).values()) for line in capsys.readouterr().out.splitlines()]
        assert rows == [("changed", "p0007"), ("removed", "p0009"), ("added", "p0009a")]


def test_packing_tells_of_names_out_of_order_and_of_several_records_of_one_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_bytes(b"Package: b\n\nPackage: a\n\nPackage: b\n")
    assert main(["zrec", "pack", str(tmp_path / "in"), str(tmp_path / "out.zrec")]) == 0
    told = capsys.readouterr().err
    assert "not sorted: 'a' stands behind 'b'" in told
    assert "names shared by several records: 1, 'b' for 2" in told


def test_a_key_signs_the_release_and_the_size_of_the_dictionary_is_a_choice(
    static: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    www = tmp_path / "www"
    (www / "in").write_bytes(records())
    (tmp_path / "key").write_bytes(b"secret\n")
    (tmp_path / "other").write_bytes(b"another")
    key = str(tmp_path / "key")
    said(capsys, "pack", str(www / "in"), str(www / "r.zrec"), "--key", key, "--dict-size", "2048")
    assert int(str(said(capsys, "info", str(www / "r.zrec"))["dictionary_size"])) <= 2048
    assert said(capsys, "sync", f"{static}/r.zrec", str(tmp_path / "c"), "--key", key)["verified"] is True
    assert main(["zrec", "sync", f"{static}/r.zrec", str(tmp_path / "d"), "--key", str(tmp_path / "other")]) == 7


@pytest.mark.parametrize("open_at", [source_of, open_origin])
async def test_who_allows_no_private_network_reads_no_file_and_no_origin_from_it(
    static: str, tmp_path: Path, moods: Moods, open_at: Callable[..., AbstractAsyncContextManager[RangeSource | Origin]]
) -> None:
    (tmp_path / "www" / "release").write_bytes(b"x")
    async with open_at(f"{static}/release", FetchSettings(private="never"), utc_now) as opened:
        with pytest.raises(LetopisError, match="private network"):
            await (opened.release() if isinstance(opened, Origin) else opened.read(0, 1))
    assert moods.requests == 0
