"""Every format that comes from outside, fed with damaged forms of its corpus: read or refused, never anything else.

    python tools/fuzz.py [--seconds 3600] [--inputs 1000000] [FORMAT ...]

Inputs are made from `tests/fuzz/corpus/FORMAT/*` by changes at random places, the same ones for the same number: a
run goes on where the one before ended, and adds to `docs/reliability.json`. A reader may answer or raise an error of
`letopis.errors`; whatever else happens, and whatever takes more than two seconds of processor time, is a fault: its
input is kept in `.fuzz/` and the run ends with status 1. `tests/fuzz` runs a few hundred inputs of each format.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from campaign_results import add_result, read_results

from letopis.archive import CheckDetails
from letopis.change.diff_formats import apply_binary_delta
from letopis.change.filters import compile_jsonpath
from letopis.change.visual_diff import visual_html
from letopis.errors import LetopisError, UsageError
from letopis.exchange import cdx_import
from letopis.exchange.address_lists import LIST_READERS
from letopis.exchange.body_codings import unchunked, undo_coding
from letopis.exchange.har import HAR
from letopis.exchange.replica.index_records import parse_check, parse_head, parse_segment
from letopis.exchange.replica.release import parse_archive_release
from letopis.exchange.saved_pages import PAGE_READERS
from letopis.exchange.sources import ImportReport, SourceHints, SourceReader
from letopis.exchange.static_copy import FileRewriter
from letopis.exchange.warc_import import record_captures
from letopis.exchange.warc_records import parse_response
from letopis.extract import decode, read_page
from letopis.extract.feeds import sitemap_entries
from letopis.extract.rewriter import rewrite_under
from letopis.extract.simple_formats import css_refs
from letopis.fetch.headers import digest_claims, parse_header_block
from letopis.fetch.ranges import multipart_parts, parse_content_range
from letopis.frontier.filters import parse_crawl_filter
from letopis.index.query_language import parse_word_query
from letopis.look.robots import RobotsFile
from letopis.model.times import parse_duration, parse_time
from letopis.monitor.watch import parse_alert_rules
from letopis.monitor.watch_times import Cron
from letopis.operations.job_files import parse_job_file
from letopis.replay.addresses import parse_address, parse_http_date
from letopis.replay.cdx_query import parse_parameters, pywb_query, wayback_query
from letopis.store.pack_format import PackRecord, PackWalker, RecordKind, parse_version_head
from letopis.urls import normalize, surt
from letopis.urls.rules import rules_from_xml
from letopis.zrec.chunk_index import parse_index
from letopis.zrec.header import parse_header
from letopis_migrate.readers import DISTILL, URLWATCH, VISUALPING

CORPUS = Path(__file__).parents[1] / "tests" / "fuzz" / "corpus"
KEPT = Path(".fuzz")
MOST_SECONDS = 2.0
BATCH = 100
TURN = 5.0
MOST_BYTES = 1 << 16
NOW = datetime(2024, 6, 1, tzinfo=UTC)
URL = "http://a.test/d/x"
Reader = Callable[[bytes], object]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _wellformed(data: bytes) -> bytes:
    """Sound UTF-8: what charsets do to bytes is a format of its own, and the slowest of all."""
    return data.decode("utf-8", "replace").encode()


def _page(content_type: str) -> Reader:
    return lambda data: read_page(data, URL, (("Content-Type", content_type),), apart=False, detect_language=False)


def _text_page(content_type: str) -> Reader:
    read = _page(content_type)
    return lambda data: read(_wellformed(data))


def _zipped_page(name: str, content_type: str, part: str) -> Reader:
    """A document in a zip archive: whole archives, and the sound one of its corpus around a damaged part."""
    read = _page(content_type)

    def read_zipped(data: bytes) -> object:
        if data.startswith(b"PK"):
            return read(data)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for other, content in _parts_of(name).items():
                archive.writestr(other, data if other == part else content)
        return read(packed.getvalue())

    return read_zipped


@cache
def _parts_of(name: str) -> dict[str, bytes]:
    """The files of the whole archive in the corpus of a format."""
    with zipfile.ZipFile(CORPUS / name / f"whole.{name}") as archive:
        return {part: archive.read(part) for part in archive.namelist()}


def _charsets(data: bytes) -> None:
    label, _, body = data.partition(b"\n")
    decode(body, label.decode("latin-1"))


def _rewritten(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    rewrite_under("/web/2024/", URL, text, page=True)
    FileRewriter(URL, lambda target, needed: None).page(text, "utf-8")


def _sheet(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    rewrite_under("/web/2024/", URL, text, page=False)
    css_refs(text)


def _drawn(data: bytes) -> None:
    old, _, new = data.decode("utf-8", "replace").partition("\x00")
    visual_html(old, new or old[::-1])


def _warc(data: bytes) -> None:
    # The reader of records says in errors of its own what is broken; an import reports them.
    try:
        list(record_captures(io.BytesIO(data), ImportReport()))
    except (ValueError, RuntimeError, OSError, EOFError):
        raise UsageError("no WARC file") from None


def _http(data: bytes) -> None:
    parse_response(data)
    unchunked(data)
    head, _, body = data.partition(b"\r\n\r\n")
    block = parse_header_block(head.split(b"\r\n"))
    digest_claims(block.fields)
    for coding in ("gzip", "deflate", "br", "zstd"):
        try:
            undo_coding(coding, body, 1 << 20)
        except ValueError:
            continue


def _ranges(data: bytes) -> None:
    multipart_parts(data, b"--b")
    for line in data.splitlines():
        parse_content_range(line.decode("latin-1"))


def _replica(data: bytes) -> None:
    for parse in (parse_check, parse_head, parse_segment, parse_archive_release):
        try:
            parse(data)
        except LetopisError:
            continue


def _details(data: bytes) -> None:
    try:
        details = CheckDetails.from_outside(json.loads(data))
    except (ValueError, RecursionError):
        return
    CheckDetails.unpack(details.pack())


def _times(data: bytes) -> None:
    text = data.decode("latin-1")
    for parse in (lambda: parse_time(text, NOW), lambda: parse_duration(text), lambda: parse_http_date(text)):
        try:
            parse()
        except LetopisError:
            continue


def _words(data: bytes) -> None:
    text = _text(data)
    for parse in (parse_word_query, parse_crawl_filter, compile_jsonpath, parse_alert_rules, Cron.parse):
        try:
            parse(text)
        except LetopisError:
            continue


def _cdx(data: bytes) -> None:
    parameters = parse_parameters(data)
    for read in (wayback_query, pywb_query):
        try:
            read(parameters)
        except LetopisError:
            continue


def _urls(data: bytes) -> None:
    text = _text(data)
    surt(text)
    for parse in (normalize, parse_address):
        try:
            parse(text)
        except LetopisError:
            continue


def _files(*readers: SourceReader) -> Reader:
    """Whole files: each reader says whether one is of its format, and reads it whatever it said."""

    def read(data: bytes) -> None:
        file = _given_file()
        file.write_bytes(data)
        for reader in readers:
            reader.recognises(file)
            for ask in (_captures_of, _watches_of):
                try:
                    ask(reader, file)
                except LetopisError:
                    continue

    return read


def _text_files(*readers: SourceReader) -> Reader:
    read = _files(*readers)
    return lambda data: read(_wellformed(data))


@cache
def _given_file() -> Path:
    """One file for all inputs of this process, in memory where there is such a folder: disks are not tried here."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    folder = Path(tempfile.mkdtemp(prefix="letopis-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "given.yaml"


