"""The command line: `letopis VERB ...`."""

from letopis.cli.main import main

__all__ = ["main"]
