"""Known weaknesses of the pinned dependencies, asked of the public database by pip-audit.

    python tools/audit.py PIP-AUDIT REQUIREMENTS ...

Status 0 when none is known, 1 when some are, 2 when nobody could be asked: no answer is never a good one.
"""

from __future__ import annotations

import json
import subprocess
import sys

MOST_SECONDS = 300


def audit(program: str, requirements: str) -> int:
    """The status for one file of requirements; says what was found in a sentence or a line each."""
    words = [program, "--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run([*words, "-r", requirements], capture_output=True, text=True, timeout=MOST_SECONDS)  # noqa: S603
        answers = json.loads(done.stdout)["dependencies"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        sys.stderr.write(
            f"audit: {requirements} was NOT audited: the database of vulnerabilities could not be asked; "
            "run 'make audit' again where it can be reached\n"
        )
        return 2
    weak = [(one["name"], one["version"], each["id"]) for one in answers for each in one.get("vulns", ())]
    for name, version, number in weak:
        sys.stdout.write(f"{name} {version}: {number}\n")
    unasked = [one["name"] for one in answers if "skip_reason" in one]
    if unasked:
        sys.stderr.write(f"audit: nothing could be said of {', '.join(unasked)} in {requirements}\n")
    sys.stdout.write(f"{requirements}: {len(answers)} packages asked about, {len(weak)} weaknesses known\n")
    return 2 if unasked else int(bool(weak))


def main(program: str, files: list[str]) -> int:
    """The worst status of all files."""
    return max(audit(program, file) for file in files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
