"""The command line: verbs, their options, their output."""

import gc

# A command makes far more objects than it drops: looking for cycles as often as the interpreter does by
# itself costs about a twentieth of a short command. Set before the imports, which make most of them.
gc.set_threshold(50_000, 20, 20)

from letopis.cli.main import main  # noqa: E402

__all__ = ["main"]
