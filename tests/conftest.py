"""Makes the misbehaving web of tests/site and the services of tests/scale fixtures of every test."""

import sys
from pathlib import Path

for folder in ("site", "scale"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

pytest_plugins = ["misbehaving_site", "scripted_site", "services"]
