"""Lets the crash tests use the ledger and the pages of the store's tests."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "store")]
