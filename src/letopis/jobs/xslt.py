"""A user's XSLT over XML of Letopis, in a separate process: no network, no files, bounded time, memory and output.

`python xslt.py SECONDS MEMORY OUTPUT` takes the length of the stylesheet on one
line, the stylesheet, and the document on standard input.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from letopis.errors import UsageError
from letopis.lazy import etree
from letopis.tuples import NamedTuple

MAX_STYLESHEET = 1024 * 1024
_STOPPED_MESSAGE = "it took longer than {seconds:g} s or too much memory"
_NO_ACCESS = {
    "read_file": False,
    "write_file": False,
    "create_dir": False,
    "read_network": False,
    "write_network": False,
}


class XsltLimits(NamedTuple):
    """What a transformation may use: processor time, memory, and bytes of its result."""

    seconds: float = 60.0
    memory: int = 4 * 1024**3
    output: int = 1024**3


_USUAL_BOUNDS = XsltLimits()


def run_xslt(document: bytes, stylesheet: bytes, bounds: XsltLimits = _USUAL_BOUNDS) -> bytes:
    """What the stylesheet makes of the document; UsageError says what is wrong with it."""
    if len(stylesheet) > MAX_STYLESHEET:
        raise UsageError("the stylesheet is larger than 1 MiB; give a smaller one")
    given = b"%d\n" % len(stylesheet) + stylesheet + document
    words = [f"{bounds.seconds:g}", str(bounds.memory), str(bounds.output)]
    # By its path and not as a module: the rest of this unit costs ten times the start.
    command = [sys.executable, "-P", __file__, *words]
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=bounds.seconds + 5, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise UsageError(f"the stylesheet took longer than {bounds.seconds:g} s; simplify it") from None
    if done.returncode:
        messages = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = messages[-1] if messages and done.returncode > 0 else _STOPPED_MESSAGE.format(seconds=bounds.seconds)
        raise UsageError(f"the stylesheet cannot be used: {reason}")
    return done.stdout


def apply_xslt(document: bytes, stylesheet: bytes) -> bytes:
    """The transformation, with entities, network and files disabled. Raises LxmlError or ValueError."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    # The document is our own, and a map may be deeper than the parser's usual bound.
    trusted = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    style = etree.fromstring(stylesheet, parser)
    control: Any = etree.XSLTAccessControl  # the stubs do not know the class's arguments
    program = etree.XSLT(style, access_control=control(**_NO_ACCESS))
    try:
        return bytes(program(etree.fromstring(document, trusted)))
    except etree.XSLTApplyError as fault:
        raise ValueError(_reason(fault, program)) from None


def _reason(fault: etree.XSLTApplyError, program: Any) -> str:
    """The library reports endless recursion only in its log."""
    messages = [str(fault), *(str(entry.message) for entry in program.error_log)]
    if any("recursion" in line or "depth" in line for line in messages):
        return "its templates call each other without end (endless recursion); give them a condition to stop"
    return messages[0]


def _peak_memory() -> int:
    """The most address space that this process ever had, 0 if the system does not report it.

    What `getrusage` tells begins with the size of whoever started us.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmPeak:")), 0)


def main() -> int:
    """Reads both, writes the result; a fault is one line on standard error."""
    seconds, memory, most = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = int(sys.stdin.buffer.readline())
    stylesheet, document = sys.stdin.buffer.read(size), sys.stdin.buffer.read()
    try:
        made = apply_xslt(document, stylesheet)
        if len(made) > most:
            raise ValueError(f"its result has {len(made)} bytes; at most {most} are allowed")
        sys.stdout.buffer.write(made)
    except (etree.LxmlError, ValueError, MemoryError) as fault:
        # Without memory the library fails in many words, none of which says so.
        messages = "it needs too much memory" if _peak_memory() > memory // 2 else " ".join(str(fault).split())
        sys.stderr.write(messages + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