def _captures_of(reader: SourceReader, file: Path) -> None:
    if not reader.lists_only(file):
        list(reader.captures(file, SourceHints(urls=file), ImportReport(), lambda url: False))


def _watches_of(reader: SourceReader, file: Path) -> None:
    list(reader.watches(file, SourceHints(urls=file)))


def _robots(data: bytes) -> None:
    RobotsFile(data.decode("utf-8", "replace"), "letopis").allowed("http://a.test/a/b?c=d")


def _pack(data: bytes) -> None:
    for found in PackWalker(lambda at, count: data[at : at + count], 2, len(data)).walk(16):
        if isinstance(found, PackRecord) and found.kind in (RecordKind.VERSION, RecordKind.FACT):
            parse_version_head(found)


def _zrec(data: bytes) -> None:
    for parse in (parse_header, lambda body: parse_index(body, 16)):
        try:
            parse(data)
        except LetopisError:
            continue


def _deltas(data: bytes) -> None:
    with suppress(LetopisError):
        apply_binary_delta(b"the quick brown fox\njumps\n" * 9, data, 1 << 20)


_OOXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
FORMATS: dict[str, Reader] = {
    "cdx-query": _cdx,
    "cdxj": lambda data: list(cdx_import._IndexLines().places(_text(data).split("\n"), "index", ImportReport())),
    "charsets": _charsets,
    "css": _sheet,
    "delta": _deltas,
    "details": _details,
    "docx": _zipped_page("docx", _OOXML + "wordprocessingml.document", "word/document.xml"),
    "eml": _page("message/rfc822"),
    "epub": _zipped_page("epub", "application/epub+zip", "O/one.xhtml"),
    "expressions": _words,
    "feed": _page("application/rss+xml"),
    "har": _files(HAR),
    "html": _text_page("text/html"),
    "http": _http,
    "images": _page("image/jpeg"),
    "job": parse_job_file,
    "json": _text_page("application/json"),
    "json-feed": _text_page("application/feed+json"),
    "lists": _text_files(*LIST_READERS),
    "mbox": _page("application/mbox"),
    "mhtml": _files(*PAGE_READERS),
    "odp": _zipped_page("odp", _ODF + "presentation", "content.xml"),
    "ods": _zipped_page("ods", _ODF + "spreadsheet", "content.xml"),
    "odt": _zipped_page("odt", _ODF + "text", "content.xml"),
    "pack": _pack,
    "pdf": _page("application/pdf"),
    "postscript": _page("application/postscript"),
    "pptx": _zipped_page("pptx", _OOXML + "presentationml.presentation", "ppt/slides/slide1.xml"),
    "ranges": _ranges,
    "replica": _replica,
    "rewriting": _rewritten,
    "robots": _robots,
    "rtf": _page("application/rtf"),
    "rules": rules_from_xml,
    "sitemap": sitemap_entries,
    "text": _text_page("text/plain"),
    "times": _times,
    "urls": _urls,
    "visual": _drawn,
    "warc": _warc,
    "watch-lists": _files(DISTILL, VISUALPING, URLWATCH),
    "xlsx": _zipped_page("xlsx", _OOXML + "spreadsheetml.sheet", "xl/worksheets/sheet1.xml"),
    "xml": _page("application/xml"),
    "zrec": _zrec,
}
RISKY = ("docx", "eml", "epub", "mbox", "odp", "ods", "odt", "pdf", "pptx", "rtf", "xlsx")
"""Formats that are read in a process of their own."""
TOKENS = (
    b"<", b">", b'"', b"'", b"\x00", b"\xff", b"\xfe\xff", b"\r\n", b"{", b"}", b"[", b"]", b"(", b")", b"%", b"%00",
    b"\\", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<!DOCTYPE", b"&#x0;", b"url(", b"@import ", b"srcset=", b"9" * 20,
    b"-1", b"9999-12-31T23:59:59-14:00", b"1e999", b"NaN", b"null", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa9", b" " * 64,
    b"," * 64,
)  # fmt: skip


