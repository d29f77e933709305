"""What others make of the same versions: solid archives of all of them, and git."""

from __future__ import annotations

import io
import lzma
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.storing.corpus import Document
from letopis.zstandard import CompressionParameter, compress

_WINDOW = 27


def xz(documents: Sequence[Document]) -> int:
    """Bytes of one tar of everything by `xz -9e`."""
    return len(lzma.compress(_tar(documents), preset=9 | lzma.PRESET_EXTREME))


def zstd(documents: Sequence[Document]) -> int:
    """Bytes of the same tar by `zstd --ultra -22 --long`."""
    options: dict[int, int] = {
        CompressionParameter.compression_level: 22,
        CompressionParameter.window_log: _WINDOW,
        CompressionParameter.enable_long_distance_matching: 1,
    }
    return len(compress(_tar(documents), options=options))


def git(documents: Sequence[Document]) -> int | None:
    """Bytes of the pack after one commit a version and `git gc --aggressive`; None without git."""
    program = shutil.which("git")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "init", "-q", "--bare", folder], check=True)
        import_ = [program, "-C", folder, "fast-import", "--quiet"]
        subprocess.run(import_, input=b"".join(_commits(documents)), check=True, stdout=subprocess.DEVNULL)
        subprocess.run([program, "-C", folder, "gc", "--aggressive", "--prune=now", "-q"], check=True)
        return sum(path.stat().st_size for path in Path(folder).glob("objects/pack/*.pack"))


PEERS: dict[str, Callable[[Sequence[Document]], int | None]] = {"xz -9e": xz, "zstd -22 --long": zstd, "git gc": git}


def _tar(documents: Sequence[Document]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for document in documents:
            for number, body in enumerate(document.bodies, 1):
                member = tarfile.TarInfo(f"{document.name}/{number:04d}.html")
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
    return out.getvalue()


def _commits(documents: Sequence[Document]) -> list[bytes]:
    """A stream for fast-import: one commit a version, in the order of time."""
    out = []
    for number in range(max(len(document.bodies) for document in documents)):
        for document in documents:
            if number < len(document.bodies):
                body = document.bodies[number]
                head = f"commit refs/heads/main\ncommitter b <b@b> {1_500_000_000 + number} +0000\ndata 0\n"
                out += [head.encode(), f"M 100644 inline {document.name}\n".encode()]
                out += [b"data %d\n" % len(body), body, b"\n"]
    return out
