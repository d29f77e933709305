"""Clones or pulls, and dies without a word at the n-th write point: fsync, rename, removal or commit."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from letopis.catalog.database import Cursor
from letopis.config import Settings
from letopis.exchange.replica import CloneSelection, PullOptions, clone, pull


class Fuse:
    """Counts write points; the last one kills, before it happens or after."""

    def __init__(self, left: int) -> None:
        self.left = left

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **more: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            done = function(*given, **more)
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return counted


def main(origin: str, copy: str, left: str) -> None:
    fuse = Fuse(int(left))
    run = Cursor.run
    committed = fuse.around(run)

    def run_or_die(self: Cursor, statement: str, values: Any = ()) -> int:
        return int(committed(self, statement, values) if statement == "COMMIT" else run(self, statement, values))

    Cursor.run = run_or_die  # type: ignore[method-assign]
    os.fsync = fuse.around(os.fsync)
    Path.replace = fuse.around(Path.replace)  # type: ignore[method-assign]
    Path.unlink = fuse.around(Path.unlink)  # type: ignore[method-assign]
    folder = Path(copy)
    if (folder / "replica" / "release.json").exists():
        pull(folder, PullOptions(), Settings())
    else:
        clone(origin, folder, CloneSelection(), Settings())


if __name__ == "__main__":
    main(*sys.argv[1:])
