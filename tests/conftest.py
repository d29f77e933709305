"""Makes the misbehaving web and the services of tests/site fixtures of every test."""

import signal
import sys
from pathlib import Path

for folder in ("site", "openness"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

pytest_plugins = ["misbehaving_site", "scripted_site", "services"]


def pytest_configure() -> None:
    """A shell that is no terminal starts what it leaves in the background deaf to Ctrl-C, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
