"""WARC and ARC files of others: good ones come in, bad ones are reported, none hangs or is passed over in silence."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_warc import response

from letopis.archive import Archive
from letopis.errors import DocumentTooLarge, LetopisError
from letopis.exchange.body_codings import unchunked, undo_coding
from letopis.exchange.imports import import_sources
from letopis.zstandard import zstd

SAMPLES = Path(os.environ.get("LETOPIS_CORPUS", Path(__file__).parents[3] / "shared" / "corpus")) / "warc"
BAD = {
    "invalid_example_1.wacz": "there is no WARC file in it",
    "bad.arc": "no readable status",
    "example-digest.warc": "a request without its answer",
    "example-space-in-target-uri.warc.gz": "no web address (http or https)",
}
TOOL_RECORDS = "no web address (http or https)"
"""ARC files hold answers of name servers, wget and wpull keep their logs as records without an address of the web."""
NO_BODY = "a revisit whose capture is missing; it is kept, and recorded when the capture is imported"
NOTHING_IN_THEM = frozenset({
    "CC-MAIN-2024-22.warc.paths.gz", "block-sized-records.warc", "block-sized-records.warc.gz",
    "block-sized-records.warc.lz4", "c1_warcinfo.warc", "clipped.warc.gz", "gzip_extra_sl.warc.gz",
    "whirlwind.warc.wat", "whirlwind.warc.wat.gz",
    "5mementos.cdxj", "froggie_badHeaderHash.cdxj", "salam-home.cdxj", "sample-1.cdxj", "sample-2.cdxj",
    "sample-encrypted.cdxj", "sample-old.cdxj",
})  # fmt: skip
"""Files without captures, of formats that are not read, or with a single record that breaks off."""
REVISITS_ALONE = frozenset({
    "20130729-heritrix-revisit-with-http-headers.warc.gz", "example-url-agnostic-revisit.warc.gz",
    "20141129-heritrix-revisit-with-http-headers-and-new-warc-headers.warc.gz",
})  # fmt: skip
"""Files of revisits whose captures lie in other files."""
TOLD_BESIDE_CAPTURES = {
    "HTTP204.warc": "its length is wrong; it was read up to the next record",
    "badexample.arc.gz": "its length is wrong; it was read up to the next record",
    "broken.warc": "its length is wrong; it was read up to the next record",
    "clueweb-quirk.warc.gz": "a body labelled gzip is not; stored unchanged",
    "example-warcinfo-metadata.warc": "a body labelled gzip is not; stored unchanged",
    "example.har": "its body is not in the file; save the file with contents",
    "http-return-codes.warc.gz": "no readable status",
    "http2.github.io.har": "its body is not in the file; save the file with contents",
    "redirect.warc": "its length is wrong; it was read up to the next record",
}


def told(archive: Archive, file: Path) -> tuple[int, dict[str, int]]:
    try:
        report = import_sources(archive, [str(file)])
    except LetopisError as error:
        return 0, {str(error): 1}
    return report.checks, dict(report.refused)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="sample archives of others are not here; LETOPIS_CORPUS names them")
def test_good_samples_come_in_and_bad_ones_are_reported(tmp_path: Path) -> None:
    files = [file for file in sorted(SAMPLES.rglob("*")) if file.is_file() and not file.name.startswith(".")]
    for file in files:
        with Archive(tmp_path / file.parent.name / file.name) as archive:
            checks, refused = told(archive, file)
            if file.name in BAD:
                assert BAD[file.name] in refused, file.name
            elif file.name in NOTHING_IN_THEM:
                assert checks == 0, file.name
                assert refused, file.name
            elif file.name in REVISITS_ALONE:
                assert (checks, set(refused)) == (0, {NO_BODY}), file.name
            else:
                assert checks > 0, file.name
                named = {TOLD_BESIDE_CAPTURES[file.name]} if file.name in TOLD_BESIDE_CAPTURES else set()
                assert named <= set(refused) <= {TOOL_RECORDS, NO_BODY, *named}, (file.name, refused)
            assert list(archive.verify()) == []
            assert told(archive, file)[0] == 0, "brought twice"


RECORDS = [response(f"http://example.org/{n}", "2024-01-31T12:00:00Z", b"<p>page %d" % n) for n in range(3)]
WARC = b"".join(RECORDS)
PACKED = b"".join(map(gzip.compress, RECORDS))


@given(data=st.sampled_from([WARC, PACKED]), place=st.integers(0, 2500))
@settings(max_examples=80, deadline=None)
def test_a_file_that_breaks_off_gives_whole_records_and_a_report(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, place: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (folder / "cut.warc").write_bytes(data[: place % len(data)])
    with Archive(folder / "archive") as archive:
        checks, refused = told(archive, folder / "cut.warc")
        assert checks + sum(refused.values()) > 0
        for number in range(checks):
            assert archive.get(f"http://example.org/{number}").body == b"<p>page %d" % number


@given(
    data=st.sampled_from([WARC, PACKED]),
    changes=st.lists(st.tuples(st.integers(0, 2500), st.integers(0, 255)), min_size=1, max_size=6),
)
@settings(max_examples=int(os.environ.get("LETOPIS_LONG", "0")) * 20_000 or 100, deadline=None)
def test_damaged_bytes_never_pass_in_silence(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, changes: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    spoilt = bytearray(data)
    for place, value in changes:
        spoilt[place % len(spoilt)] = value
    (folder / "x.warc").write_bytes(spoilt)
    with Archive(folder / "archive") as archive:
        checks, refused = told(archive, folder / "x.warc")
        assert checks + sum(refused.values()) > 0


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "br", "zstd"])
def test_codings_are_undone_up_to_a_bound(coding: str) -> None:
    plain = bytes(1 << 20)
    pack = {"br": brotli.compress, "zstd": zstd.compress, "deflate": zlib.compress}.get(coding, gzip.compress)
    assert undo_coding(coding, pack(plain)) == plain
    with pytest.raises(DocumentTooLarge):
        undo_coding(coding, pack(plain), limit=1000)


def test_deflate_without_its_header_is_undone() -> None:
    squeeze = zlib.compressobj(wbits=-15)
    assert undo_coding("deflate", squeeze.compress(b"text") + squeeze.flush()) == b"text"


@given(st.sampled_from(["gzip", "deflate", "br", "zstd", "none"]), st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_are_undone_or_refused(coding: str, body: bytes) -> None:
    try:
        plain = undo_coding(coding, body, limit=10_000)
    except (ValueError, DocumentTooLarge):
        return
    assert len(plain) <= 10_000


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=5))
def test_chunks_are_joined(parts: list[bytes]) -> None:
    sent = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    assert unchunked(sent) == b"".join(parts)


@given(st.binary(max_size=100))
def test_what_is_not_chunked_never_grows(body: bytes) -> None:
    assert len(unchunked(body)) <= len(body)


@pytest.mark.parametrize("size", [b"-11", b"+5", b"0x5", b"1_0", b"-0"])
def test_what_is_no_size_of_a_chunk_ends_the_reading(size: bytes) -> None:
    body = size + b"\r\nLocation: /\r\n"
    assert unchunked(body) == body
    assert unchunked(b"3\r\nabc\r\n" + body) == b"abc"
