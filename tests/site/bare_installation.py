"""Letopis as somebody has it who installed none of its optional packages: a folder of links, and its own Python."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from metrics import core_distributions

import letopis


def run_without_packages(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs Python where letopis and its dependencies are installed, and neither extras nor other packages of ours."""
    place = folder / "installed"
    place.mkdir(exist_ok=True)
    libraries = Path(sysconfig.get_paths()["purelib"])
    names = {file.parts[0] for found in core_distributions() for file in found.files or ()} - {"..", "__pycache__"}
    for entry in [*(libraries / name for name in names), Path(letopis.__file__).parent]:
        if not (place / entry.name).exists():
            (place / entry.name).symlink_to(entry)
    return subprocess.run(
        [sys.executable, "-S", *words], capture_output=True, text=True, check=False, timeout=300,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(place)},
    )  # fmt: skip
