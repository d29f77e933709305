"""Writes to an archive until it is killed; prints a line for each acknowledged version."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from letopis.archive import Archive
from letopis.model import Put

START = datetime(2026, 1, 1, tzinfo=UTC)


def body_of(document: int, version: int) -> bytes:
    rows = [
        f"<p>document {document} line {line} of version {version if line % 7 == 0 else 0}</p>" for line in range(60)
    ]
    return "\n".join(rows).encode()


def puts(first: int) -> list[Put]:
    return [
        Put(f"http://h.example/{document}", body_of(document, version), START + timedelta(minutes=version))
        for version in range(first, first + 4)
        for document in range(3)
    ]


def main(folder: str, mode: str) -> None:
    with Archive(folder) as archive:
        done = archive.stats().versions // 3
        while True:
            for result in archive.put_many(puts(done)):
                sys.stdout.write(f"{result.url} {result.number} {result.digest}\n")
            sys.stdout.flush()
            done = archive.stats().versions // 3
            if mode == "compact" and done % 8 == 0:
                archive.compact(effort="quick" if done % 16 else "full")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
