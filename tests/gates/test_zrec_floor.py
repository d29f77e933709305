"""Floors of zrec on generated data: raise them when the figures get better, lower them only with a reason."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from letopis.zrec import FileSource, pack, sync
from letopis.zstandard import zstd

DIGEST = "b3160a341b425740"
SIZE_UNGROUPED = 1.10
SIZE_GROUPED = 1.02
WIRE_OF_PATCH = 1.3


def _records(count: int, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(3, 9))) for _ in range(1500)]
    out = []
    for number in range(count):
        name = f"{rng.choice(words)}-{number:04d}"
        depends = ", ".join(f"lib{rng.choice(words[:200])} (>= {rng.randrange(20)})" for _ in range(rng.randint(2, 14)))
        files = "\n".join(f" {rng.randbytes(32).hex()} {rng.randrange(10**6)} {name}_{n}.tar.xz" for n in range(2))
        about = " ".join(rng.choices(words, k=30))
        head = f"Package: {name}\nBuild-Depends: {depends}\nMaintainer: Team <team@example.org>"
        out.append(f"{head}\nFiles:\n{files}\nAbout: {about}".encode())
    return sorted(out)


OLD = _records(2500, 1)
NEW = sorted([record for at, record in enumerate(OLD) if at % 40] + _records(60, 2))


def _text(records: list[bytes]) -> bytes:
    return b"\n\n".join(records) + b"\n\n"


def test_the_data_is_the_one_the_floors_were_measured_on() -> None:
    assert hashlib.sha256(_text(OLD) + _text(NEW)).hexdigest()[:16] == DIGEST


@pytest.mark.parametrize(("group", "floor"), [("1", SIZE_UNGROUPED), ("2-4", SIZE_GROUPED)])
def test_file_stays_near_solid_compression(tmp_path: Path, group: str, floor: float) -> None:
    text = _text(OLD)
    packed = pack(text, tmp_path / "a.zrec", group=group)
    assert packed.size / len(zstd.compress(text, 19)) <= floor


async def test_update_stays_near_what_a_server_that_knew_the_old_text_would_send(tmp_path: Path) -> None:
    pack(_text(OLD), tmp_path / "copy.zrec")
    pack(_text(NEW), tmp_path / "new.zrec", dict_from=tmp_path / "copy.zrec")
    report = await sync(FileSource(tmp_path / "new.zrec"), tmp_path / "copy.zrec")
    options = {zstd.CompressionParameter.compression_level: 19, zstd.CompressionParameter.window_log: 24}
    patch = zstd.compress(_text(NEW), options=options, zstd_dict=zstd.ZstdDict(_text(OLD), is_raw=True).as_prefix)
    assert report.bytes_downloaded / len(patch) <= WIRE_OF_PATCH
    assert report.requests == 3
