"""Writes to an archive until it is killed; prints a line for each acknowledged version."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from letopis.archive import Archive
from letopis.model import Observation, Outcome, Put, Response, WholePage

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


def whole_page(number: int) -> Observation:
    """A page that stays the same every other time, and three resources, one of which always changes."""
    at = START + timedelta(minutes=number)

    def seen(url: str, body: bytes, millis: int) -> Observation:
        response = Response(url, url, 200, (), body, at + timedelta(milliseconds=millis))
        return Observation(response, Outcome.CHANGED)

    resources = [
        seen(f"http://h.example/{name}", body_of(name, number * (name == 1)), 10 + name) for name in range(1, 4)
    ]
    page = seen("http://h.example/", body_of(0, number // 2), 0)
    return page._replace(whole=WholePage(tuple(resources), (), body_of(9, number), f"text {number}"))


def capture_sets(archive: Archive) -> None:
    while True:
        (done,) = archive.record([whole_page(len(archive.sets.of("http://h.example/")))])
        sys.stdout.write(f"{done.url} {done.time} {len(done.members)}\n")
        sys.stdout.flush()


def main(folder: str, mode: str) -> None:
    with Archive(folder) as archive:
        if mode == "sets":
            capture_sets(archive)
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
