"""The same captures twice: in an archive of ours, and in a WARC file for pywb."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from letopis.archive import Archive, identify
from letopis.model import Headers, Observation, Outcome, Response

PAGE = "http://bench.example/page"
MANY = "http://bench.example/many"
LIST_URLS = "http://bench.example/list/"
START = datetime(2024, 1, 1, 12, 0, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Capture:
    """One answer of a server; `repeats` means that the content is that of the capture before."""

    url: str
    at: datetime
    status: int
    headers: Headers
    body: bytes
    repeats: bool = False


def page(seed: int, size: int = 30_000) -> bytes:
    """A page of about 30 kB with 60 links, images and a style."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("aeioklmnprst", k=chance.randint(2, 9))) for _ in range(400)]
    parts = ['<!doctype html><html><head><title>page</title><link rel="stylesheet" href="/s.css"></head><body>']
    length = 0
    while length < size:
        text = " ".join(chance.choices(words, k=60))
        link = f'<a href="/{chance.choice(words)}/{chance.randint(1, 999)}.html">{chance.choice(words)}</a>'
        parts.append(f'<div class="c"><p>{text}</p>{link}<img src="i/{chance.randint(1, 99)}.png" alt=""></div>')
        length += len(parts[-1])
    return ("".join(parts) + "</body></html>").encode()


def _headers(number: int, body: bytes) -> Headers:
    """Real servers send fields that differ at each answer; so do these."""
    return (
        ("Server", "bench"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("ETag", f'"{number:x}"'),
    )


def many(captures: int, urls: int) -> Iterator[Capture]:
    """For speed: one page to replay, one with very many captures, very many with one."""
    for number in range(20):
        body = page(number)
        yield Capture(PAGE, START + timedelta(hours=number), 200, _headers(number, body), body)
    for number in range(captures):
        body = f"<p>capture {number}</p>".encode()
        yield Capture(MANY, START + timedelta(minutes=17 * number), 200, _headers(number, body), body)
    for number in range(urls):
        body = f"<p>entry {number}</p>".encode()
        yield Capture(f"{LIST_URLS}{number:06}", START + timedelta(seconds=number), 200, _headers(number, body), body)


def mixed(seed: int = 7, urls: int = 60) -> Iterator[Capture]:
    """For comparison: hosts, paths, queries, statuses, types and repeats of every kind."""
    chance = random.Random(seed)
    hosts = [
        "one.example",
        "www.one.example",
        "sub.one.example",
        "deep.sub.one.example",
        "two.example",
        "one-more.example",
    ]
    for number in range(urls):
        folder = chance.choice(["", "a/", "a/b/", "news/"])
        url = f"http://{chance.choice(hosts)}/{folder}{chance.choice('pqrs')}{number % 9}"
        url += f"?x={number % 4}&y=2" if number % 5 == 0 else ""
        at, body = START + timedelta(seconds=number), b""
        for visit in range(chance.randint(1, 12)):
            at += timedelta(minutes=chance.randint(1, 60 * 24 * 20))
            status = chance.choice([200] * 7 + [404, 500, 301])
            repeats = status == 200 and bool(body) and chance.random() < 0.3
            if status == 200 and not repeats:
                body = f"<p>{url} {visit} {chance.random()}</p>".encode()
            yield _mixed(url, at, status, body, repeats, chance)


def _mixed(url: str, at: datetime, status: int, body: bytes, repeats: bool, chance: random.Random) -> Capture:
    kind = "text/html" if url[-1] in "012345" else "application/json"
    if status == 301:
        return Capture(url, at, 301, (("Content-Type", "text/html"), ("Location", "http://two.example/")), b"")
    if status != 200:
        return Capture(url, at, status, (("Content-Type", "text/plain"),), f"error {status} {chance.random()}".encode())
    return Capture(url, at, 200, (("Content-Type", kind),), body, repeats)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where both servers find their captures."""

    archive: Path
    warc: Path
    folder: Path
    urls: tuple[str, ...]

    @classmethod
    def make(cls, folder: Path, *, small: bool, captures: int = 5000, urls: int = 10_000) -> Scene:
        """Writes both forms."""
        everything = list(mixed() if small else many(captures, urls))
        everything.sort(key=lambda capture: capture.at)
        scene = cls(folder / "archive", folder / "bench.warc.gz", folder, tuple({one.url: None for one in everything}))
        scene._archived(everything)
        scene._warc(everything)
        return scene

    def _archived(self, captures: list[Capture]) -> None:
        with Archive(self.archive) as archive, archive.hold_writer():
            for start in range(0, len(captures), 500):
                archive.record([_look(capture) for capture in captures[start : start + 500]])

    def _warc(self, captures: list[Capture]) -> None:
        with self.warc.open("wb") as file:
            writer = WARCWriter(file, gzip=True)
            first: dict[bytes, Capture] = {}
            for capture in captures:
                head = StatusAndHeaders(f"{capture.status} OK", list(capture.headers), protocol="HTTP/1.1")
                time = capture.at.strftime("%Y-%m-%dT%H:%M:%SZ")
                if capture.repeats:
                    origin = first[capture.body]
                    record = writer.create_revisit_record(
                        capture.url, digest="sha1:" + identify(capture.body).text,
                        refers_to_uri=origin.url, refers_to_date=origin.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                        http_headers=head, warc_headers_dict={"WARC-Date": time},
                    )  # fmt: skip
                else:
                    first.setdefault(capture.body, capture)
                    record = writer.create_warc_record(
                        capture.url, "response", payload=BytesIO(capture.body), length=len(capture.body),
                        http_headers=head, warc_headers_dict={"WARC-Date": time},
                    )  # fmt: skip
                writer.write_record(record)


def _look(capture: Capture) -> Observation:
    outcome = Outcome.NEW if capture.status == 200 else Outcome.UNAVAILABLE
    if capture.status == 301 or capture.repeats:
        outcome = Outcome.UNCHANGED
    response = Response(
        url=capture.url, final_url=capture.url, status=capture.status, headers=capture.headers, body=capture.body,
        at=capture.at,
    )  # fmt: skip
    return Observation(response, outcome)
