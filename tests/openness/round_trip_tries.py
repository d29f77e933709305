"""Import and export of the same records: headers, bodies, addresses, dates and ids, as warcio reads them.

A question is one record; the answer is the record itself, which must be among those that come out.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from foreign_warc import DAY, answer, record, request, revisit
from judged_records import NOT_EQUAL, SAMPLES, brought_back, judged, sample_files
from tries import Score

PAGE = b"<title>A page</title><p>some words, and more</p>"
URL, OTHER = "http://a.test/", "http://b.test/page?x=1"
_SMALL = {
    "answers with requests": request(URL, 1, "GET") + answer(URL, 1, PAGE) + answer(OTHER, 2, PAGE, "404 Not Found"),
    "a revisit": answer(URL, 1, PAGE) + revisit(URL, 2, PAGE),
    "a coded body": answer(URL, 1, gzip.compress(PAGE), "200 OK", "Content-Encoding: gzip"),
    "fields of one answer": answer(URL, 1, PAGE, "200 OK", "Date: x", "Set-Cookie: a=1", "Set-Cookie: b=2", "x-odd:y"),
    "facts beside": answer(URL, 1, PAGE) + record("metadata", URL, DAY.format(1), b"via: seed"),
    "another method": answer(URL, 1, PAGE) + answer(URL, 2, b"{}") + request(URL, 2, "POST", b"a=1", "text/plain"),
}


def quick(folder: Path) -> Score:
    """Records of every kind, written here."""
    files = []
    for number, data in enumerate(_SMALL.values()):
        files.append(folder / f"{number}.warc")
        files[-1].write_bytes(data)
    return _scored(folder, files)


def full(folder: Path, environment: Path) -> Score:
    """All samples of other projects; where they are not here, those of the quick form."""
    return _scored(folder, sample_files()) if SAMPLES.is_dir() else quick(folder)


def _scored(folder: Path, files: Sequence[Path]) -> Score:
    """Known exceptions are left out by their number; one more in a file makes all that fall in it a difference."""
    count, differing = 0, []
    for number, file in enumerate(files):
        theirs = set(judged(file.read_bytes()))
        lost = theirs - set(judged(brought_back(folder / f"archive {number}", file)))
        known = NOT_EQUAL.get(file.name, 0)
        count += len(theirs) - (known if len(lost) == known else 0)
        if len(lost) != known:
            differing += [f"{file.name}: {dict(one.fields).get('WARC-Record-ID')}" for one in lost]
    return Score(count, tuple(differing))
