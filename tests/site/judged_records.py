"""Records of WARC files as warcio reads them, before an import and after the export that follows it."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from warcio.archiveiterator import ArchiveIterator
from written_warc import export_warc

from letopis.archive import Archive
from letopis.exchange.imports import import_sources
from letopis.exchange.selection import ExportSelection

SAMPLES = Path(os.environ.get("LETOPIS_CORPUS", Path(__file__).parents[3] / "shared" / "corpus")) / "warc"
"""Sample archives of other projects, where they are here."""
NOT_EQUAL = {
    "HTTP204.warc": 2,  # lengths are wrong: blocks and their lengths are put right
    "block-sized-records.warc": 3,  # no captures in it
    "block-sized-records.warc.gz": 3,
    "broken.warc": 1,  # a length is wrong, and warcio reads no further
    "c1_warcinfo.warc": 1,  # no captures in it
    "clipped.warc.gz": 1,  # its record breaks off
    "example-digest.warc": 3,  # requests without answers
    "example-space-in-target-uri.warc.gz": 2,  # no web address
    "example-wrong-chunks.warc.gz": 1,  # a length is wrong, and warcio reads no further
    "gzip_extra_sl.warc.gz": 1,  # no captures in it
    "http-return-codes.warc.gz": 2,  # an answer with the status 0, and its request
    "redirect.warc": 1,  # its record says more bytes than it has
}
"""How many records of a file do not come out as they came in, and why."""


class JudgedRecord(NamedTuple):
    version: str
    fields: tuple[tuple[str, str], ...]
    block: bytes


def judged(data: bytes) -> Iterator[JudgedRecord]:
    """The records of a file as warcio reads them, as far as it can."""
    try:
        for found in ArchiveIterator(io.BytesIO(data), no_record_parse=True):
            fields = tuple((str(name), str(value)) for name, value in found.rec_headers.headers)
            yield JudgedRecord(found.rec_headers.protocol, fields, found.raw_stream.read())
    except Exception as error:  # what it cannot read, it cannot judge
        logging.debug("warcio: %s", error)


def sample_files() -> list[Path]:
    """The WARC files among the samples."""
    return [file for file in sorted(SAMPLES.rglob("*")) if file.name.endswith((".warc", ".warc.gz"))]


def exported(archive: Archive) -> bytes:
    out = io.BytesIO()
    export_warc(archive, out, ExportSelection(), "none")
    return out.getvalue()


def brought_back(tmp_path: Path, file: Path) -> bytes:
    with Archive(tmp_path / "archive") as archive:
        import_sources(archive, [str(file)])
        return exported(archive)
