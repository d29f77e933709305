"""Q19: what a put and a get cost in an archive ten times as large, and how much memory they take.

Each size is measured in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from time import process_time
from typing import TypeVar

from letopis.archive import Archive
from letopis.model import Put

T = TypeVar("T")
DOCUMENTS, VERSIONS, TIMES = 60, 12, 10
_TRIED = 120
_ROUNDS = 3  # in turns; the least of each figure counts
_START = datetime(2020, 1, 1, tzinfo=UTC)
_WORDS = [f"{a}{b}" for a in ("ka", "mo", "te", "ri", "su", "la") for b in ("lan", "ver", "dos", "nik", "pol")]


def page(document: int, version: int) -> bytes:
    """A page of about 6 KB of which every version changes a little."""
    fixed, fresh = random.Random(document), random.Random(document * 1000 + version)
    rows = [
        f"<li><a href='/{fixed.randrange(10**6)}'>{' '.join(fixed.choices(_WORDS, k=9))}</a></li>\n" for _ in range(70)
    ]
    rows[fresh.randrange(70)] = f"<li>{' '.join(fresh.choices(_WORDS, k=12))} {version}</li>\n"
    return f"<html><body><h1>{document}</h1><ul>{''.join(rows)}</ul></body></html>".encode()


def puts(documents: int, first: int, last: int) -> Iterator[Put]:
    """Versions `first` to `last` of every document, in the order of time."""
    for version in range(first, last):
        for document in range(documents):
            url = f"https://host{document % 7}.example/{document}"
            yield Put(url, page(document, version), _START + timedelta(hours=version, seconds=document))


def measure(documents: int, versions: int) -> dict[str, float]:
    """CPU milliseconds of a put, a get of the newest and of an old version; megabytes at most."""
    with tempfile.TemporaryDirectory() as folder, Archive(folder) as archive:
        for _ in archive.put_many(puts(documents, 0, versions - 1)):
            pass
        archive.compact(effort="quick")
        late = list(puts(documents, versions - 1, versions))[:_TRIED]
        chance = random.Random(documents)
        urls = [put.url for put in late]
        old = [(url, chance.randrange(versions - 1)) for url in urls]
        return {
            "put": _each(late, lambda put: archive.put(put.url, put.body, put.at)),
            "newest": _least(urls, archive.get),
            "old": _least(old, lambda pair: archive.get(pair[0], version=pair[1])),
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def run(documents: int = DOCUMENTS, versions: int = VERSIONS) -> dict[str, float]:
    """Each figure of an archive with ten times the documents, or ten times the versions, to that of a small one."""
    sizes = ((documents, versions), (TIMES * documents, versions), (documents, TIMES * versions))
    rounds = [[_child(*size) for size in sizes] for _ in range(_ROUNDS)]
    small, many, long = (
        {name: min(each[place][name] for each in rounds) for name in rounds[0][0]} for place in range(len(sizes))
    )
    return {
        f"{name}, {what}": grown[name] / small[name]
        for what, grown in ((f"{TIMES} x documents", many), (f"{TIMES} x versions", long))
        for name in small
    }


def _each(cases: Sequence[T], action: Callable[[T], object]) -> float:
    """The median cost of one action, in milliseconds: a single slow moment of the machine counts for nothing."""
    spent = []
    for case in cases:
        start = process_time()
        action(case)
        spent.append(process_time() - start)
    return sorted(spent)[len(spent) // 2] * 1000


def _least(cases: Sequence[T], action: Callable[[T], object]) -> float:
    """The same of the least of five rounds over all cases."""
    return min(_each(cases, action) for _ in range(5))


def _child(documents: int, versions: int) -> dict[str, float]:
    command = [sys.executable, __file__, str(documents), str(versions)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
