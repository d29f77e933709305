"""The process that reads one risky document: `python -m letopis.extract.worker`.

Takes one line of JSON and the body on standard input, gives the Page as JSON.
"""

from __future__ import annotations

import json
import resource
import sys

from letopis.extract.extraction import read_in_this_process
from letopis.extract.formats import format_for
from letopis.extract.pages import Source, page_to_json


def _limit_resources(seconds: float, memory: int) -> None:
    """Limits that hold even where the parent is gone."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> int:
    """Reads the order and the body, writes the page."""
    order = json.loads(sys.stdin.buffer.readline())
    _limit_resources(order["seconds"], order["memory"])
    body = sys.stdin.buffer.read()
    headers = tuple((name, value) for name, value in order["headers"])
    source = Source(body, order["url"], order["content_type"], headers, order["mode"])
    found = format_for(source.content_type)
    if found is None:
        return 1
    sys.stdout.write(page_to_json(read_in_this_process(source, found, detect_language=order["detect_language"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
