"""The command line: verbs, their options, their output."""

import gc
import os

# A command makes far more objects than it drops: looking for cycles as often as the interpreter does by
# itself costs about a twentieth of a short command. Set before the imports, which make most of them.
gc.set_threshold(200_000, 20, 20)
# Nothing here multiplies matrices: numpy's threads for that would only be started, and wait in a loop.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from letopis.cli.main import main  # noqa: E402

__all__ = ["main"]