class FuzzFault(NamedTuple):
    """An input that was neither read nor refused."""

    data: bytes
    reason: str


def corpus_of(name: str) -> list[bytes]:
    """The sound inputs of a format, the same order everywhere."""
    return [file.read_bytes() for file in sorted((CORPUS / name).iterdir())]


def mutated(seeds: list[bytes], rng: random.Random) -> bytes:
    """A sound input with a few changes: bytes, tokens, repeats, parts of another."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.randrange(1, 40))
        change = rng.randrange(7)
        if change == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif change == 1:
            data[at:at] = rng.choice(TOKENS)
        elif change == 2:
            del data[at:end]
        elif change == 3:
            data[at:at] = data[at:end] * rng.choice((1, 2, 8, 64))
        elif change == 4:
            other = rng.choice(seeds)
            start = rng.randrange(len(other) + 1)
            data[at:end] = other[start : start + rng.randrange(1, 80)]
        elif change == 5:
            data[at:end] = rng.randbytes(end - at)
        else:
            del data[at:]
    return bytes(data[:MOST_BYTES])


def fault_of(read: Reader, data: bytes) -> str:
    """What is wrong with how an input was taken; empty where nothing is."""
    start = time.process_time()
    try:
        read(data)
    except LetopisError:
        pass
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    spent = time.process_time() - start
    return f"it took {spent:.1f} s of processor time" if spent > MOST_SECONDS else ""


def fuzz(name: str, rounds: int, seed: int = 0) -> Iterator[FuzzFault]:
    """Faults of a format among this many inputs."""
    seeds, read = corpus_of(name), FORMATS[name]
    rng = random.Random(f"{name} {seed}")
    for _ in range(rounds):
        data = mutated(seeds, rng)
        reason = fault_of(read, data)
        if reason:
            yield FuzzFault(data, reason)


def main() -> int:
    """Runs formats in turns until time or inputs are over; prints how many inputs each has had in this run."""
    parser = argparse.ArgumentParser(description="Feed every format with damaged inputs.")
    parser.add_argument("formats", nargs="*", choices=[*FORMATS, []], help="formats; default: all")
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long, all formats together")
    parser.add_argument("--inputs", type=int, default=0, help="leave a format alone that has had so many in all runs")
    asked = parser.parse_args()
    names = asked.formats or list(FORMATS)
    counts, faults = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    end = time.monotonic() + asked.seconds
    while names and time.monotonic() < end:
        for name in list(names):
            before = read_results().get(f"fuzz {name}")
            done, found = _turn(name, before.count // BATCH if before else 0, end)
            counts[name], faults[name] = counts[name] + done, faults[name] + found
            total = add_result(f"fuzz {name}", done, found).count
            if 0 < asked.inputs <= total:
                names.remove(name)
    for name, count in counts.items():
        sys.stdout.write(f"{name:12} {count:>10,} inputs {faults[name]:>6} faults\n")
    sys.stdout.write(f"{'all':12} {sum(counts.values()):>10,} inputs {sum(faults.values()):>6} faults\n")
    return 1 if any(faults.values()) else 0


def _turn(name: str, batch: int, end: float) -> tuple[int, int]:
    """Some seconds of one format; answers how many inputs that were, and how many faults."""
    done = faults = 0
    until = min(end, time.monotonic() + TURN)
    for found in _batches_apart(name, batch, until) if name in RISKY else _batches(name, batch, until):
        done += BATCH
        for fault in found:
            faults += 1
            KEPT.mkdir(exist_ok=True)
            kept = KEPT / f"{name}-{hashlib.sha256(fault.data).hexdigest()[:12]}"
            kept.write_bytes(fault.data)
            sys.stderr.write(f"{kept}: {fault.reason}\n")
    return done, faults


def _batches(name: str, batch: int, until: float) -> Iterator[list[FuzzFault]]:
    """The faults of one batch after the other, at least of one."""
    while True:
        yield list(fuzz(name, BATCH, batch))
        batch += 1
        if time.monotonic() >= until:
            return


def _batches_apart(name: str, batch: int, until: float) -> Iterator[list[FuzzFault]]:
    """The same in a process of its own, as these formats are always read: a library that dies takes nothing along."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        with open(sending, "w") as pipe:
            for found in _batches(name, batch, until):
                pipe.write(json.dumps([(fault.data.hex(), fault.reason) for fault in found]) + "\n")
                pipe.flush()
        os._exit(0)
    os.close(sending)
    with open(receiving) as pipe:
        for line in pipe:
            batch += 1
            yield [FuzzFault(bytes.fromhex(data), reason) for data, reason in json.loads(line)]
    status = os.waitpid(child, 0)[1]
    if status:
        yield [FuzzFault(b"%d" % batch, f"the reader died ({status}) in this batch")]


if __name__ == "__main__":
    sys.exit(main())
