"""A user's XSLT over our XML, in a process of its own: no network, no files, bounded time and memory.

`python -m letopis.graph.stylesheet` takes the length of the stylesheet on
one line, the stylesheet, and the document on standard input.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import Any

from lxml import etree

from letopis.errors import UsageError

SECONDS = 60.0
MEMORY = 4 * 1024**3
MOST_STYLESHEET = 1024 * 1024
# The stubs do not know the class's arguments.
_control: Any = etree.XSLTAccessControl
_CLOSED = _control(read_file=False, write_file=False, create_dir=False, read_network=False, write_network=False)


def transform(document: bytes, stylesheet: bytes, *, seconds: float = SECONDS) -> bytes:
    """What the stylesheet makes of the document; UsageError says what is wrong with it."""
    if len(stylesheet) > MOST_STYLESHEET:
        raise UsageError("the stylesheet is larger than 1 MiB; give a smaller one")
    given = b"%d\n" % len(stylesheet) + stylesheet + document
    command = [sys.executable, "-m", "letopis.graph.stylesheet", f"{seconds:g}"]
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=seconds + 5, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise UsageError(f"the stylesheet took longer than {seconds:g} s; simplify it") from None
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = told[-1] if told and done.returncode > 0 else f"it took longer than {seconds:g} s or too much memory"
        raise UsageError(f"the stylesheet cannot be used: {reason}")
    return done.stdout


def apply(document: bytes, stylesheet: bytes) -> bytes:
    """The transformation itself, with entities, network and files closed to both sides."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    # The document is our own, and a map may be deeper than the parser's usual bound.
    trusted = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    style = etree.fromstring(stylesheet, parser)
    program = etree.XSLT(style, access_control=_CLOSED)
    return bytes(program(etree.fromstring(document, trusted)))


def main() -> int:
    """Reads both, writes the result; a fault is one line on standard error."""
    seconds = float(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = int(sys.stdin.buffer.readline())
    stylesheet, document = sys.stdin.buffer.read(size), sys.stdin.buffer.read()
    try:
        sys.stdout.buffer.write(apply(document, stylesheet))
    except (etree.LxmlError, ValueError) as fault:
        sys.stderr.write(" ".join(str(fault).split()) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
