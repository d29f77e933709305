"""Precision and recall on real pairs of versions, judged by a reader (pairs.tsv).

Needs the corpus `versions`, unpacked; LETOPIS_CORPUS names the folder that
holds `open`. Each pair is compared as in a crawl: with the fingerprints of
the earlier versions of the same document.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from letopis.change import Fingerprint, State, compare, fingerprint
from letopis.model import Page

TABLES = ("pairs.tsv", "pairs-blind.tsv")
KEPT = 8


def rows_of(table: str) -> list[list[str]]:
    text = (Path(__file__).parent / table).read_text()
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


def judged(table: str) -> dict[tuple[str, str], str]:
    return {(row[0], row[1]): row[2] for row in rows_of(table)}


@pytest.mark.parametrize(("table", "least"), [("pairs.tsv", 60), ("pairs-blind.tsv", 30)])
def test_tables_of_pairs_are_sound(table: str, least: int) -> None:
    rows = rows_of(table)
    assert len(rows) >= least
    assert len(judged(table)) == len(rows)
    assert all(len(row) == 4 and len(row[0]) == len(row[1]) == 64 for row in rows)
    assert {row[2] for row in rows} == {"changed", "noise"}


def documents() -> Iterator[list[Path]]:
    corpus = os.environ.get("LETOPIS_CORPUS", "")
    folder = Path(corpus) / "open"
    if not corpus or not folder.is_dir():
        pytest.skip("LETOPIS_CORPUS does not name the unpacked corpus: real pairs were NOT judged")
    for document in sorted(folder.glob("*/*")):
        yield sorted(document.glob("*.html"))


def verdicts(
    files: list[Path], wanted: dict[tuple[str, str], str], read: Callable[[bytes], Page]
) -> Iterator[tuple[str, bool]]:
    """Truth and answer for the judged pairs of one document, each where it first occurs."""
    last: tuple[str, Page] | None = None
    older: list[Fingerprint] = []
    for file in files:
        data = file.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if last and digest == last[0]:
            continue
        page = read(data)
        if last and (truth := wanted.pop((last[0], digest), "")):
            history: list[State] = [last[1], *older[1:KEPT]]
            yield truth, bool(compare(page, history).meaningful)
        older.insert(0, fingerprint(page))
        last = (digest, page)


@pytest.mark.parametrize("table", TABLES)
def test_real_pairs_are_judged_like_a_reader(read_html: Callable[[bytes], Page], table: str) -> None:
    wanted = judged(table)
    total = len(wanted)
    answers = [answer for files in documents() for answer in verdicts(files, wanted, read_html)]
    assert len(answers) == total
    right = sum(truth == "changed" and seen for truth, seen in answers)
    precision = right / sum(seen for _, seen in answers)
    recall = right / sum(truth == "changed" for truth, _ in answers)
    told = f"{table}: {total} pairs, precision {precision:.3f}, recall {recall:.3f}"
    sys.stderr.write(told + "\n")
    assert precision >= 0.80, told
    assert recall >= 0.88, told
