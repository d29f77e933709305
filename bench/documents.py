"""Text, titles and links of documents of many formats: ours beside markitdown's, by words and by CPU time.

`python bench/documents.py --peer ENV/bin/python` with the Python of an environment that has `markitdown[docx,pptx,xlsx,
pdf]` and the makers of `bench/extracting/maker.py`: 100 documents a format whose text is known are made and read.
With `--files DIR` the documents there are read as well, and both answers are compared with each other.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from letopis.extract import read_page
from letopis.model import BlockKind

MAKER = Path(__file__).parent / "extracting" / "maker.py"
COUNT = 100
_PEER = """
import json, sys, time
from markitdown import MarkItDown
convert = MarkItDown().convert
for name in sys.stdin.read().split("\\n"):
    start = time.process_time()
    try:
        found, fault = convert(name), ""
        title, text = found.title or "", found.text_content
    except Exception as error:
        title, text, fault = "", "", type(error).__name__
    print(json.dumps([name, title, text, fault, time.process_time() - start]))
"""
_HEAD = (BlockKind.TITLE, BlockKind.DESCRIPTION, BlockKind.KEYWORDS)
_LINK = re.compile(r"\]\(([^)\s]*)[^)]*\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class DocumentTruth(NamedTuple):
    """What was written into a document."""

    title: str
    words: Counter[str]
    links: frozenset[str]


class ReadDocument(NamedTuple):
    """What a reader made of a document, and in how many seconds of CPU time."""

    title: str
    words: Counter[str]
    links: frozenset[str]
    fault: str
    seconds: float


def word_counts(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def made(folder: Path, python: Path, count: int) -> dict[Path, DocumentTruth]:
    """Documents of all formats, and what stands in them."""
    done = subprocess.run(
        [str(python), str(MAKER), str(folder), str(count)], capture_output=True, text=True, check=True
    )
    facts = map(json.loads, done.stdout.splitlines())
    return {
        Path(one["file"]): DocumentTruth(one["title"], word_counts(" ".join(one["texts"])), frozenset(one["links"]))
        for one in facts
    }


def ours(files: Iterable[Path]) -> dict[Path, ReadDocument]:
    found = {}
    for file in files:
        start = time.process_time()
        page = read_page(file.read_bytes(), f"http://example.org/{file.name}", apart=False, detect_language=False)
        seconds = time.process_time() - start
        text = "\n".join(block.text for block in page.blocks if block.kind not in _HEAD)
        text = text if page.title in text else f"{page.title}\n{text}"
        links = frozenset(link.target for link in page.links)
        found[file] = ReadDocument(page.title, word_counts(text), links, " ".join(page.warnings), seconds)
    return found


def theirs(files: Sequence[Path], python: Path) -> dict[Path, ReadDocument]:
    done = subprocess.run(
        [str(python), "-c", _PEER], input="\n".join(map(str, files)), capture_output=True, text=True, check=True
    )
    found = {}
    for line in done.stdout.splitlines():
        name, title, markdown, fault, seconds = json.loads(line)
        text = _COMMENT.sub(" ", markdown)
        links = frozenset(_LINK.findall(text))
        found[Path(name)] = ReadDocument(title, word_counts(_LINK.sub("]", text)), links, fault, seconds)
    return found


def f1(here: Counter[str], there: Counter[str]) -> float:
    return 2 * (here & there).total() / max(1, here.total() + there.total())


def against_truth(truth: dict[Path, DocumentTruth], read: dict[Path, ReadDocument]) -> dict[str, dict[str, float]]:
    """By format: F1 of words, the share of links and titles that were found, milliseconds a file."""
    groups: dict[str, list[tuple[DocumentTruth, ReadDocument]]] = defaultdict(list)
    for file, one in truth.items():
        groups[file.suffix[1:]].append((one, read[file]))
    rows = {}
    for name, pairs in sorted(groups.items()):
        links = sum(len(one.links) for one, _ in pairs)
        rows[name] = {
            "files": len(pairs),
            "failed": sum(bool(found.fault) for _, found in pairs),
            "f1": round(sum(f1(one.words, found.words) for one, found in pairs) / len(pairs), 4),
            "links": round(sum(len(one.links & found.links) for one, found in pairs) / max(1, links), 4),
            "titles": round(sum(one.title == found.title for one, found in pairs) / len(pairs), 4),
            "ms": round(1000 * sum(found.seconds for _, found in pairs) / len(pairs), 2),
        }
    return rows


def against_each_other(mine: dict[Path, ReadDocument], peer: dict[Path, ReadDocument]) -> dict[str, dict[str, float]]:
    """By format, for files whose text nobody knows: failures, words of both, and how alike they are."""
    rows: dict[str, dict[str, float]] = {}
    for name in sorted({file.suffix[1:] for file in mine}):
        files = [file for file in mine if file.suffix[1:] == name]
        both = [file for file in files if mine[file].words and peer[file].words]
        rows[name] = {
            "files": len(files),
            "empty": sum(not mine[file].words for file in files),
            "empty_peer": sum(not peer[file].words for file in files),
            "words": sum(mine[file].words.total() for file in files),
            "words_peer": sum(peer[file].words.total() for file in files),
            "of_peer": round(
                sum((mine[file].words & peer[file].words).total() for file in files)
                / max(1, sum(peer[file].words.total() for file in files)), 4
            ),
            "f1": round(sum(f1(mine[file].words, peer[file].words) for file in both) / max(1, len(both)), 4),
            "links": sum(len(mine[file].links) for file in files),
            "links_peer": sum(len(peer[file].links) for file in files),
            "ms": round(1000 * sum(mine[file].seconds for file in files) / len(files), 2),
            "ms_peer": round(1000 * sum(peer[file].seconds for file in files) / len(files), 2),
        }  # fmt: skip
    return rows


def show(rows: dict[str, dict[str, float]]) -> None:
    names = list(next(iter(rows.values())))
    print(f"{'':6}" + "".join(f"{name:>12}" for name in names))
    for label, row in rows.items():
        print(f"{label:6}" + "".join(f"{row[name]:>12}" for name in names))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, required=True)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        truth = made(Path(folder), args.peer, args.count)
        results["Letopis"] = against_truth(truth, ours(truth))
        results["markitdown"] = against_truth(truth, theirs(list(truth), args.peer))
    if args.files:
        formats = {file.suffix for file in truth}
        files = sorted(file for file in args.files.rglob("*") if file.suffix.lower() in formats and file.is_file())
        results["files of others"] = against_each_other(ours(files), theirs(files, args.peer))
    if args.json:
        print(json.dumps(results))
        return 0
    for name, rows in results.items():
        print(f"\n{name}")
        show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
