"""Makes the misbehaving web of tests/site and the services of tests/scale fixtures of every test."""

import signal
import sys
from pathlib import Path

for folder in ("site", "scale", "openness"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

pytest_plugins = ["misbehaving_site", "scripted_site", "services"]


def pytest_configure() -> None:
    """A shell that is no terminal starts what it leaves in the background deaf to Ctrl-C, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
