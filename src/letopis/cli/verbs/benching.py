"""The verb that runs the benchmarks of the source tree: bench."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

import letopis
from letopis.cli.context import Given, verb
from letopis.errors import NotFound

_FOLDER = Path(letopis.__file__).parents[2] / "bench"


def scripts() -> dict[str, Path]:
    """Benchmarks by name; none in an installation without the source tree."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.py")) if not path.stem.startswith("_")}


@verb("bench", "letopis bench codecs --corpus pages/", "letopis bench all")
@click.argument("name")
@click.option("--corpus", type=click.Path(path_type=Path), help="Folder of data to measure on.")
def bench_verb(given: Given, name: str, corpus: Path | None) -> int:
    """Run a benchmark: ours, its peers, the ratio, the goal. 'all' runs every one."""
    known = scripts()
    if name != "all" and name not in known:
        listed = ", ".join(known) or "none here: benchmarks come with the source tree"
        raise NotFound(f"there is no benchmark '{name}'; there are {listed}")
    words = [*(["--corpus", str(corpus)] if corpus else []), *(["--json"] if given.as_json else [])]
    chosen = known.values() if name == "all" else [known[name]]
    statuses = [subprocess.run([sys.executable, script, *words], check=False).returncode for script in chosen]  # noqa: S603
    return max(statuses, default=0)
