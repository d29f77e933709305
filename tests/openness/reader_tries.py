"""What we export, read by tools of others: every record with its type, its address and the bytes of its payload."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
from pathlib import Path

from exchanged_archives import check_every_way
from tries import Score, compared
from warcio.archiveiterator import ArchiveIterator
from written_warc import export_warc

from letopis.archive import Archive
from letopis.exchange.selection import ExportSelection
from letopis.exchange.warc_export import exported_records

_READING = """
import { createReadStream } from "node:fs";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { WARCParser } from "warcio";
const found = {};
let number = 0;
for await (const record of new WARCParser(Readable.toWeb(createReadStream(process.argv[2])))) {
  const payload = await record.readFully(true);
  if (record.warcType === "warcinfo") continue;
  const digest = createHash("sha1").update(payload || "").digest("hex");
  found[`record ${number++}`] = [record.warcType, record.warcTargetURI, digest];
}
console.log(JSON.stringify(found));
"""


def _written(folder: Path) -> tuple[Path, dict[str, object]]:
    """An export of every kind of check that there is, and what we mean by its records."""
    with Archive(folder / "archive") as archive:
        check_every_way(archive)
        out = io.BytesIO()
        export_warc(archive, out, ExportSelection())
        records = [one.record for one in exported_records(archive, ExportSelection())]
    (folder / "out.warc.gz").write_bytes(out.getvalue())
    ours: dict[str, object] = {}
    for number, record in enumerate(records):
        named = {name.lower(): value for name, value in record.headers}
        payload = record.block if record.kind == "metadata" else record.block.partition(b"\r\n\r\n")[2]
        digest = hashlib.sha1(payload).hexdigest()
        ours[f"record {number}"] = [record.kind, named["warc-target-uri"], digest]
    return folder / "out.warc.gz", ours


def quick(folder: Path) -> Score:
    """With warcio."""
    file, ours = _written(folder)
    theirs: dict[str, object] = {}
    with file.open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests="raise"):
            if record.rec_type != "warcinfo":
                digest = hashlib.sha1(record.content_stream().read()).hexdigest()
                target = record.rec_headers.get_header("WARC-Target-URI")
                theirs[f"record {len(theirs)}"] = [record.rec_type, target, digest]
    return compared(ours, theirs)


def full(folder: Path, environment: Path) -> Score:
    """With warcio.js."""
    file, ours = _written(folder)
    script = environment / "reading.mjs"
    script.write_text(_READING, "utf-8")
    told = subprocess.run(["node", script, file], capture_output=True, text=True, timeout=300, cwd=environment)
    assert told.returncode == 0, told.stderr
    return compared(ours, json.loads(told.stdout))
